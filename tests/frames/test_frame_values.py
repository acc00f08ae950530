"""CONSTRUCTED and COND frames: the numbers, written out."""

from __future__ import annotations

from typing import Any

import pytest
from frame_kinds import KINDS, ids

from fp4ref.errors import InputError
from fp4ref.frames import FrameKind, events_of, show
from fp4ref.gemm.config import GemmConfig
from fp4ref.trace import Trace

SHOWN: dict[str, dict[str, Any]] = {
    "1.1": {
        "stages": 4,
        "most_stages": 4,
        "a_bytes": 16384,
        "b_bytes": 16384,
        "sfa_bytes": 2048,
        "sfb_bytes": 2048,
        "stage_tx_bytes": 36864,
        "stage_bytes": 36992,
        "epilogue_bytes": 4 * 16384 + 2 * 1024,
        "smem_bytes": 1024 + 4 * 16384 + 4 * 36864,
    },
    "1.2": {
        "stages": 4,
        "full_count": 1,
        "empty_count": 1,
        "producer_warp": 2,
        "consumer_warp": 0,
        "transaction_bytes": 36864,
    },
    "1.3": {"full": [0, 8, 16, 24], "empty": [32, 40, 48, 56]},
    "1.5": {"cluster_1x1": 1, "cta_2_1_of_4x4": 0x44F4},
    "1.9": {
        "stages": 2,
        "full_count": 1,
        "empty_count": 128,
        "producer_warp": 0,
        "consumer_warp": 4,
    },
    "2.1": {
        "tiles_m": 16,
        "tiles_n": 16,
        "batches": 1,
        "tiles": 256,
        "grid": [16, 16, 1],
        "raster": "m",
    },
    "3.1": {
        name: {
            "type": "U4_ALIGN8B",
            "dims": [2048, 2048, 1],
            "stride_bytes": [1024, 2097152],
            "box": [256, 128, 1],
            "swizzle": "B128",
            "box_bytes": 16384,
        }
        for name in ("A", "B")
    },
    "3.2": {
        "coordinates": [256, 640, 0],
        "element": {"m": 640, "k": 256},
        "address_is_in": "tensor map",
        "byte_offset": 655488,
    },
    "3.3": {"A": [128, 256, 16, 8, 1], "B": [128, 256, 16, 8, 1]},
    "3.4": {
        name: {
            "type": "UINT16",
            "dims": [256, 32, 16, 1],
            "stride_bytes": [512, 16384, 262144],
            "box": [256, 4, 1, 1],
            "swizzle": "NONE",
            "box_bytes": 2048,
            "scales": [2048, 128],
            "tile": [128, 16],
        }
        for name in ("SFA", "SFB")
    },
    "3.5": {
        "mma": [128, 128, 64],
        "A": [[128, 64], 1, 4, 16, 8, 1],
        "B": [[128, 64], 1, 4, 16, 8, 1],
        "descriptor_high_word": 0x40004040,
        "k_block_step": 2,
    },
    "3.6": {
        "A": [[256 * i, 640, 0] for i in range(8)],
        "smem_A": [1024 + 4 * 16384 + 16384 * i for i in range(4)],
        "stage_of_k_tile": [0, 1, 2, 3, 0, 1, 2, 3],
    },
    "3.7": {
        "cluster_1x1": dict.fromkeys(("A", "SFA", "B", "SFB"), 1),
        "cta_2_1_of_4x4": {"A": 0x4444, "SFA": 0x4444, "B": 0x00F0, "SFB": 0x00F0},
    },
    "4.1": {
        "cta_group": 1,
        "lanes": 128,
        "columns": 512,
        "granularity": 32,
        "bytes": 262144,
    },
    "4.3": {
        "accumulators": 2,
        "accumulator_columns": 128,
        "columns_per_k_block": 4,
        "sfa_columns": 16,
        "sfb_columns": 16,
        "scale_buffers": 2,
    },
    "4.4": {
        "accumulators": [0x000, 0x080],
        "sfa": [0x100, 0x120],
        "sfb": [0x110, 0x130],
        "end": 0x140,
        "second_accumulator_of_warp_5": 0x0020_0080,
    },
    "5.1": {
        "index": 0,
        "phase": 1,
        "count": 0,
        "tile": [5, 0, 0],
        "k_tiles": 8,
        "prologue": 4,
    },
    "5.2": {
        "A_rows": [640, 768],
        "B_rows": [0, 128],
        "k": [[256 * i, 256 * i + 256] for i in range(8)],
    },
    "6.1": {
        "mainloop": {"index": 0, "phase": 0, "count": 0},
        "accumulator": {"index": 0, "phase": 1, "count": 0},
    },
    "6.2": {
        "kind": "mxf4nvf4",
        "scale_vec": "4X",
        "shape": [128, 128, 64],
        "idesc": 0x08200480,
        "k_blocks": 4,
        "sfa": [128, 16],
        "sfb": [128, 16],
    },
    "6.3": {"applies": False, "tile_n": 128, "columns_even_odd": [0, 0]},
    "6.6.7": {
        "elements_per_scale": 16,
        "scales_per_row": 4,
        "scales_of_row_0": [1.0, 2.0, 4.0, 8.0],
        "d": 16.0 * (1 + 2 + 4 + 8),
    },
    "6.6.8": {
        "issuing_threads": 1,
        "warp": 0,
        "tile": [128, 128],
        "instructions_per_k_tile": 4,
    },
    "7.3": {
        "lanes": {"4": [0, 31], "5": [32, 63], "6": [64, 95], "7": [96, 127]},
        "addresses": {"4": 0, "5": 32 << 16, "6": 64 << 16, "7": 96 << 16},
        "registers": 32,
        "subtiles": 4,
    },
    "7.8": {
        "type": "U4_ALIGN8B",
        "dims": [2048, 2048, 1],
        "stride_bytes": [1024, 2097152],
        "box": [32, 128, 1],
        "swizzle": "NONE",
        "box_bytes": 2048,
        "subtiles": 4,
        "corners": [[0, 640, 0], [32, 640, 0], [64, 640, 0], [96, 640, 0]],
    },
    "8.4": {"applies": False, "cta_group": 1, "needs": "cta_group::2"},
    "8.6": {
        "applies": False,
        "accumulator_columns": 256,
        "columns": 512,
        "needs": "tiles of 256 columns, whose two accumulators overlap",
    },
}


def test_every_constructed_and_conditional_frame_is_shown() -> None:
    shown = ids(KINDS[FrameKind.CONSTRUCTED] + KINDS[FrameKind.COND])
    assert sorted(SHOWN) == sorted(shown)


@pytest.mark.parametrize("id", SHOWN)
def test_a_constructed_frame_shows_the_real_values(id: str) -> None:
    assert show(id) == SHOWN[id]


def test_values_follow_the_configuration() -> None:
    bf16 = GemmConfig.nvfp4(d_format="bf16")
    assert show("1.1", bf16)["stages"] == 5
    assert show("1.9", GemmConfig.nvfp4(accumulator_stages=1))["stages"] == 1
    assert show("2.1", bf16, 300, 129, 96)["grid"] == [3, 2, 1]
    assert show("3.3", bf16, 300, 129, 96)["A"] == [128, 256, 3, 1, 1]
    assert show("5.1", bf16, 300, 129, 96)["tile"] == [2, 0, 0]
    narrow = GemmConfig.nvfp4(tile_n=64)
    assert show("6.3", narrow) == {
        "applies": True,
        "tile_n": 64,
        "columns_even_odd": [0, 2],
    }
    assert show("1.1", narrow)["stage_tx_bytes"] == 28672
    assert show("6.2", narrow)["idesc"] == 0x08100480
    assert show("4.4", GemmConfig.nvfp4(scale_buffers=1))["end"] == 0x120


def test_the_shown_coordinates_are_those_of_the_run(trace: Trace) -> None:
    a = [e for e in events_of(trace, "5.4.4") if e.kind == "issue"]
    assert [e.operands["coords"] for e in a] == show("3.6")["A"]
    stages = [0x400 + offset for offset in show("3.6")["smem_A"]]
    assert [e.operands["smem"] for e in a] == stages * 2
    corners = [
        e.operands["coords"]
        for e in events_of(trace, "7.9")
        if e.kind == "issue" and "coords" in e.operands
    ]
    assert corners == show("7.8")["corners"]


def test_a_problem_without_size_is_refused() -> None:
    with pytest.raises(InputError, match="K is a multiple of 32"):
        show("1.1", k=40)
