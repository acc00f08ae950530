/* pipes: requests to the process that started the program, and its answers. */

#include "runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

cudaError_t sticky_error;
static int to_server = -1, from_server = -1, num_sms;

void end_program(const char *why) {
  fflush(NULL);
  fprintf(stderr, "fp4ref's CUDA runtime: %s\n", why);
  _exit(REFUSED);
}

static void connect_once(void) {
  const char *pipes = getenv("FP4REF_CUDART");
  if (to_server >= 0) return;
  if (!pipes || sscanf(pipes, "%d,%d,%d", &from_server, &to_server, &num_sms) != 3)
    end_program("start this program through fp4ref.cutlass");
}

int multiprocessors(void) {
  connect_once();
  return num_sms;
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

cudaError_t request(enum op op, const struct iovec *parts, int num_parts, void *answer,
                    size_t room, size_t *received) {
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
  if (header.status == cudaErrorLaunchFailure) sticky_error = cudaErrorLaunchFailure;
  return (cudaError_t)header.status;
}

void refuse(const char *call, const char *detail) {
  char text[512];
  int n = snprintf(text, sizeof text, "%s%s%s", call, *detail ? ": " : "", detail);
  struct iovec parts[] = {{text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1}};
  request(OP_REFUSE, parts, 1, NULL, 0, NULL);
  end_program(text);
}
