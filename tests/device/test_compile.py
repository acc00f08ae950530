"""compile: targets and their hints, errors with the compiler's lines, the cache."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from fp4ref.cuda_kernel.build import kernel_code
from fp4ref.device import CompileError, arch_of, compile_cuda
from fp4ref.device import compile as compiler
from fp4ref.errors import InputError
from fp4ref.gemm.config import GemmConfig

KERNEL = 'extern "C" __global__ void one(int* p) { p[threadIdx.x] = 1; }'
FENCE = 'extern "C" __global__ void f() { asm("tcgen05.fence::after_thread_sync;"); }'


@pytest.fixture
def nvrtc(tmp_path, monkeypatch):
    if compiler.nvrtc_version() is None:
        pytest.skip("NVRTC is not installed: pip install 'fp4ref[cuda]'")
    monkeypatch.setenv("FP4REF_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("capability", "arch"),
    [
        ((9, 0), "sm_90a"),
        ((10, 0), "sm_100a"),
        ((10, 3), "sm_103a"),
        ((11, 0), "sm_110a"),
    ],
)
def test_targets(capability, arch):
    assert arch_of(capability) == arch
    assert compiler.require_arch(arch) == arch


@pytest.mark.parametrize("capability", [(12, 0), (12, 1)])
def test_the_other_blackwell_is_explained(capability):
    with pytest.raises(InputError, match="neither tcgen05 nor TMEM"):
        arch_of(capability)


@pytest.mark.parametrize("capability", [(8, 0), (8, 9), (13, 0)])
def test_other_cards_are_refused(capability):
    with pytest.raises(InputError, match=r"need one of 9\.0, 10\.0"):
        arch_of(capability)


@pytest.mark.parametrize(
    ("arch", "hint"),
    [
        ("sm_100", "sm_100a.*suffix"),
        ("compute_100a", "sm_100a.*empty cubin"),
        ("sm_80", "say sm_90a"),
    ],
)
def test_a_target_without_the_instructions_is_refused(arch, hint):
    with pytest.raises(InputError, match=hint):
        compile_cuda(KERNEL, arch)


def test_ptx_and_cubin_come_from_one_compilation(nvrtc):
    made = compile_cuda(KERNEL)
    assert ".target sm_90a" in made.ptx
    assert made.cubin.startswith(b"\x7fELF")


def test_blackwell_instructions_compile_only_for_blackwell(nvrtc):
    assert "tcgen05.fence" in compile_cuda(FENCE, "sm_100a").ptx
    with pytest.raises(CompileError, match=r"tcgen05\.fence"):
        compile_cuda(FENCE, "sm_90a")


def test_an_empty_log_leaves_the_bytes_that_python_shares_alone(nvrtc):
    compile_cuda(KERNEL, "sm_100a", name="no_log.cu")
    assert [bytes([n])[0] for n in range(256)] == [*range(256)]


def test_an_error_has_the_lines_of_the_compiler(nvrtc):
    with pytest.raises(CompileError, match=r'broken\.cu\(1\): error: identifier "q"'):
        compile_cuda('extern "C" __global__ void k() { q = 1; }', name="broken.cu")


def test_the_same_source_compiles_once(nvrtc, monkeypatch):
    first = compile_cuda(KERNEL)
    monkeypatch.setattr(compiler, "_compile", None)
    assert compile_cuda(KERNEL) == first


def test_an_own_header_is_part_of_the_content(nvrtc, tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    made = []
    for value in (1, 2):
        (folder / "value.cuh").write_text(f"#define VALUE {value}\n")
        text = '#include "value.cuh"\n' + KERNEL.replace("= 1", "= VALUE")
        made.append(compile_cuda(text, include=[folder]).ptx)
    assert made[0] != made[1]


@pytest.fixture
def old_nvrtc(monkeypatch):
    """NVRTC 13.0, which refuses the kernel's ``__builtin_offsetof``."""
    old = SimpleNamespace(
        nvrtcResult=SimpleNamespace(NVRTC_SUCCESS=0), nvrtcVersion=lambda: (0, 13, 0)
    )
    right = compiler.importlib.import_module

    def import_module(name, package=None):
        return old if name == "cuda.bindings.nvrtc" else right(name, package)

    monkeypatch.setattr(compiler.importlib, "import_module", import_module)


def test_an_old_nvrtc_is_named_with_what_is_needed(old_nvrtc):
    assert compiler.nvrtc_version() is None
    said = (
        "NVRTC 13.0 is too old for the kernel, which needs 13.4 or later; run: pip "
        "install 'fp4ref[cuda]'"
    )
    assert compiler.why_no_nvrtc() == said
    with pytest.raises(CompileError) as found:
        compile_cuda(KERNEL)
    assert str(found.value) == said


def test_with_an_old_nvrtc_the_packaged_kernels_run_and_others_are_refused(old_nvrtc):
    assert kernel_code(GemmConfig()).origin == "packaged"
    with pytest.raises(InputError, match=r"NVRTC 13\.0 is too old .* holds the kernel"):
        kernel_code(GemmConfig.nvfp4(tile_n=64))


def test_the_oldest_nvrtc_is_that_of_the_extra():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    found = re.search(r'"cuda-toolkit\[nvrtc[^]]*\]>=(\d+)\.(\d+)', text)
    assert found is not None
    assert tuple(map(int, found.groups())) == compiler.OLDEST_NVRTC
