"""test_cuda_program: small programs run with the stand-in runtime, and badly."""

from __future__ import annotations

import os
import subprocess

import pytest

from fp4ref.cutlass.cudart import Runtime
from fp4ref.cutlass.process import cuda_symbols, run_program
from fp4ref.errors import InputError, NotModelled
from fp4ref.hardware.machine import Machine


def test_megabytes_survive_the_round_trip(run_host):
    ended, runtime = run_host("""
        size_t n = 5000001;
        unsigned char *a = malloc(n), *b = malloc(n);
        for (size_t i = 0; i < n; ++i) a[i] = (unsigned char)(i * 7 + i / 251);
        void *d, *e;
        cudaMalloc(&d, n); cudaMalloc(&e, n);
        cudaMemcpy(d, a, n, cudaMemcpyHostToDevice);
        cudaMemcpy(e, d, n, cudaMemcpyDeviceToDevice);
        cudaMemset(d, 0, n);
        cudaMemcpyAsync(b, e, n, cudaMemcpyDeviceToHost, 0);
        cudaFree(d); cudaFree(e);
        puts(memcmp(a, b, n) ? "different" : "equal");
    """)
    assert (ended.output, ended.reason) == ("equal\n", "")
    assert [c.allocation for c in runtime.copies] == [0, 1]


def test_the_direction_of_a_copy_can_be_left_out(run_host):
    ended, runtime = run_host("""
        char a[5000] = "text", b[5000];
        void *d, *e;
        cudaMalloc(&d, 5000); cudaMalloc(&e, 5000);
        cudaMemcpy(d, a, 5000, cudaMemcpyDefault);
        cudaMemcpy(e, d, 5000, cudaMemcpyDefault);
        cudaMemcpy(b, (char *)e + 1, 4999, cudaMemcpyDefault);
        cudaMemcpy(a, b, 5, cudaMemcpyDefault);
        printf("%s %d", a, cudaMemcpy(d, a, 5, 7));
    """)
    assert ended.output == "ext 21"
    assert [c.direction for c in runtime.copies] == ["to device", "to host"]


def test_the_device_is_a_b200(run_host):
    ended, _ = run_host("""
        struct cudaDeviceProp p;
        int smem;
        cudaGetDeviceProperties(&p, 0);
        cudaDeviceGetAttribute(&smem, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
        printf("%d.%d %d %d", p.major, p.minor, p.multiProcessorCount, smem);
    """)
    assert ended.output == "10.0 148 232448"


def test_errors_are_remembered_once(run_host):
    ended, _ = run_host("""
        void *d;
        cudaMalloc(&d, 16);
        cudaFree((char *)d + 1);
        printf("%s, ", cudaGetErrorName(cudaPeekAtLastError()));
        printf("%s, ", cudaGetErrorString(cudaGetLastError()));
        printf("%s", cudaGetErrorString(cudaGetLastError()));
    """)
    assert ended.output == "cudaErrorInvalidValue, invalid argument, no error"


def test_after_a_fault_every_call_fails(run_host):
    ended, runtime = run_host("""
        void *d;
        char a[32];
        cudaMalloc(&d, 16);
        cudaMemcpy(d, a, 32, cudaMemcpyHostToDevice);
        printf("%d %d", cudaMalloc(&d, 16), cudaDeviceSynchronize());
    """)
    assert ended.output == "719 719"
    assert "32 bytes from" in str(runtime.fault)


def test_events_measure_the_hosts_time(run_host):
    ended, _ = run_host("""
        cudaEvent_t a, b;
        float ms;
        cudaEventCreate(&a); cudaEventCreate(&b);
        cudaEventRecord(a, 0); usleep(20000); cudaEventRecord(b, 0);
        cudaEventSynchronize(b);
        cudaEventElapsedTime(&ms, a, b);
        cudaEventDestroy(a); cudaEventDestroy(b);
        puts(ms >= 20 && ms < 10000 ? "good" : "bad");
    """)
    assert ended.output == "good\n"


def test_an_unknown_function_is_named_and_nothing_runs(run_host):
    with pytest.raises(NotModelled, match="cudaMallocHost, cudaProfilerStart") as fault:
        run_host("""
            puts("started");
            void *d;
            cudaProfilerStart();
            cudaMallocHost(&d, 16);
        """)
    assert "started" not in str(fault.value)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (
            "struct cudaLaunchAttribute_st t = {cudaLaunchAttributeCooperative}; "
            "cudaLaunchConfig_t c = {.attrs = &t, .numAttrs = 1}; "
            "cudaLaunchKernelExC(&c, 0, 0)",
            "cudaLaunchKernelExC: launch attribute 2",
        ),
        (
            'cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &f, 12000, 0, 0)',
            "cudaGetDriverEntryPointByVersion: cuStreamWaitValue32",
        ),
        (
            "cudaDeviceGetAttribute(&i, cudaDevAttrEccEnabled, 0)",
            "cudaDeviceGetAttribute: attribute 32",
        ),
    ],
)
def test_an_unknown_use_is_named_and_ends_the_program(run_host, call, named):
    ended, runtime = run_host(f"""
        void *f; int i;
        printf("before, ");
        {call};
        printf("after");
    """)
    assert ended.status == 70
    assert ended.output == f"before, fp4ref's CUDA runtime: {named}\n"
    assert isinstance(runtime.fault, NotModelled)
    assert named in str(runtime.fault)


def test_a_crash_is_reported(run_host):
    ended, _ = run_host("""
        void *d;
        cudaMalloc(&d, 16);
        puts("here"); fflush(stdout);
        memset(d, 0, 16);
    """)
    assert ended.output == "here\n"
    assert ended.reason == "the program was killed by SIGSEGV"


def test_an_exit_status_is_reported(run_host):
    ended, _ = run_host("cudaFree(0); exit(3);")
    assert (ended.status, ended.reason) == (3, "the program ended with exit status 3")


def test_a_silent_program_is_ended(run_host):
    ended, _ = run_host('cudaFree(0); puts("x"); fflush(stdout); sleep(60);', 0.5)
    assert ended.output == "x\n"
    assert "made no CUDA call for 0.5 s" in ended.reason


def test_a_hook_that_raises_ends_the_program(run_host):
    def on_copy(copy: object, data: bytes) -> bytes:
        raise ZeroDivisionError("the caller's own bug")

    body = "void *d; int a; cudaMalloc(&d, 4); cudaMemcpy(d, &a, 4, 1); sleep(60);"
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ZeroDivisionError, match="the caller's own bug"):
        run_host(body, on_copy=on_copy)
    assert len(os.listdir("/proc/self/fd")) == before


def test_alone_the_program_says_how_to_start_it(compile_host, stand_in):
    program = compile_host("void *d; cudaMalloc(&d, 4);")
    environment = {"LD_LIBRARY_PATH": str(stand_in.parent)}
    done = subprocess.run([program], env=environment, capture_output=True, text=True)
    assert done.returncode == 70
    assert "start this program through fp4ref.cutlass" in done.stderr


def test_what_is_no_program_is_refused(stand_in, tmp_path):
    text = tmp_path / "text"
    text.write_text("no program")
    with pytest.raises(InputError, match="text"):
        cuda_symbols(text, "undefined")
    with pytest.raises(InputError, match="text"):
        run_program(text, [], stand_in, Runtime(Machine(), {}, lambda *a: None))
