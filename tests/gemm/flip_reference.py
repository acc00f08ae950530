"""flip_reference: a run without a flip, its events, its operands' arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from raw_bits import raw
from wide_operands import UE4M3, UE8M0, wide_bias, wide_c

from fp4ref import BlockScaled, GemmConfig, ScaleFormat
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.numerics import (
    add_f32,
    encode_bf16,
    encode_f16,
    fma_f32,
    matmul_block_scaled,
    mul_f32,
    quantize_blocks,
    relu,
)
from fp4ref.trace import Event, Recorder

SMEM_BASE, LANE = 0x400, 2048
Tile = tuple[int, int]


@dataclass(frozen=True)
class Setting:
    """A small problem, and how it is run."""

    m: int
    n: int
    k: int
    schedule: str | int
    config: dict[str, Any]
    sms: int = 1
    scale_format: ScaleFormat = UE4M3


@dataclass
class Reference:
    """The run without a flip: its results, its events, and whose tile each is."""

    setting: Setting
    problem: BoundProblem = field(init=False)
    events: list[Event] = field(init=False)
    event_at_step: list[int] = field(init=False)
    d: NDArray[Any] = field(init=False)
    sfd: NDArray[np.uint8] | None = field(init=False)

    def __post_init__(self) -> None:
        self.problem = BoundProblem(self.setting)
        recorder = Recorder()
        steps: list[int] = []
        self.d, self.sfd = self.problem.execute(
            lambda machine: steps.append(recorder.step), recorder
        )
        self.event_at_step = steps
        self.events = recorder.trace.events

    # Which tile an event belongs to, from the order of events and from coordinates.

    @cached_property
    def tiles(self) -> dict[int, list[Tile]]:
        """Tiles of each SM, in order, as the MMA warp took them."""
        found: dict[int, list[Tile]] = {sm: [] for sm in range(self.setting.sms)}
        for e in self.events:
            if (
                e.agent == "warp0"
                and e.operation.startswith("tile_scheduler.")
                and e.operands["valid"]
            ):
                found[e.sm].append((e.operands["m"], e.operands["n"]))
        return found

    def numbered(self, sm: int, select: Callable[[Event], bool]) -> list[Event]:
        """Events of one SM that `select` takes, in order."""
        return [e for e in self.events if e.sm == sm and select(e)]

    @cached_property
    def mmas(self) -> dict[int, list[Event]]:
        return {sm: self._issued(sm, "tcgen05.mma") for sm in self.tiles}

    @cached_property
    def copies(self) -> dict[int, list[Event]]:
        return {sm: self._issued(sm, "tcgen05.cp") for sm in self.tiles}

    def _issued(self, sm: int, operation: str) -> list[Event]:
        """Landings of one operation, in order of issue: some may overtake others."""
        landed = self.numbered(
            sm, lambda e: e.kind == "land" and e.operation == operation
        )
        return sorted(landed, key=lambda e: e.issued)

    def uses(self, space: str, address: int, since: int) -> list[Event]:
        """Events from `since` on that read or wrote the byte, in order."""
        return [
            e
            for e in self.events[since:]
            if any(_holds(r, space, address) for r in (*e.reads, *e.writes))
        ]


def _holds(where: Any, space: str, address: int) -> bool:
    if where.space != space or not where.start <= address < where.end:
        return False
    if where.rows == 1:
        return True
    return (address - where.start) % where.pitch < where.nbytes


def writes(e: Event, space: str, address: int) -> bool:
    return any(_holds(w, space, address) for w in e.writes)


class BoundProblem:
    """The operands of a setting, padded to whole tiles, and the arithmetic on them."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.config = GemmConfig.nvfp4(**setting.config)
        self.a = _operand(setting.m, setting)
        self.b = _operand(setting.n, setting)
        shape = (setting.m, setting.n)
        config = self.config
        self.c = (
            wide_c(3, shape, config.epilogue.c_format)
            if config.epilogue.c_format
            else None
        )
        self.bias = wide_bias(3, setting.n) if config.epilogue.bias else None
        self.padded = [
            _padded(self.a, 128),
            _padded(self.b, max(128, config.tile.n)),
        ]
        self.k_blocks = self.padded[0][0].shape[1] // 64

    def execute(
        self, watch: Callable[[Machine], None], recorder: Recorder | None = None
    ) -> tuple[NDArray[Any], NDArray[np.uint8] | None]:
        """Run on a fresh machine; `watch` is called before every machine step."""
        machine = Machine(
            self.setting.sms, make_schedule(self.setting.schedule), "ptx", recorder
        )
        c = None if self.c is None else self.c
        if c is not None and self.config.epilogue.c_format == "bf16":
            c = c.view(np.uint16)
        problem = GemmProblem(machine, self.a, self.b, c, self.bias, self.config)
        machine.on_step.append(watch)
        problem.launch()
        output = problem.output()
        return raw(output.d[0]), output.sfd

    @cached_property
    def accumulators(self) -> NDArray[np.float32]:
        """Of every tile, with the padding around the problem."""
        (codes_a, scales_a), (codes_b, scales_b) = self.padded
        return self.product(codes_a, codes_b, scales_a, scales_b)

    def product(
        self, codes_a: Any, codes_b: Any, scales_a: Any, scales_b: Any, c: Any = None
    ) -> NDArray[np.float32]:
        return matmul_block_scaled(
            codes_a,
            codes_b,
            scales_a,
            scales_b,
            c,
            scale_format=self.setting.scale_format,
            vec_size=16,
        )

    def rows(self, operand: int, tile: Tile) -> slice:
        """Rows of A (0) or B (1) that a tile uses."""
        size = (128, self.config.tile.n)[operand]
        return slice(tile[operand] * size, tile[operand] * size + size)

    def finish(
        self, accumulators: NDArray[np.float32], c: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[Any], NDArray[np.uint8] | None]:
        """Turn padded accumulators into the bits of D and SFD."""
        m, n, config = self.setting.m, self.setting.n, self.config
        acc = np.ascontiguousarray(accumulators[:m, :n])
        if self.bias is None:
            z = mul_f32(np.float32(1), acc)
        else:
            z = fma_f32(np.float32(1), acc, self.bias)
        if self.c is None:
            z = add_f32(z, np.float32(0))
        else:
            source = self.c.astype(np.float32) if c is None else c
            z = fma_f32(np.float32(config.epilogue.beta), source, z)
        if config.epilogue.activation == "relu":
            z = relu(z)
        if config.epilogue.d_format == "f32":
            return raw(z), None
        if config.epilogue.d_format == "bf16":
            return raw(encode_bf16(z)), None
        if config.epilogue.d_format == "f16":
            return raw(encode_f16(z)), None
        z = np.pad(z, ((0, 0), (0, -n % 16)))
        codes, scales = quantize_blocks(
            z,
            norm=config.epilogue.norm_constant,
            scale_format=config.epilogue.sfd_format,
        )
        return codes[:, :n], _atoms(scales)


def _operand(rows: int, setting: Setting) -> BlockScaled:
    """Scales over three binades, so that most changes reach the result."""
    rng = np.random.default_rng([rows, setting.k])
    low, high = (125, 129) if setting.scale_format is UE8M0 else (0x30, 0x48)
    return BlockScaled(
        rng.integers(0, 16, (rows, setting.k), np.uint8),
        rng.integers(low, high, (rows, setting.k // 16), np.uint8),
        scale_format=setting.scale_format,
    )


def _padded(q: BlockScaled, rows: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Codes and scales filled up with 0 to whole row blocks and K=256 tiles."""
    m, k = q.codes.shape
    add_m, add_k = -m % rows, -k % 256
    return (
        np.pad(q.codes, ((0, add_m), (0, add_k))),
        np.pad(q.scales, ((0, add_m), (0, add_k // 16))),
    )


def _atoms(scales: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Scales in the 128x4 layout, by the formula, with zeros around them."""
    rows, columns = scales.shape
    atoms = -(-columns // 4)
    data = np.zeros((1, -(-rows // 128) * atoms * 512), np.uint8)
    m, s = np.indices(scales.shape)
    at = m % 32 * 16 + m % 128 // 32 * 4 + s % 4 + s // 4 * 512 + m // 128 * 512 * atoms
    data[0, at] = scales
    return data
