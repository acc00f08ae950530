/* driver: the calls of the driver API that programs link. */

#include "runtime.h"

static const struct {
  CUresult code;
  const char *text;
} results[] = {
    {CUDA_SUCCESS, "no error"},
    {CUDA_ERROR_INVALID_VALUE, "invalid argument"},
    {CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"},
};

CUresult driver_result(cudaError_t status) {
  return status == cudaSuccess             ? CUDA_SUCCESS
         : status == cudaErrorInvalidValue ? CUDA_ERROR_INVALID_VALUE
                                           : CUDA_ERROR_LAUNCH_FAILED;
}

CUresult cuGetErrorString(CUresult code, const char **text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  *text = NULL;
  for (size_t i = 0; i < sizeof results / sizeof *results; ++i)
    if (results[i].code == code) *text = results[i].text;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemsetD32Async(CUdeviceptr address, unsigned word, size_t count,
                          CUstream stream) {
  uint64_t args[] = {address, word, sizeof word, count};
  struct iovec parts[] = {{args, sizeof args}};
  (void)stream;
  if (count == 0) return CUDA_SUCCESS;
  if (address % sizeof word) return CUDA_ERROR_INVALID_VALUE;
  return driver_result(request(OP_FILL, parts, 1, NULL, 0, NULL));
}
