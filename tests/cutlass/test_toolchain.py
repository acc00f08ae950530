"""test_toolchain: what is missing is named; what is built is built once."""

from __future__ import annotations

import sys
from importlib import metadata

import pytest

from fp4ref.cutlass import toolchain
from fp4ref.cutlass.cudart import Runtime
from fp4ref.cutlass.process import run_program
from fp4ref.errors import InputError
from fp4ref.hardware.machine import Machine

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")


@on_linux
def test_missing_packages_are_named_with_the_command(monkeypatch):
    def distribution(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", distribution)
    with pytest.raises(InputError, match="nvidia-cutlass, nvidia-cuda-nvcc") as caught:
        toolchain.find_toolchain()
    assert "pip install 'fp4ref[cutlass]'" in str(caught.value)


@on_linux
def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setattr(toolchain, "missing_packages", list)
    monkeypatch.setenv("NVCC_CCBIN", "no-such-compiler")
    with pytest.raises(InputError, match="the C\\+\\+ compiler no-such-compiler"):
        toolchain.find_toolchain()


def test_another_system_is_refused(monkeypatch):
    monkeypatch.setattr(toolchain.sys, "platform", "win32")
    with pytest.raises(InputError, match="needs Linux, and this is win32"):
        toolchain.find_toolchain()


def test_the_parts_are_where_the_packages_put_them(tools):
    assert tools.nvcc.is_file()
    assert tools.cudart.name.startswith("libcudart.so.")
    assert (tools.include / "cuda.h").is_file()
    assert (tools.cutlass / "include/cutlass/cutlass.h").is_file()
    assert tools.release.count(".") == 2


def test_a_program_is_built_once(tools, monkeypatch, tmp_path):
    monkeypatch.setenv("FP4REF_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "tiny.cu"
    source.write_text(
        "__global__ void k(int *p) { *p = 1; }\n"
        "int main() { k<<<1, 1>>>(nullptr); return 0; }\n"
    )
    said: list[str] = []
    first = toolchain.build(tools, source, progress=said.append)
    assert "compiling tiny.cu" in said[0]
    assert len(said) == 2
    assert ".entry _Z1kPi" in first.ptx.read_text()
    assert toolchain.build(tools, source, progress=said.append) == first
    assert len(said) == 2
    kept = sorted(p.name for p in first.program.parent.iterdir())
    assert kept == ["kernels.ptx", "program"]


DRIVER_CALLS = r"""
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdio>
int main() {
  unsigned *words, found[4];
  const char *said;
  cudaMalloc(&words, 16);
  cudaMemset(words, 0xff, 16);
  CUdeviceptr at = (CUdeviceptr)words;
  CUresult aligned = cuMemsetD32Async(at + 4, 0x01020304, 2, 0);
  CUresult between = cuMemsetD32Async(at + 2, 5, 1, 0);
  cudaMemcpy(found, words, 16, cudaMemcpyDefault);
  for (unsigned word : found) printf("%08x ", word);
  CUresult known = cuGetErrorString(between, &said);
  printf("%d %d %s\n", aligned, known, said);
  CUresult unknown = cuGetErrorString((CUresult)12345, &said);
  printf("%d %d\n", unknown == CUDA_ERROR_INVALID_VALUE, said == nullptr);
  return 0;
}
"""


def test_a_program_may_call_the_driver(tools, stand_in, monkeypatch, tmp_path):
    """Both names of the stand-in are one library: memory of one is the other's."""
    monkeypatch.setenv("FP4REF_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "driver.cu"
    source.write_text(DRIVER_CALLS)
    built = toolchain.build(tools, source)
    runtime = Runtime(Machine(), {}, lambda *args: None)
    ended = run_program(built.program, [], stand_in, runtime)
    words = "ffffffff 01020304 01020304 ffffffff"
    assert ended.output == f"{words} 0 0 invalid argument\n1 1\n"
    assert ended.status == 0


def test_a_driver_call_that_is_not_there_is_named(tools, monkeypatch, tmp_path):
    monkeypatch.setenv("FP4REF_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "driver.cu"
    source.write_text("#include <cuda.h>\nint main() { return cuInit(0); }\n")
    with pytest.raises(InputError, match="undefined reference to `cuInit'"):
        toolchain.build(tools, source)


def test_a_source_that_does_not_compile_says_why_and_leaves_nothing(
    tools, monkeypatch, tmp_path
):
    monkeypatch.setenv("FP4REF_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "wrong.cu"
    source.write_text("int main() { return undeclared; }\n")
    with pytest.raises(InputError, match=r"nvcc refused wrong\.cu") as caught:
        toolchain.build(tools, source)
    assert 'identifier "undeclared" is undefined' in str(caught.value)
    left = (tmp_path / "cache" / "cutlass").glob("wrong-*")
    assert [path.suffix for path in left] == [".lock"]
