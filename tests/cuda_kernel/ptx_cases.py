"""ptx_cases: problems that both the emulator and the kernel's PTX run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from wide_operands import UE4M3, UE8M0, wide_bias, wide_c, wide_pair

import fp4ref
from fp4ref import GemmConfig, ScaleFormat
from fp4ref.cuda_kernel import packaged_configs
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.cuda_kernel.plan_header import constants

needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None,
    reason="needs NVRTC: pip install 'fp4ref[cuda]'",
)


@dataclass(frozen=True)
class Case:
    m: int
    n: int
    k: int
    batches: int | None = None
    scale_format: ScaleFormat = UE4M3
    sms: int = 2
    schedule: str = "eager"
    ordering: Any = "ptx"
    config: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        words = [f"{self.m}x{self.n}x{self.k}", self.schedule, f"{self.sms}sm"]
        if self.batches:
            words.insert(1, f"L{self.batches}")
        words += [f"{k}={getattr(v, 'name', v)}" for k, v in self.config.items()]
        return ",".join(words)

    def run(self, backend: Any, seed: int = 0, **options: Any) -> fp4ref.Run:
        """Run it; `seed` is the schedule where that is ``"seed"``."""
        config = GemmConfig(**self.config)
        a, b = wide_pair(
            1, self.m, self.n, self.k, self.batches, scale_format=self.scale_format
        )
        lead = () if self.batches is None else (self.batches,)
        shape = (*lead, self.m, self.n)
        c = wide_c(1, shape, config.c_format) if config.c_format else None
        settings = {
            "schedule": seed if self.schedule == "seed" else self.schedule,
            "ordering": self.ordering,
            "sms": self.sms,
        }
        return fp4ref.run(
            a,
            b,
            c,
            bias=wide_bias(1, self.n) if config.bias else None,
            config=config,
            backend=backend,
            **settings | options,
        )


SHAPES = [
    (1, 1, 32, None),
    (128, 128, 256, None),
    (127, 129, 96, None),
    (129, 65, 544, None),
    (33, 260, 288, None),
    (257, 31, 512, None),
    (64, 64, 64, 3),
    (130, 40, 800, 2),
    (5, 200, 1536, None),
]

CONFIGS: list[dict[str, Any]] = [
    {},
    {"d_format": "bf16"},
    {"d_format": "f16"},
    {"d_format": "nvfp4"},
    {
        "d_format": "nvfp4",
        "sfd_format": UE8M0,
        "norm_constant": 2.0,
        "c_format": "f32",
        "c_stages": 4,
    },
    {"d_format": "nvfp4", "sfd_format": UE8M0, "tile_n": 64, "raster": "n"},
    {"c_format": "f32", "beta": 1.3, "alpha": 0.0137},
    {"c_format": "bf16", "beta": 0.5, "activation": "relu", "d_format": "bf16"},
    {"c_format": "f16", "beta": -1.75, "d_format": "f16", "tile_n": 64},
    {"bias": True, "alpha": 0.37, "scheduler": "static"},
    {"bias": True, "activation": "gelu", "d_format": "nvfp4", "tile_n": 64},
    {"activation": "silu", "scheduler": "static", "raster": "n", "d_format": "bf16"},
    {"c_format": "f16", "beta": 3.0, "bias": True, "activation": "gelu"},
    {"stages": 2, "accumulator_stages": 1, "clc_stages": 1},
    {"stages": 3, "accumulator_stages": 3, "tile_n": 64, "scheduler": "static"},
    {"c_format": "f32", "beta": 1.0, "c_stages": 1, "d_stages": 1, "tile_n": 64},
    {"scale_buffers": 1, "d_format": "nvfp4", "norm_constant": 0.3},
]


def sweep() -> Iterator[Case]:
    """Every configuration on three shapes; SMs and schedules take turns."""
    shapes = itertools.cycle(SHAPES)
    machines = itertools.cycle((2, 1, 3, 4))
    schedules = itertools.cycle(("eager", "late", "seed"))
    for turn, config in itertools.product(range(3), CONFIGS):
        m, n, k, batches = next(shapes)
        if turn == 0:
            next(schedules)
        yield Case(
            m,
            n,
            k,
            batches,
            UE8M0 if (m + k) % 5 == 0 else UE4M3,
            next(machines),
            next(schedules),
            "shipped" if config.get("scale_buffers") == 1 else "ptx",
            config,
        )


CASES = list(sweep())


def is_packaged(case: Case) -> bool:
    """Whether the package holds PTX for the case."""
    wanted = constants(GemmConfig(**case.config))
    return any(constants(each) == wanted for each in packaged_configs().values())


def case_params() -> list[Any]:
    """Return the cases; those that the package does not hold need NVRTC."""
    return [
        pytest.param(case, id=str(case), marks=[] if is_packaged(case) else needs_nvrtc)
        for case in CASES
    ]
