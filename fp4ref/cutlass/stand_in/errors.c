/* errors: the last error, and what each is called. */

#include "runtime.h"

static cudaError_t last_error;

cudaError_t done(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

cudaError_t cudaPeekAtLastError(void) {
  return sticky_error ? sticky_error : last_error;
}
cudaError_t cudaGetLastError(void) {
  cudaError_t status = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return status;
}

static const struct {
  cudaError_t code;
  const char *name, *text;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction",
     "invalid device function"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
};

const char *cudaGetErrorString(cudaError_t code) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
    if (errors[i].code == code) return errors[i].text;
  return "unrecognized error code";
}
const char *cudaGetErrorName(cudaError_t code) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
    if (errors[i].code == code) return errors[i].name;
  return "unrecognized error code";
}
