"""gemm_rungs: the kernel itself, small, with waits that give up.

The mbarrier wrappers of the kernel are replaced by bounded ones; every other line is as
it is. What must come out is the oracle's: no tile, stage or descriptor is in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fp4ref.attest.question import FOLDER, Part, Question, Words, as_bytes
from fp4ref.cuda_kernel.choices import one_changed_file
from fp4ref.cuda_kernel.on_device import kernel_call
from fp4ref.cuda_kernel.sources import kernel_root
from fp4ref.evidence import oracle
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine
from fp4ref.layout import swizzle_scales
from fp4ref.numerics import pack_e2m1
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.quantize import quantize

MBARRIER = "kernel/hardware/mbarrier.cuh"


def bounded_mbarrier() -> str:
    """Return the kernel's mbarrier wrappers with a wait that gives up."""
    text = (kernel_root() / MBARRIER).read_text("utf-8")
    assert text.count("void mbarrier_try_wait(") == 1
    renamed = text.replace("mbarrier_try_wait", "endless_try_wait")
    return f'{renamed}#include "../{FOLDER.rpartition("/")[2]}/bounded_mbarrier.cuh"\n'


def default() -> Question:
    """Two tiles that reach over the edge of N, three k-tiles, D in float32."""
    return _question(GemmConfig(), (256, 64, 768), 31)


def nvfp4() -> Question:
    """D in NVFP4 with its scales."""
    return _question(GemmConfig.nvfp4(d_format="nvfp4"), (128, 256, 512), 32)


def pair() -> Question:
    """A pair of SMs for each tile of 256 rows."""
    config = GemmConfig.nvfp4(tile_m=256, cta_group=2, cluster_m=2)
    return _question(config, (256, 64, 512), 33)


def _question(config: GemmConfig, shape: tuple[int, int, int], seed: int) -> Question:
    m, n, k = shape
    rng = np.random.default_rng(seed)
    a, b = (
        quantize(rng.standard_normal((rows, k), np.float32) * 3, global_scale="auto")
        for rows in (m, n)
    )
    problem = GemmProblem(Machine(2), a, b, None, None, config)
    quantized = config.epilogue.d_format == "nvfp4"

    def text(soft: bool) -> str:
        return one_changed_file(config, {MBARRIER: bounded_mbarrier()}, soft=soft)

    return Question(
        text,
        lambda soft: kernel_call(problem, soft=soft),
        _parts(config, a, b, (m, n), quantized),
        identity=_changed(config),
        sms=2,
    )


def _changed(config: GemmConfig) -> str:
    """Name the fields that are not as by default: a new field asks nothing new."""
    usual = GemmConfig().all_asked()
    asked = config.all_asked().items()
    return ", ".join(f"{name}={x!r}" for name, x in asked if x != usual[name])


def _parts(
    config: GemmConfig,
    a: BlockScaled,
    b: BlockScaled,
    shape: tuple[int, int],
    quantized: bool,
) -> tuple[Part, ...]:
    m, n = shape

    def expected() -> oracle.Expected:
        return oracle.expected(a, b, config=config)

    def d() -> Words:
        found: Any = expected().d
        return as_bytes(pack_e2m1(found) if quantized else found).view(np.uint32)

    def sfd() -> Words:
        found = expected().sfd
        assert found is not None
        return as_bytes(swizzle_scales(found)).view(np.uint32)

    if not quantized:
        return (Part("D", "D", 0, m * n, d, (("row", m), ("column", n))),)
    return (
        Part("D", "D", 0, m * n // 8, d, (("row", m), ("eight columns", n // 8))),
        Part("SFD", "SFD", 0, m * n // 64, sfd),
    )
