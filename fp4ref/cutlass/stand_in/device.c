/* device: a B200, its events, and what an error is called. */

#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

cudaError_t cudaGetDeviceCount(int *count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int *device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  return done(device ? cudaErrorInvalidDevice : cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *props, int device) {
  if (device) return done(cudaErrorInvalidDevice);
  memset(props, 0, sizeof *props);
  snprintf(props->name, sizeof props->name, "fp4ref emulated sm_100a");
  props->major = 10;
  props->multiProcessorCount = multiprocessors();
  props->warpSize = 32;
  props->maxThreadsPerBlock = 1024;
  props->maxThreadsDim[0] = props->maxThreadsDim[1] = 1024;
  props->maxThreadsDim[2] = 64;
  props->maxGridSize[0] = 2147483647;
  props->maxGridSize[1] = props->maxGridSize[2] = 65535;
  props->maxThreadsPerMultiProcessor = 2048;
  props->maxBlocksPerMultiProcessor = 32;
  props->regsPerBlock = props->regsPerMultiprocessor = 65536;
  props->sharedMemPerBlock = DEFAULT_SMEM;
  props->sharedMemPerBlockOptin = MAX_SMEM;
  props->sharedMemPerMultiprocessor = 233472;
  props->reservedSharedMemPerBlock = 1024;
  props->totalConstMem = 65536;
  props->totalGlobalMem = (size_t)180 << 30;
  props->l2CacheSize = 126 << 20;
  props->unifiedAddressing = 1;
  props->clusterLaunch = props->cooperativeLaunch = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
                                   int device) {
  struct cudaDeviceProp props;
  char detail[48];
  cudaError_t status = cudaGetDeviceProperties(&props, device);
  if (status != cudaSuccess) return status;
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = props.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = props.minor; break;
    case cudaDevAttrMultiProcessorCount: *value = props.multiProcessorCount; break;
    case cudaDevAttrWarpSize: *value = props.warpSize; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = props.maxThreadsPerBlock; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = props.maxThreadsPerMultiProcessor;
      break;
    case cudaDevAttrMaxGridDimX: *value = props.maxGridSize[0]; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = DEFAULT_SMEM; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = MAX_SMEM; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = 233472; break;
    case cudaDevAttrL2CacheSize: *value = props.l2CacheSize; break;
    default:
      snprintf(detail, sizeof detail, "attribute %d", (int)attribute);
      refuse("cudaDeviceGetAttribute", detail);
  }
  return cudaSuccess;
}

/* Order: every call here is synchronous. */

cudaError_t cudaDeviceSynchronize(void) { return done(sticky_error); }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  (void)stream;
  return done(sticky_error);
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
  *event = calloc(1, sizeof(struct timespec));
  return *event ? cudaSuccess : done(cudaErrorMemoryAllocation);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return free(event), cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  (void)stream;
  clock_gettime(CLOCK_MONOTONIC, (struct timespec *)event);
  return done(sticky_error);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  (void)event;
  return done(sticky_error);
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
  const struct timespec *a = (void *)start, *b = (void *)end;
  *ms = (float)((double)(b->tv_sec - a->tv_sec) * 1e3 +
                (double)(b->tv_nsec - a->tv_nsec) * 1e-6);
  return cudaSuccess;
}
