/* memory: device memory, copies, and tensor maps. */

#include "runtime.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Device addresses are reserved here too: no host pointer can equal one, and a program
   that uses one as its own crashes, as it would with a GPU. They only grow. */
static uintptr_t device_start, device_end;

static void reserve(uintptr_t address, size_t nbytes) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t end = (address + nbytes + page - 1) / page * page;
  if (!device_start) device_start = device_end = address / page * page;
  if (end <= device_end) return;
  void *wanted = (void *)device_end;
  if (mmap(wanted, end - device_end, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
           0) != wanted)
    end_program("a device address is in use on the host by chance; run it again");
  device_end = end;
}

static int on_device(const void *pointer) {
  return (uintptr_t)pointer >= device_start && (uintptr_t)pointer < device_end;
}

cudaError_t cudaMalloc(void **address, size_t nbytes) {
  uint64_t size = nbytes, found = 0;
  struct iovec parts[] = {{&size, sizeof size}};
  *address = NULL;
  if (nbytes == 0) return cudaSuccess;
  cudaError_t status = request(OP_MALLOC, parts, 1, &found, sizeof found, NULL);
  if (status == cudaSuccess) reserve(found, nbytes);
  *address = (void *)(uintptr_t)found;
  return done(status);
}

cudaError_t cudaFree(void *pointer) {
  uint64_t address = (uintptr_t)pointer;
  struct iovec parts[] = {{&address, sizeof address}};
  if (!pointer) return cudaSuccess;
  return done(request(OP_FREE, parts, 1, NULL, 0, NULL));
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t nbytes,
                       enum cudaMemcpyKind kind) {
  uint64_t args[] = {(uintptr_t)to, (uintptr_t)from, nbytes};
  if (nbytes == 0) return cudaSuccess;
  if (kind == cudaMemcpyDefault)
    kind = on_device(to) ? on_device(from) ? cudaMemcpyDeviceToDevice
                                           : cudaMemcpyHostToDevice
           : on_device(from) ? cudaMemcpyDeviceToHost
                             : cudaMemcpyHostToHost;
  if (kind == cudaMemcpyHostToDevice) {
    struct iovec parts[] = {{args, sizeof *args}, {(void *)from, nbytes}};
    return done(request(OP_UPLOAD, parts, 2, NULL, 0, NULL));
  }
  if (kind == cudaMemcpyDeviceToHost) {
    struct iovec parts[] = {{args + 1, 2 * sizeof *args}};
    return done(request(OP_DOWNLOAD, parts, 1, to, nbytes, NULL));
  }
  if (kind == cudaMemcpyDeviceToDevice) {
    struct iovec parts[] = {{args, sizeof args}};
    return done(request(OP_COPY, parts, 1, NULL, 0, NULL));
  }
  if (kind != cudaMemcpyHostToHost) return done(cudaErrorInvalidMemcpyDirection);
  memcpy(to, from, nbytes);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t nbytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream) {
  (void)stream;
  return cudaMemcpy(to, from, nbytes, kind);
}

cudaError_t cudaMemset(void *pointer, int value, size_t nbytes) {
  uint64_t args[] = {(uintptr_t)pointer, (uint8_t)value, 1, nbytes};
  struct iovec parts[] = {{args, sizeof args}};
  if (nbytes == 0) return cudaSuccess;
  return done(request(OP_FILL, parts, 1, NULL, 0, NULL));
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t nbytes,
                            cudaStream_t stream) {
  (void)stream;
  return cudaMemset(pointer, value, nbytes);
}

static CUresult encode_tiled(CUtensorMap *map, CUtensorMapDataType type,
                             cuuint32_t rank, void *address, const cuuint64_t *dims,
                             const cuuint64_t *strides, const cuuint32_t *box,
                             const cuuint32_t *element_strides,
                             CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                             CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill) {
  uint64_t args[7 + 4 * MAX_RANK] = {type,    rank, (uintptr_t)address, interleave,
                                     swizzle, l2,   fill};
  struct iovec parts[] = {{args, sizeof args}};
  if (rank < 1 || rank > MAX_RANK) return CUDA_ERROR_INVALID_VALUE;
  for (cuuint32_t i = 0; i < rank; ++i) {
    args[7 + i] = dims[i];
    args[7 + MAX_RANK + i] = i + 1 < rank ? strides[i] : 0;
    args[7 + 2 * MAX_RANK + i] = box[i];
    args[7 + 3 * MAX_RANK + i] = element_strides[i];
  }
  return driver_result(
      request(OP_ENCODE_TILED, parts, 1, map->opaque, sizeof map->opaque, NULL));
}

cudaError_t cudaGetDriverEntryPointByVersion(
    const char *symbol, void **function, unsigned version, unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *result) {
  (void)version, (void)flags;
  if (strcmp(symbol, "cuTensorMapEncodeTiled"))
    refuse("cudaGetDriverEntryPointByVersion", symbol);
  *function = (void *)encode_tiled;
  if (result) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
