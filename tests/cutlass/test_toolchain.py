"""test_toolchain: what is missing is named; what is built is built once."""

from __future__ import annotations

import sys
from importlib import metadata

import pytest

from fp4ref.cutlass import toolchain
from fp4ref.errors import InputError

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


def test_a_source_that_does_not_compile_says_why_and_leaves_nothing(
    tools, monkeypatch, tmp_path
):
    monkeypatch.setenv("FP4REF_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "wrong.cu"
    source.write_text("int main() { return undeclared; }\n")
    with pytest.raises(InputError, match=r"nvcc refused wrong\.cu") as caught:
        toolchain.build(tools, source)
    assert 'identifier "undeclared" is undefined' in str(caught.value)
    left = [p.suffix for p in (tmp_path / "cache" / "cutlass").iterdir()]
    assert left == [".lock"]
