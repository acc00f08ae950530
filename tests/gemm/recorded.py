"""recorded: what sixty runs gave once, to show that a change of the house changes none.

A digest covers D, SFD, the counts, the advisories and every event: all fields but the
source lines, the outer frames (a function may be split), what a record did not have,
and where in memory the compiler put the constants.
``python tests/gemm/recorded.py`` writes the file anew; do so only when a result is
meant to change, and say so in the commit.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from gemm_cases import asked, wide_operands_of
from wide_operands import UE8M0

import fp4ref
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.errors import Fp4refError
from fp4ref.trace import Event

FILE = Path(__file__).parents[1] / "data/recorded_runs.json"
PTX_EVERY = 3
"""Every third case runs the CUDA kernel's PTX too."""

SHAPES: list[tuple[int, int, int, int | None]] = [
    *((1, 1, 32, None), (127, 129, 96, None), (129, 65, 544, None)),
    *((33, 260, 288, None), (257, 31, 512, None), (64, 64, 64, 3)),
    *((130, 40, 800, 2), (5, 200, 1536, None)),
]
CONFIGS: list[dict[str, Any]] = [
    {},
    {"d_format": "bf16", "c_format": "bf16", "beta": 0.5, "activation": "relu"},
    {"d_format": "nvfp4", "bias": True, "alpha": 0.37},
    {"d_format": "f16", "c_format": "f32", "beta": -1.75, "tile_n": 64},
    {"d_format": "nvfp4", "sfd_format": UE8M0, "norm_constant": 2.0, "tile_n": 64},
    {"c_format": "f16", "beta": 3.0, "bias": True, "activation": "gelu"},
    {"d_format": "bf16", "activation": "silu", "bias": True, "tile_n": 64},
    {"scheduler": "static"},
    {"raster": "n", "stages": 2},
    {"scheduler": "static", "raster": "n", "stages": 3, "d_stages": 1},
    {"accumulator_stages": 1, "clc_stages": 1, "scale_buffers": 1},
    {"d_format": "nvfp4", "c_format": "f32", "beta": 0.0, "c_stages": 4},
]
SCHEDULES: list[Any] = ["eager", "late", 0, 1, 20261128]


@dataclass(frozen=True)
class Case:
    """One run."""

    shape: tuple[int, int, int, int | None]
    schedule: Any
    sms: int
    config: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        m, n, k, batches = self.shape
        words = [f"{m}x{n}x{k}x{batches or 1}", str(self.schedule), f"{self.sms}sm"]
        words += [f"{k}={getattr(v, 'name', v)}" for k, v in self.config.items()]
        return ",".join(words)

    def run(self, backend: Any) -> fp4ref.Run:
        """Run it."""
        config, alpha = asked(self.config)
        a, b, c, bias = wide_operands_of(7, self.shape, config)
        return fp4ref.run(
            *(a, b, c),
            bias=bias,
            alpha=alpha,
            config=config,
            backend=backend,
            schedule=self.schedule,
            sms=self.sms,
            # One buffer of scales is copied over while the MMA may still read it.
            ordering="shipped" if config.mainloop.scale_buffers == 1 else "ptx",
        )


CASES = [
    Case(
        SHAPES[i % len(SHAPES)],
        SCHEDULES[i % len(SCHEDULES)],
        1 + i % 4,
        CONFIGS[i // len(SCHEDULES)],
    )
    for i in range(60)
]


def is_constant(event: Event) -> bool:
    """Whether it reads what the compiler placed, by the order of declarations."""
    return event.operation == "ld.const"


def lines_of(run: fp4ref.Run) -> Iterator[str]:
    """Write a run as lines of text."""
    for array in (run.d, run.sfd, run.written):
        yield "none" if array is None else hashlib.sha256(array.tobytes()).hexdigest()
    yield json.dumps([dict(run.stats), dict(run.advisories)], sort_keys=True)
    assert run.trace is not None
    constants = [w.start for e in run.trace for w in e.reads if is_constant(e)]
    first = min(constants, default=0)
    for e, deltas in zip(run.trace, run.trace.deltas, strict=True):
        data = hashlib.sha256(b"".join(d.tobytes() for d in deltas)).hexdigest()
        yield repr(
            (
                *(e.step, e.sm, e.cta, e.agent, e.operation, e.kind, e.issued),
                sorted(e.operands.items(), key=lambda item: item[0]),
                tuple(
                    (w.space, w.start - first * is_constant(e), *w[2:]) for w in e.reads
                ),
                tuple(map(tuple, e.writes)),
                *(tuple(map(tuple, e.barrier)), e.frames[-1:], data),
            )
        )


def digest(run: fp4ref.Run) -> str:
    """Hash a run."""
    text = hashlib.sha256()
    for line in lines_of(run):
        text.update(line.encode() + b"\n")
    return text.hexdigest()


REFUSED: list[dict[str, Any]] = [
    *({"tile_n": 96}, {"d_format": "e3m2"}, {"beta": 1.0}, {"stages": 99}),
    *({"accumulator_stages": 9}, {"c_format": "f32", "c_stages": 30}),
    *({"alpha": float("inf")}, {"norm_constant": -1.0}, {"scheduler": "other"}),
]


def message(row: dict[str, Any]) -> str:
    """Say with what a configuration is refused, or the launch."""
    config, alpha = asked(row)
    q = fp4ref.quantize(np.ones((1, 32), np.float32))
    try:
        fp4ref.plan(config)
        fp4ref.run(q, q, alpha=alpha, config=config)
    except Fp4refError as error:
        return str(error)
    return ""


def record() -> dict[str, Any]:
    """Run everything."""
    return {
        "nvrtc": nvrtc_version(),
        "emulator": {str(case): digest(case.run("emulator")) for case in CASES},
        "ptx": {str(case): digest(case.run("ptx")) for case in CASES[::PTX_EVERY]},
        "refused": {repr(config): message(config) for config in REFUSED},
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(record(), indent=1) + "\n")
