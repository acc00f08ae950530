"""A kernel with one changed constant: compare names event, tile and coordinate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from gemm_cases import Case
from ptx_cases import needs_nvrtc

import fp4ref
from fp4ref.cuda_kernel import KernelCode, headers, on_sm
from fp4ref.cuda_kernel.build import ARCH, normalised
from fp4ref.cuda_kernel.header import PLAN
from fp4ref.cuda_kernel.sources import MAIN, expand, kernel_root
from fp4ref.device.compile import compile_cuda
from fp4ref.gemm.config import GemmConfig
from fp4ref.ptx import KernelTrap


@dataclass(frozen=True)
class Change:
    """`old` becomes `new` in `file`; `found` is what the difference must say."""

    name: str
    file: str
    old: str
    new: str
    found: tuple[str, ...]
    config: dict[str, Any] = field(default_factory=dict)


CHANGES = [
    Change(
        "A's box along K",
        "gemm/partition.cuh",
        "(WorkTile work, u32 k_tile) {\n    return {k_tile * TILE_K_COORDINATES,",
        "(WorkTile work, u32 k_tile) {\n    return {k_tile * 192,",
        ("A at m 0, n 0, k 256, batch 0: another box", "(192, 0, 0)"),
    ),
    Change(
        "B's box along N",
        "gemm/partition.cuh",
        "return {k_tile * TILE_K_COORDINATES, work.n * TILE_N + half * B_ROWS,",
        "return {k_tile * TILE_K_COORDINATES, work.n * 64 + half * B_ROWS,",
        ("B at m 0, n 128, k 0", "another box", "(0, 64, 0)"),
    ),
    Change(
        "SFA's box along K",
        "gemm/partition.cuh",
        "{0, k_tile * SF_ATOMS, work.m, work.l}",
        "{0, k_tile * 3, work.m, work.l}",
        ("SFA at m 0, n 0, k 256", "scale of row 0, k 256 to 271"),
    ),
    Change(
        "SFB's block of rows",
        "gemm/partition.cuh",
        "work.n * TILE_N / TILE_M, work.l}",
        "work.n * TILE_N / 256, work.l}",
        ("SFB at m 0, n 128, k 0", "scale of row"),
    ),
    Change(
        "the type of A in idesc: negated",
        "hardware/instr_descriptor.cuh",
        "return a_type << 7 |",
        "return 1u << 13 | a_type << 7 |",
        ("accumulator at m 0, n 0, k 0, K-block 0", "row 0, column 1 after k 64"),
    ),
    Change(
        "the first k-tile that accumulates",
        "gemm/mma_warp.cuh",
        "accumulate || i > 0 || k_block > 0",
        "accumulate && i > 0 || k_block > 0",
        ("accumulator at m 0, n 0, k 256, K-block 0", "after k 320"),
    ),
    Change(
        "rows of an operand's descriptor",
        "gemm/descriptors.cuh",
        "smem_descriptor(address, 16, 1024, SWIZZLE_128B)",
        "smem_descriptor(address, 16, 512, SWIZZLE_128B)",
        ("accumulator at m 0, n 0, k 0, K-block 0", "column 8 after k 64"),
    ),
    Change(
        "the step along K inside a stage",
        "gemm/descriptors.cuh",
        "ROW_NBYTES >> 4;",
        "ROW_NBYTES / 2 >> 4;",
        ("accumulator at m 0, n 0, k 0, K-block 1", "after k 128"),
    ),
    Change(
        "the swizzle of D",
        "layout/swizzle.cuh",
        "offset >> 7 &",
        "offset >> 8 &",
        ("D at m 0, n 0, batch 0", "row 1"),
    ),
    Change(
        "D's box along N",
        "gemm/partition.cuh",
        "PART_N + subtile * SUBTILE_N;",
        "PART_N + subtile * 64;",
        ("D at m 0, n 32, batch 0", "present in one run only"),
    ),
    Change(
        "one bit of a GELU coefficient",
        "numerics/activation.cuh",
        "from_bits(0x3d2aa9c1)",
        "from_bits(0x3d2ab9c1)",
        ("D at m ",),
        {"activation": "gelu"},
    ),
    Change(
        "1/6 in the recipe",
        "numerics/quantize.cuh",
        "from_bits(0x3e2aaaab)",
        "from_bits(0x3e800000)",
        ("D at m 0, n 0, batch 0", "row 0"),
        {"d_format": "nvfp4"},
    ),
    Change(
        "a row of SFD's atom",
        "layout/scale_factors.cuh",
        "row % 128 / 32 * 4",
        "row % 128 / 32 * 0",
        ("SFD at m ", "scale of row"),
        {"d_format": "nvfp4"},
    ),
]


@needs_nvrtc
@pytest.mark.rotating(5)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_compare_locates(change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(130, 150, 512, config=change.config)
    config = GemmConfig.nvfp4(**change.config)
    path, root = f"kernel/{change.file}", kernel_root()
    text = (root / path).read_text()
    assert text.count(change.old) == 1
    changed = headers(config) | {path: text.replace(change.old, change.new)}
    compiled = compile_cuda(expand(changed, root), ARCH, name=MAIN)
    code = KernelCode(normalised(compiled.ptx), "changed")
    monkeypatch.setattr(on_sm, "kernel_code", lambda config: code)
    # A wrong address may race too; here the values are asked for.
    changed_run = case.run("ptx", races="collect")
    outcome = fp4ref.compare(case.run("emulator"), changed_run)
    assert not outcome.ok
    for words in change.found:
        assert words in outcome.report()
    difference = outcome.first_difference
    assert difference is not None


@needs_nvrtc
def test_another_shared_base_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = headers(GemmConfig())
    assert changed[PLAN].count("BASE = 1024;") == 1
    changed[PLAN] = changed[PLAN].replace("BASE = 1024;", "BASE = 2048;")
    compiled = compile_cuda(expand(changed, kernel_root()), ARCH, name=MAIN)
    code = KernelCode(normalised(compiled.ptx), "changed")
    monkeypatch.setattr(on_sm, "kernel_code", lambda config: code)
    with pytest.raises(KernelTrap, match="trap reached"):
        Case(8, 8, 32).run("ptx")
