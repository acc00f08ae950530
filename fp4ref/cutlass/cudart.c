/* cudart: a CUDA runtime without a GPU, which hands every call to fp4ref.

   A program linked with -cudart shared finds this library in place of NVIDIA's.
   Memory, tensor maps and launches are requests to the process that started the
   program; cudart.py answers them. A request is a header and its bytes, through one
   pipe; the answer is the same through another. The numbers of the two file
   descriptors are in FP4REF_CUDART.

   A call that this library does not model ends the program, and says its name. */

#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The same numbers as `Op` in cudart.py. */
enum op {
  OP_REGISTER = 1,
  OP_MALLOC,
  OP_FREE,
  OP_UPLOAD,
  OP_DOWNLOAD,
  OP_COPY,
  OP_FILL,
  OP_LAUNCH,
  OP_ENCODE_TILED,
  OP_REFUSE,
};

struct header {
  uint32_t op;     /* in an answer: 0 */
  int32_t status;  /* in an answer: a cudaError_t; else 0 */
  uint64_t nbytes; /* that follow */
};

#define MAX_PARAMS 64
#define MAX_RANK 5
#define REFUSED 70 /* exit status: EX_SOFTWARE */
#define DEFAULT_SMEM (48 * 1024)
#define MAX_SMEM (227 * 1024)
#define PRINTF_NBYTES (1 << 20) /* as in cudart.py */

struct kernel {
  struct kernel *next;
  const void *host_function;
  uint64_t id;
  int max_dynamic_smem;
  size_t num_params;
  uint32_t param_nbytes[MAX_PARAMS];
};

static int to_server = -1, from_server = -1;
static struct kernel *kernels;
static uint64_t num_kernels; /* ids are given in the order of registration */
static cudaError_t last_error, sticky_error;

static cudaError_t done(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

/* ---- the two pipes ---- */

static void end_program(const char *why) {
  fflush(NULL);
  fprintf(stderr, "fp4ref's CUDA runtime: %s\n", why);
  _exit(REFUSED);
}

static void connect_once(void) {
  const char *pipes = getenv("FP4REF_CUDART");
  if (to_server >= 0) return;
  if (!pipes || sscanf(pipes, "%d,%d", &from_server, &to_server) != 2)
    end_program("start this program through fp4ref.cutlass");
}

static void send_all(const void *data, size_t nbytes) {
  for (const char *at = data; nbytes;) {
    ssize_t n = write(to_server, at, nbytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) end_program("fp4ref has gone away");
    at += n, nbytes -= (size_t)n;
  }
}

static void receive_all(void *data, size_t nbytes) {
  for (char *at = data; nbytes;) {
    ssize_t n = read(from_server, at, nbytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) end_program("fp4ref has gone away");
    at += n, nbytes -= (size_t)n;
  }
}

/* Send `parts`, wait, and put at most `room` bytes of the answer in `answer`. */
static cudaError_t request(enum op op, const struct iovec *parts, int num_parts,
                           void *answer, size_t room, size_t *received) {
  struct header header = {.op = op};
  if (sticky_error) return sticky_error;
  connect_once();
  for (int i = 0; i < num_parts; ++i) header.nbytes += parts[i].iov_len;
  send_all(&header, sizeof header);
  for (int i = 0; i < num_parts; ++i) send_all(parts[i].iov_base, parts[i].iov_len);
  receive_all(&header, sizeof header);
  if (header.nbytes > room) end_program("an answer is larger than its room");
  receive_all(answer, header.nbytes);
  if (received) *received = header.nbytes;
  /* As on a GPU: after a fault in a kernel every call fails. */
  if (header.status == cudaErrorLaunchFailure) sticky_error = cudaErrorLaunchFailure;
  return (cudaError_t)header.status;
}

/* Tell fp4ref which call is not modelled, and end the program. */
static void refuse(const char *call, const char *detail) {
  char text[512];
  int n = snprintf(text, sizeof text, "%s%s%s", call, *detail ? ": " : "", detail);
  struct iovec parts[] = {{text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1}};
  request(OP_REFUSE, parts, 1, NULL, 0, NULL);
  end_program(text);
}

/* ---- registration: runs before main ---- */

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

/* ---- launches ---- */

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

static cudaError_t launch(const void *function, dim3 grid, dim3 block, dim3 cluster,
                          size_t smem, void **args) {
  static char printed[PRINTF_NBYTES];
  size_t num_printed = 0;
  struct kernel *kernel = find_kernel(function);
  if (!kernel) return done(cudaErrorInvalidDeviceFunction);
  if (smem > (size_t)kernel->max_dynamic_smem) return done(cudaErrorInvalidValue);
  uint64_t shape[] = {kernel->id, grid.x,    grid.y,    grid.z,    block.x, block.y,
                      block.z,    cluster.x, cluster.y, cluster.z, smem};
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
  return launch(kernel, grid, block, (dim3){1, 1, 1}, smem, args);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **args) {
  dim3 cluster = {1, 1, 1};
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute *attribute = &config->attrs[i];
    char detail[64];
    switch (attribute->id) {
      case cudaLaunchAttributeClusterDimension:
        cluster.x = attribute->val.clusterDim.x;
        cluster.y = attribute->val.clusterDim.y;
        cluster.z = attribute->val.clusterDim.z;
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
  return launch(function, config->gridDim, config->blockDim, cluster,
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

/* ---- memory ---- */

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
  uint64_t args[] = {(uintptr_t)pointer, (uint8_t)value, nbytes};
  struct iovec parts[] = {{args, sizeof args}};
  if (nbytes == 0) return cudaSuccess;
  return done(request(OP_FILL, parts, 1, NULL, 0, NULL));
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t nbytes,
                            cudaStream_t stream) {
  (void)stream;
  return cudaMemset(pointer, value, nbytes);
}

/* ---- tensor maps ---- */

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
  cudaError_t status =
      request(OP_ENCODE_TILED, parts, 1, map->opaque, sizeof map->opaque, NULL);
  return status == cudaSuccess ? CUDA_SUCCESS
         : status == cudaErrorInvalidValue ? CUDA_ERROR_INVALID_VALUE
                                           : CUDA_ERROR_LAUNCH_FAILED;
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

/* ---- the device: a B200 ---- */

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
  props->multiProcessorCount = 148;
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

/* ---- order: every call here is synchronous ---- */

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

/* ---- errors ---- */

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
