"""One file on each side adds a fusion node: emulator and kernel find it by itself."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from raw_bits import assert_bits_equal
from wide_operands import wide_pair

import fp4ref
import fp4ref.gemm.fusion as room
from fp4ref import GemmConfig
from fp4ref.cuda_kernel import choices
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.cuda_kernel.sources import kernel_root
from fp4ref.errors import ConfigError
from fp4ref.gemm.fusion import registry

PYTHON = '''
from dataclasses import dataclass

import numpy as np

from fp4ref.gemm.fusion.node import Unary


@dataclass(frozen=True, repr=False)
class Magnitude(Unary):
    """PTX: ``abs.f32``."""

    activation = "magnitude"

    def visit(self, v, *inputs):
        return np.abs(inputs[0])
'''
CUDA = """
// magnitude: |x|.
#pragma once
#include "node.cuh"

template <class A>
struct Magnitude : Unary<A> {
    __device__ __forceinline__ float visit(const Visit& v) {
        return fabsf(this->a.visit(v));
    }
};
"""


@pytest.fixture
def magnitude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put the two files where the two sides look."""
    python = tmp_path / "nodes"
    python.mkdir()
    (python / "magnitude.py").write_text(PYTHON)
    monkeypatch.setattr(room, "__path__", [*room.__path__, str(python)])
    shutil.copytree(kernel_root() / "kernel", tmp_path / "kernel")
    (tmp_path / "kernel/gemm/fusion/magnitude.cuh").write_text(CUDA)
    monkeypatch.setattr(choices, "kernel_root", lambda: tmp_path)
    registry.nodes.cache_clear()
    registry.activations.cache_clear()
    yield
    registry.nodes.cache_clear()
    registry.activations.cache_clear()


@pytest.mark.usefixtures("magnitude")
def test_one_file_each_side_adds_a_fusion_node() -> None:
    assert "Magnitude" in registry.nodes()
    a, b = wide_pair(3, 130, 70, 96)
    plain = fp4ref.run(a, b, sms=1, trace=False)
    assert (plain.d < 0).any()
    config = GemmConfig.nvfp4(activation="magnitude")
    assert repr(fp4ref.plan(config).fusion).startswith("Magnitude<Fma<")
    emulator = fp4ref.run(a, b, config=config, sms=1)
    assert_bits_equal(emulator.d, np.abs(plain.d))
    assert '#include "fusion/magnitude.cuh"' in choices.headers(config)[choices.PARTS]
    if nvrtc_version() is None:
        pytest.skip("emulator only: the kernel needs NVRTC: pip install 'fp4ref[cuda]'")
    kernel = fp4ref.run(a, b, config=config, sms=1, backend="ptx")
    outcome = fp4ref.compare(emulator, kernel)
    assert outcome.ok, outcome.report()


def test_without_its_file_it_is_refused() -> None:
    with pytest.raises(ConfigError, match="one of None, gelu, relu, silu"):
        fp4ref.plan(GemmConfig.nvfp4(activation="magnitude"))
