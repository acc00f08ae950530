"""A trace holds its kernel's plan, and its readers read it as it was planned."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fp4ref
from fp4ref import GemmConfig
from fp4ref.errors import TraceError
from fp4ref.gemm.plan import plan
from fp4ref.trace import RecordedPlan, Trace

CONFIGS = [
    GemmConfig(),
    GemmConfig.example_72b(),
    GemmConfig.nvfp4(tile_n=64, d_format="bf16", c_format="f16", beta=0.5, stages=3),
    GemmConfig.nvfp4(scheduler="static", scale_buffers=1),
    GemmConfig.nvfp4(operand_format="mxfp4"),
    GemmConfig.nvfp4(operand_format="mxfp6_e3m2"),
    GemmConfig.nvfp4(operand_format="bf16"),
]


def meta_of(config: GemmConfig) -> dict[str, Any]:
    """Return the plan as a trace file gives it back."""
    found: dict[str, Any] = json.loads(json.dumps({"plan": plan(config).to_dict()}))
    return found


@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_what_is_read_is_what_was_planned(config: GemmConfig) -> None:
    p, found = plan(config), RecordedPlan.required(meta_of(config))
    own = {"roles", "smem", "tmem", "smem_end", "tmem_end", "tile_scheduler"}
    same = {each.name for each in fields(RecordedPlan)} - own
    for name in same - {"d_format", "sfd_format", "operand_swizzle"}:
        assert getattr(found, name) == getattr(p, name), name
    assert (found.d_format, found.tile_scheduler) == (
        config.epilogue.d_format,
        config.tiles.scheduler,
    )
    assert found.sfd_format == config.epilogue.sfd_format.name
    assert found.operand_swizzle == p.operand_swizzle.name
    assert (found.smem_end, found.tmem_end) == (p.smem.end, p.tmem.end)
    assert found.k_tiles(p.tile_k + 1) == p.k_tiles(p.tile_k + 1) == 2
    assert found.mma_k * p.k_blocks == p.tile_k
    for buffer in p.buffers:
        stages = [part for part in found.smem if part.name == buffer.label]
        tile = buffer.name not in ("clc_response", "tmem_pointer")
        if buffer.lies_in:
            assert p.smem[buffer.name] == p.smem[buffer.lies_in]
            continue
        assert len(stages) == buffer.stages * (tile and buffer.nbytes > 0)
        for part in stages:
            offset = p.smem[buffer.name] + part.stage * buffer.nbytes
            assert (part.offset, part.nbytes) == (offset, buffer.nbytes)
    columns = {part.column: part.columns for part in found.tmem}
    at = 0
    for first in sorted(columns):
        assert first == at, "a part of TMEM begins where the one before ends"
        at += columns[first]
    assert at == found.tmem_end
    of_sfb = {part.column for part in found.tmem if part.kind == "sfb"}
    assert of_sfb == (set(p.tmem.sfb) if p.sf_atoms else set())


def test_roles_are_by_warp() -> None:
    found = RecordedPlan.required(meta_of(GemmConfig()))
    names = ["MMA", "SCHEDULER", "MAINLOOP_LOAD", "EPILOGUE_LOAD", *["EPILOGUE"] * 4]
    assert found.roles == {f"warp{i}": name for i, name in enumerate(names)}
    assert found.warps_of("EPILOGUE") == 4


def test_the_plan_has_no_sentences() -> None:
    p = plan()
    assert set(p.why) < set(p.to_dict())
    text = json.dumps(p.to_dict())
    assert not [
        w for w in p.why.values() if len(w.sentence) > 20 and w.sentence in text
    ]
    assert len(text) < 6144


@pytest.fixture(scope="module")
def run() -> fp4ref.Run:
    a, b = (fp4ref.quantize(np.ones((n, 64), np.float32)) for n in (40, 24))
    return fp4ref.run(a, b, config=GemmConfig.nvfp4(tile_n=64))


def test_every_form_of_a_trace_keeps_it(run: fp4ref.Run, tmp_path: Path) -> None:
    assert run.trace is not None
    wanted = plan(run.config).to_dict()
    assert run.meta["plan"] == run.trace.meta["plan"] == wanted
    loaded = Trace.load(run.trace.save(tmp_path / "kept"))
    assert loaded.meta["plan"] == wanted
    assert loaded.to_perfetto()["otherData"]["plan"] == wanted


def test_the_compiled_kernel_has_it() -> None:
    other = fp4ref.run(
        *(fp4ref.quantize(np.ones((n, 64), np.float32)) for n in (40, 24)),
        backend="ptx",
    )
    assert other.meta["plan"] == plan().to_dict()


def test_a_trace_without_a_plan_says_so() -> None:
    assert RecordedPlan.of({"shape": {}}) is None
    with pytest.raises(TraceError, match="does not hold its kernel's plan"):
        RecordedPlan.required({})


def without_tile(found: dict[str, Any]) -> None:
    del found["tile_n"]


def tile_of_text(found: dict[str, Any]) -> None:
    found["tile_n"] = "128"


def warps_of_numbers(found: dict[str, Any]) -> None:
    found["warps"] = [1, 2]


def no_offset(found: dict[str, Any]) -> None:
    del found["smem"]["offsets"]["b"]


def no_k_blocks(found: dict[str, Any]) -> None:
    found["k_blocks"] = 0


def too_many_stages(found: dict[str, Any]) -> None:
    found["buffers"][4]["stages"] = 1 << 40


def stages_beyond_the_end(found: dict[str, Any]) -> None:
    found["buffers"][4]["stages"] += 8


def columns_beyond_the_end(found: dict[str, Any]) -> None:
    found["tmem"]["sfb"][1] += 16


def column_of_text(found: dict[str, Any]) -> None:
    found["tmem"]["sfb"][1] = "304"


@pytest.mark.parametrize(
    "change",
    [
        without_tile,
        tile_of_text,
        warps_of_numbers,
        no_offset,
        no_k_blocks,
        too_many_stages,
        stages_beyond_the_end,
        columns_beyond_the_end,
        column_of_text,
    ],
)
def test_a_plan_that_cannot_be_read_is_refused(
    change: Callable[[dict[str, Any]], None],
) -> None:
    meta = meta_of(GemmConfig())
    change(meta["plan"])
    with pytest.raises(TraceError, match="not one that this release reads"):
        RecordedPlan.of(meta)
    with pytest.raises(TraceError, match="not one that this release reads"):
        RecordedPlan.of({"plan": "128x128x256"})
