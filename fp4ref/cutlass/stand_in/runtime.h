/* runtime: a CUDA runtime without a GPU, which hands every call to fp4ref.

   A program linked with -cudart shared finds this library in place of NVIDIA's.
   Memory, tensor maps and launches are requests to the process that started the
   program; cudart.py answers them. A request is a header and its bytes, through one
   pipe; the answer is the same through another. The numbers of the two file
   descriptors are in FP4REF_CUDART.

   A call that this library does not model ends the program, and says its name. */

#ifndef FP4REF_RUNTIME_H
#define FP4REF_RUNTIME_H

#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

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

/* After a fault in a kernel every call fails with it, as on a GPU. */
extern cudaError_t sticky_error;

/* Keep an error for cudaGetLastError, and return it. */
cudaError_t done(cudaError_t status);

/* The driver API's name of an error. */
CUresult driver_result(cudaError_t status);

/* Say why, and end the program. */
void end_program(const char *why);

/* How many SMs the program is told of. */
int multiprocessors(void);

/* Send `parts`, wait, and put at most `room` bytes of the answer in `answer`. */
cudaError_t request(enum op op, const struct iovec *parts, int num_parts, void *answer,
                    size_t room, size_t *received);

/* Tell fp4ref which call is not modelled, and end the program. */
void refuse(const char *call, const char *detail);

#endif
