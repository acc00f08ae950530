"""gemm_cases: matrix products of every shape and configuration, and how each is run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wide_operands import UE4M3, UE8M0, wide_bias, wide_c, wide_pair

import fp4ref
from fp4ref import GemmConfig, ScaleFormat


def asked(row: dict[str, Any]) -> tuple[GemmConfig, float | None]:
    """The configuration of a row of settings, and its alpha: the launch takes that."""
    settings = {name: value for name, value in row.items() if name != "alpha"}
    return GemmConfig.nvfp4(**settings), row.get("alpha")


class Operands(NamedTuple):
    """A, B, C and bias of one product; C and bias only where the kernel takes them."""

    a: Any
    b: Any
    c: Any
    bias: Any


def wide_operands_of(
    seed: int,
    shape: tuple[int, int, int, int | None],
    config: GemmConfig,
    scale_format: ScaleFormat = UE4M3,
) -> Operands:
    """Wide operands for (M, N, K, batches) and what `config` takes."""
    m, n, k, batches = shape
    a, b = wide_pair(seed, m, n, k, batches, scale_format=scale_format)
    lead = () if batches is None else (batches,)
    c = (
        wide_c(seed, (*lead, m, n), config.epilogue.c_format)
        if config.epilogue.c_format
        else None
    )
    return Operands(a, b, c, wide_bias(seed, n) if config.epilogue.bias else None)


@dataclass(frozen=True)
class Case:
    """A product, and the machine and schedule that run it.

    `config` may hold the launch's alpha too; see `asked`.
    """

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

    def operands(self, seed: int) -> Operands:
        """Return wide operands."""
        shape = (self.m, self.n, self.k, self.batches)
        return wide_operands_of(seed, shape, asked(self.config)[0], self.scale_format)

    def settings(self, seed: int) -> dict[str, Any]:
        """Return how it is run; `seed` is the schedule where that is ``"seed"``."""
        return {
            "schedule": seed if self.schedule == "seed" else self.schedule,
            "ordering": self.ordering,
            "sms": self.sms,
        }

    def run(self, backend: Any, seed: int = 0, **options: Any) -> fp4ref.Run:
        """Run it on the operands of seed 1; `seed` is the schedule's."""
        a, b, c, bias = self.operands(1)
        config, alpha = asked(self.config)
        return fp4ref.run(
            *(a, b, c),
            bias=bias,
            alpha=alpha,
            config=config,
            backend=backend,
            **self.settings(seed) | options,
        )


SIZES = (1, 127, 128, 129, 300)
DEPTHS = (32, 96, 384, 1056, 1536)
SCHEDULES = ("eager", "late", "seed")

EPILOGUES: list[dict[str, Any]] = [
    {},
    {"d_format": "bf16", "c_format": "bf16", "beta": 0.5, "activation": "relu"},
    {"d_format": "nvfp4", "bias": True, "alpha": 0.37},
    {"d_format": "f16", "c_format": "f32", "beta": -1.75, "tile_n": 64},
    {"d_format": "nvfp4", "sfd_format": UE8M0, "norm_constant": 2.0, "tile_n": 64},
    {"c_format": "f16", "beta": 3.0, "bias": True, "activation": "gelu"},
    {"d_format": "nvfp4", "c_format": "f32", "beta": 1.0, "norm_constant": 0.3},
    {"d_format": "bf16", "activation": "silu", "bias": True, "tile_n": 64},
    {"bias": True, "alpha": 0.0137},
    {"alpha": 0.0137, "c_format": "f32", "beta": 1.3, "tile_n": 64},
    {"alpha": -0.0137, "bias": True, "c_format": "bf16", "beta": 0.7},
]
"""What a row turns on; every shape of `every_shape` takes the next one."""

MACHINES: list[dict[str, Any]] = [
    {"sms": 1},
    {"sms": 2, "config": {"scheduler": "static"}},
    {"sms": 3, "config": {"raster": "n"}},
    {"sms": 4, "config": {"stages": 2}},
    {"sms": 2, "config": {"scheduler": "static", "raster": "n", "stages": 3}},
    {"sms": 1, "config": {"accumulator_stages": 1, "clc_stages": 1}},
    {"sms": 3, "config": {"d_stages": 1, "c_stages": 1}},
]


def every_shape() -> Iterator[Case]:
    """Every M and N with every schedule; the other settings take turns."""
    depths, epilogues = itertools.cycle(DEPTHS), itertools.cycle(EPILOGUES)
    machines = itertools.cycle(MACHINES)
    for (m, n), schedule in itertools.product(
        itertools.product(SIZES, SIZES), SCHEDULES
    ):
        machine = dict(next(machines))
        config = next(epilogues) | machine.pop("config", {})
        k = next(depths)
        scale_format = UE8M0 if (m + n + k) % 3 == 0 else UE4M3
        yield Case(
            m,
            n,
            k,
            scale_format=scale_format,
            schedule=schedule,
            config=config,
            **machine,
        )


EXTRA = [
    Case(129, 65, 288, 3, sms=4, schedule="late", config={"tile_n": 64}),
    Case(
        200,
        130,
        96,
        2,
        sms=3,
        schedule="seed",
        config={"d_format": "nvfp4", "c_format": "bf16", "beta": 2.0, "bias": True},
    ),
    Case(64, 64, 64, 5, schedule="seed", config={"raster": "n", "d_format": "bf16"}),
    Case(
        130,
        260,
        512,
        ordering="shipped",
        schedule="seed",
        config={"scale_buffers": 1, "accumulator_stages": 3},
    ),
    Case(
        257,
        129,
        768,
        ordering="shipped",
        schedule="late",
        config={"scale_buffers": 1, "tile_n": 64, "d_format": "nvfp4"},
    ),
    Case(
        33,
        31,
        2080,
        schedule="late",
        config={"stages": 4, "d_format": "nvfp4", "activation": "gelu"},
    ),
    Case(
        31,
        17,
        544,
        scale_format=UE8M0,
        schedule="seed",
        config={"d_format": "nvfp4", "sfd_format": UE8M0, "norm_constant": 64.0},
    ),
    Case(128, 384, 256),
]
SHAPE_CASES = [*every_shape(), *EXTRA]

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


def every_configuration() -> Iterator[Case]:
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


CONFIG_CASES = list(every_configuration())
