/* launches: kernels, registered before main, and their launches. */

#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kernel {
  struct kernel *next;
  const void *host_function;
  uint64_t id;
  int max_dynamic_smem;
  int nonportable; /* clusters of more than 8 CTAs */
  size_t num_params;
  uint32_t param_nbytes[MAX_PARAMS];
};

static struct kernel *kernels;
static uint64_t num_kernels; /* ids are given in the order of registration */

void **__cudaRegisterFatBinary(void *image) {
  (void)image;
  static void *handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { (void)handle; }

void __cudaRegisterVar(void **handle, char *host, char *address, const char *name,
                       int external, size_t size, int constant, int global) {
  /* Only copies to and from symbols need this, and those are not provided. */
  (void)handle, (void)host, (void)address, (void)name;
  (void)external, (void)size, (void)constant, (void)global;
}

void __cudaRegisterFunction(void **handle, const char *host_function,
                            char *device_function, const char *name, int thread_limit,
                            uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
                            int *warp_size) {
  (void)handle, (void)device_function, (void)thread_limit, (void)tid, (void)bid;
  (void)block, (void)grid, (void)warp_size;
  struct kernel *kernel = calloc(1, sizeof *kernel);
  size_t received;
  if (!kernel) end_program("out of memory");
  kernel->host_function = host_function;
  kernel->id = num_kernels++;
  kernel->max_dynamic_smem = DEFAULT_SMEM;
  struct iovec parts[] = {{(void *)name, strlen(name)}};
  cudaError_t status = request(OP_REGISTER, parts, 1, kernel->param_nbytes,
                               sizeof kernel->param_nbytes, &received);
  if (status != cudaSuccess) end_program("the kernel's parameters are not known");
  kernel->num_params = received / sizeof *kernel->param_nbytes;
  kernel->next = kernels;
  kernels = kernel;
}

/* Find by host function, or by the handle that cudaGetKernel gave out. */
static struct kernel *find_kernel(const void *function) {
  for (struct kernel *k = kernels; k; k = k->next)
    if (k->host_function == function || k == function) return k;
  return NULL;
}

static __thread struct {
  dim3 grid, block;
  size_t smem;
  cudaStream_t stream;
} pushed;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t smem,
                                     struct CUstream_st *stream) {
  pushed.grid = grid, pushed.block = block;
  pushed.smem = smem, pushed.stream = stream;
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *smem,
                                       void *stream) {
  *grid = pushed.grid, *block = pushed.block;
  *smem = pushed.smem, *(cudaStream_t *)stream = pushed.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *handle, const void *host_function) {
  *handle = (cudaKernel_t)find_kernel(host_function);
  return done(*handle ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

/* Cluster shapes in CTAs; no preferred one is (0, 0, 0). */
struct clusters {
  dim3 regular, preferred;
};

static cudaError_t launch(const void *function, dim3 grid, dim3 block,
                          struct clusters clusters, size_t smem, void **args) {
  static char printed[PRINTF_NBYTES];
  size_t num_printed = 0;
  struct kernel *kernel = find_kernel(function);
  if (!kernel) return done(cudaErrorInvalidDeviceFunction);
  if (smem > (size_t)kernel->max_dynamic_smem) return done(cudaErrorInvalidValue);
  dim3 regular = clusters.regular, preferred = clusters.preferred;
  uint64_t shape[] = {
      kernel->id,  grid.x,      grid.y,      grid.z,
      block.x,     block.y,     block.z,     regular.x,
      regular.y,   regular.z,   preferred.x, preferred.y,
      preferred.z, (uint64_t)kernel->nonportable, smem};
  struct iovec parts[1 + MAX_PARAMS] = {{shape, sizeof shape}};
  for (size_t i = 0; i < kernel->num_params; ++i)
    parts[1 + i] = (struct iovec){args[i], kernel->param_nbytes[i]};
  cudaError_t status = request(OP_LAUNCH, parts, 1 + (int)kernel->num_params, printed,
                               sizeof printed, &num_printed);
  fwrite(printed, 1, num_printed, stdout);
  return done(status);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t smem, cudaStream_t stream) {
  (void)stream;
  struct clusters none = {{1, 1, 1}, {0, 0, 0}};
  return launch(kernel, grid, block, none, smem, args);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **args) {
  struct clusters clusters = {{1, 1, 1}, {0, 0, 0}};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute *attribute = &config->attrs[i];
    char detail[64];
    switch (attribute->id) {
      case cudaLaunchAttributeClusterDimension:
        clusters.regular = (dim3){attribute->val.clusterDim.x,
                                  attribute->val.clusterDim.y,
                                  attribute->val.clusterDim.z};
        break;
      case cudaLaunchAttributePreferredClusterDimension:
        clusters.preferred = (dim3){attribute->val.preferredClusterDim.x,
                                    attribute->val.preferredClusterDim.y,
                                    attribute->val.preferredClusterDim.z};
        break;
      case cudaLaunchAttributeIgnore:
      case cudaLaunchAttributePriority:
      /* A launch here ends before the next begins: the strictest order. */
      case cudaLaunchAttributeProgrammaticStreamSerialization:
        break;
      default:
        snprintf(detail, sizeof detail, "launch attribute %d", (int)attribute->id);
        refuse("cudaLaunchKernelExC", detail);
    }
  }
  return launch(function, config->gridDim, config->blockDim, clusters,
                config->dynamicSmemBytes, args);
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute,
                                 int value) {
  struct kernel *kernel = find_kernel(function);
  if (!kernel) return done(cudaErrorInvalidDeviceFunction);
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (value < 0 || value > MAX_SMEM) return done(cudaErrorInvalidValue);
    kernel->max_dynamic_smem = value;
  }
  if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
    kernel->nonportable = value != 0;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes,
                                  const void *function) {
  struct kernel *kernel = find_kernel(function);
  if (!kernel) return done(cudaErrorInvalidDeviceFunction);
  memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 255;
  attributes->ptxVersion = attributes->binaryVersion = 100;
  attributes->maxDynamicSharedSizeBytes = kernel->max_dynamic_smem;
  return cudaSuccess;
}

/* One CTA on an SM, as on fp4ref's machine. */
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *count, const void *function, int block, size_t smem, unsigned flags) {
  (void)function, (void)flags;
  *count = block <= 1024 && smem <= MAX_SMEM;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *count,
                                                          const void *function,
                                                          int block, size_t smem) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, block,
                                                                smem, 0);
}
