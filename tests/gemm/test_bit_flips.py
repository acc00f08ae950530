"""Flip one bit of SMEM, TMEM or a barrier during a run: only what must change does.

A run without a flip is traced. From the events after the flip, a predictor that knows
the layouts by formula, and the machine only by its trace, says what will happen: which
bits of D and SFD change and to what, or which fault is raised. Then the flip is made in
a second run under the same schedule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from raw_bits import raw
from wide_operands import UE4M3, UE8M0, wide_bias, wide_c

from fp4ref import BlockScaled, GemmConfig, ScaleFormat
from fp4ref.errors import (
    HardwareFault,
    LaneQuarterViolation,
    MbarrierCorrupted,
    ScaleFactorFault,
    TmemAllocationFault,
)
from fp4ref.gemm.plan import plan
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
MATRICES = ("A", "B", "SFA", "SFB", "C", "D", "accumulator")
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


SETTINGS = {
    "f32": Setting(250, 60, 640, "eager", {"tile_n": 64, "stages": 2}),
    "bf16 with C": Setting(
        120,
        150,
        544,
        "late",
        {
            "tile_n": 64,
            "c_format": "bf16",
            "d_format": "bf16",
            "beta": 0.5,
            "stages": 3,
        },
        sms=2,
    ),
    "nvfp4": Setting(
        100,
        180,
        512,
        7,
        {
            "tile_n": 64,
            "d_format": "nvfp4",
            "bias": True,
            "scheduler": "static",
            "stages": 2,
        },
        sms=2,
    ),
    "nvfp4 with C": Setting(
        110,
        140,
        576,
        11,
        {
            "d_format": "nvfp4",
            "sfd_format": UE8M0,
            "norm_constant": 2.0,
            "c_format": "f32",
            "beta": 64.0,
            "activation": "relu",
            "stages": 2,
        },
        scale_format=UE8M0,
    ),
}


@dataclass(frozen=True)
class Flip:
    """Bit `bit` of the byte at `address`, just before machine step `when`."""

    where: str
    space: str
    address: int
    bit: int
    when: int


@dataclass(frozen=True)
class Prediction:
    """What a flip does.

    Attributes
    ----------
    outcome
        ``unread``: nothing uses the byte again. ``used``: D and SFD are `d` and `sfd`,
        which may be what they were. ``fault``: `fault` is raised and its text has
        `text`. ``used or fault``: one of the two. ``within``: a fault, or no element
        of D outside `mask` changes.
    """

    outcome: str
    d: NDArray[Any] | None = None
    sfd: NDArray[np.uint8] | None = None
    fault: type[HardwareFault] | tuple[type[HardwareFault], ...] = HardwareFault
    text: str = ""
    mask: NDArray[np.bool_] | None = None


UNREAD = Prediction("unread")


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


def _writes(e: Event, space: str, address: int) -> bool:
    return any(_holds(w, space, address) for w in e.writes)


class BoundProblem:
    """The operands of a setting, padded to whole tiles, and the arithmetic on them."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.config = GemmConfig(**setting.config)
        self.a = _operand(setting.m, setting)
        self.b = _operand(setting.n, setting)
        shape = (setting.m, setting.n)
        config = self.config
        self.c = wide_c(3, shape, config.c_format) if config.c_format else None
        self.bias = wide_bias(3, setting.n) if config.bias else None
        self.padded = [
            _padded(self.a, 128),
            _padded(self.b, max(128, config.tile_n)),
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
        if c is not None and self.config.c_format == "bf16":
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
        size = (128, self.config.tile_n)[operand]
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
            z = fma_f32(np.float32(config.beta), source, z)
        if config.activation == "relu":
            z = relu(z)
        if config.d_format == "f32":
            return raw(z), None
        if config.d_format == "bf16":
            return raw(encode_bf16(z)), None
        if config.d_format == "f16":
            return raw(encode_f16(z)), None
        z = np.pad(z, ((0, 0), (0, -n % 16)))
        codes, scales = quantize_blocks(
            z, norm=config.norm_constant, scale_format=config.sfd_format
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


class Predictor:
    """Says what a flip will do, from the events that follow it."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.problem = reference.problem
        self.config = reference.problem.config

    def predict(self, flip: Flip) -> Prediction:
        sm = int(flip.space[4:])
        since = self.reference.event_at_step[flip.when]
        kind = flip.where.split(" ")[0].split(".")[0]
        return {
            "A": self._operand,
            "B": self._operand,
            "SFA": self._scales,
            "SFB": self._scales,
            "C": self._c,
            "D": self._d,
            "barrier": self._barrier,
            "response": self._response,
            "pointer": self._pointer,
            "accumulator": self._accumulator,
            "tmem": self._scales_in_tmem,
            "unused": lambda *_: UNREAD,
        }[kind](flip, sm, since)

    # Stages of the mainloop.

    def _operand(self, flip: Flip, sm: int, since: int) -> Prediction:
        """A or B: the row is a 128-byte line, whose 16-byte chunks are XORed."""
        which = 0 if flip.where == "A" else 1
        start, nbytes = self._stages(flip.where)
        stage, offset = divmod(flip.address - start, nbytes)
        row, within = divmod(offset, 128)
        byte = (within // 16 ^ row % 8) * 16 + within % 16
        block, byte_of_block = divmod(byte, 32)
        desc = "a_desc" if which == 0 else "b_desc"
        wanted = (start + stage * nbytes + 32 * block) >> 4
        for e in self.reference.events[since:]:
            if e.sm != sm or e.kind != "land":
                continue
            if e.operation.endswith(".load") and _writes(e, flip.space, flip.address):
                return UNREAD
            if e.operation == "tcgen05.mma" and e.operands[desc] & 0x3FFF == wanted:
                tile, number = self._tile_of_mma(sm, e)
                pair = self._operands_of(tile)
                k = 64 * number + 2 * byte_of_block + flip.bit // 4
                pair[which][0][row, k] ^= 1 << flip.bit % 4
                return self._with_tile(tile, self._multiply(pair))
        return UNREAD

    def _scales(self, flip: Flip, sm: int, since: int) -> Prediction:
        """SFA or SFB: atoms of 512 bytes, one for each K=64 block."""
        start, nbytes = self._stages(flip.where)
        stage, offset = divmod(flip.address - start, nbytes)
        block, inside = divmod(offset, 512)
        wanted = (start + stage * nbytes + 512 * block) >> 4
        for e in self.reference.events[since:]:
            if e.sm != sm or e.kind != "land":
                continue
            if e.operation.endswith(".load") and _writes(e, flip.space, flip.address):
                return UNREAD
            if e.operation == "tcgen05.cp" and e.operands["s_desc"] & 0x3FFF == wanted:
                number = self.reference.copies[sm].index(e) // 8 * 4 + block
                tile = self._tile_of_number(sm, number)
                row = inside // 16 + 32 * (inside % 16 // 4)
                column = 4 * (number % self.problem.k_blocks) + inside % 4
                return self._with_scale(flip, tile, row, column)
        return UNREAD

    def _with_scale(self, flip: Flip, tile: Tile, row: int, column: int) -> Prediction:
        pair = self._operands_of(tile)
        which = 0 if flip.where == "SFA" else 1
        if which == 1:
            row -= tile[1] * self.config.tile_n % 128
            if not 0 <= row < self.config.tile_n:
                return self._with_tile(tile, self._multiply(pair))
        pair[which][1][row, column] ^= 1 << flip.bit
        return self._with_tile(tile, self._multiply(pair))

    # TMEM.

    def _accumulator(self, flip: Flip, sm: int, since: int) -> Prediction:
        lane, byte = divmod(flip.address, LANE)
        column, bit = byte // 4, 8 * (byte % 4) + flip.bit
        inside = column % self.config.tile_n
        for e in self.reference.uses(flip.space, flip.address, since):
            if e.operation == "tcgen05.mma":
                if not e.operands["enable_input_d"]:
                    return UNREAD
                tile, number = self._tile_of_mma(sm, e)
                acc = self._tile_accumulators(tile)
                pair = self._operands_of(tile)
                (codes_a, scales_a), (codes_b, scales_b) = pair
                a, sa = codes_a[lane : lane + 1], scales_a[lane : lane + 1]
                b, sb = codes_b[inside : inside + 1], scales_b[inside : inside + 1]
                k, s = 64 * number, 4 * number
                partial = self.problem.product(a[:, :k], b[:, :k], sa[:, :s], sb[:, :s])
                partial = _flipped(partial, bit)
                acc[lane, inside] = self.problem.product(
                    a[:, k:], b[:, k:], sa[:, s:], sb[:, s:], partial
                )[0, 0]
                return self._with_tile(tile, acc)
            if e.operation == "tcgen05.ld" and e.kind == "land":
                loads = self.reference.numbered(
                    sm,
                    lambda x, warp=e.operands["taddr"] >> 21: (
                        x.operation == "tcgen05.ld"
                        and x.kind == "land"
                        and x.operands["taddr"] >> 21 == warp
                    ),
                )
                tile = self.reference.tiles[sm][
                    loads.index(e) // plan(self.config).subtiles
                ]
                acc = self._tile_accumulators(tile)
                acc[lane, inside] = _flipped(acc[lane, inside].reshape(1, 1), bit)[0, 0]
                return self._with_tile(tile, acc)
        return UNREAD

    def _scales_in_tmem(self, flip: Flip, sm: int, since: int) -> Prediction:
        """One of four copies changes: the next MMA that reads the word must say so."""
        lane, byte = divmod(flip.address, LANE)
        for e in self.reference.uses(flip.space, flip.address, since):
            if e.operation == "tcgen05.cp":
                return UNREAD
            if e.operation == "tcgen05.mma":
                first = e.operands["sfa_tmem" if "SFA" in flip.where else "sfb_tmem"]
                row = 32 * (byte // 4 - first) + lane % 32
                text = f"scale byte {byte % 4} of row {row} is"
                return Prediction("fault", fault=ScaleFactorFault, text=text)
        return UNREAD

    # The epilogue's stages.

    def _c(self, flip: Flip, sm: int, since: int) -> Prediction:
        if self.problem.c is None:
            return UNREAD
        for e in self.reference.uses(flip.space, flip.address, since):
            if _writes(e, flip.space, flip.address):
                return UNREAD
            loads = self._loads_of_c(sm, e.agent)
            tile_number, subtile = divmod(loads.index(e), plan(self.config).subtiles)
            tile = self.reference.tiles[sm][tile_number]
            row, column, low_bit = self._element_of_stage("C", flip)
            row += 128 * tile[0]
            column += self.config.tile_n * tile[1] + 32 * subtile
            if row >= self.problem.setting.m or column >= self.problem.setting.n:
                return self._with(self.problem.accumulators)
            c = self.problem.c.copy()
            bits = c.view(f"<u{c.dtype.itemsize}")
            bits[row, column] ^= bits.dtype.type(1 << low_bit + flip.bit)
            return self._with(self.problem.accumulators, c.astype(np.float32))
        return UNREAD

    def _loads_of_c(self, sm: int, warp: str) -> list[Event]:
        """The ld.shared of one epilogue warp that read C, one for each subtile."""
        start, nbytes = self._stages("C")
        return self.reference.numbered(
            sm,
            lambda e: (
                e.agent == warp
                and e.operation == "ld.shared"
                and 0 <= e.operands["address"] - start < self.config.c_stages * nbytes
            ),
        )

    def _d(self, flip: Flip, sm: int, since: int) -> Prediction:
        for e in self.reference.uses(flip.space, flip.address, since):
            if e.operation == "st.shared":
                return UNREAD
            n0, m0, _ = e.operands["coords"]
            row, column, low_bit = self._element_of_stage("D", flip)
            row, column = row + m0, column + n0
            d = self.reference.d.copy()
            bit = low_bit + flip.bit
            if self.config.d_format == "nvfp4":
                column, bit = column + bit // 4, bit % 4
            if row < d.shape[0] and column < d.shape[1]:
                d[row, column] ^= d.dtype.type(1 << bit)
            return Prediction("used", d, self.reference.sfd)
        return UNREAD

    def _element_of_stage(self, name: str, flip: Flip) -> tuple[int, int, int]:
        """Row and column in a 128 x 32 box, and the first bit of the flipped byte."""
        start, nbytes = self._stages(name)
        bits = (
            plan(self.config).c_type if name == "C" else plan(self.config).d_type
        ).bits
        offset = (flip.address - start) % nbytes
        row_nbytes = 4 * bits
        row, within = divmod(offset, row_nbytes)
        if row_nbytes == 128:
            within ^= row % 8 << 4
        elif row_nbytes == 64:
            within ^= row // 2 % 4 << 4
        column = within * 8 // bits
        return row, column, within * 8 % bits

    # Words.

    def _barrier(self, flip: Flip, sm: int, since: int) -> Prediction:
        """The next operation or blocked wait on the word finds it."""
        word = flip.address // 8 * 8
        fault = Prediction("fault", fault=MbarrierCorrupted, text=f"{word:#x} ")
        for e in self.reference.events[since:]:
            if e.sm != sm:
                continue
            on_word = any(b.address == word for b in e.barrier)
            if e.operation.startswith("mbarrier."):
                on_word |= e.operands.get("mbar") == word
            if on_word:
                return UNREAD if e.operation == "mbarrier.init" else fault
        return UNREAD

    def _response(self, flip: Flip, sm: int, since: int) -> Prediction:
        """CLC's answer: x, then y and z, then a flag. Every role reads it by itself."""
        start, nbytes = self._stages("response")
        at = (flip.address - start) % nbytes
        uses = self.reference.uses(flip.space, flip.address, since)
        readers = self._until_overwritten(flip, uses)
        if not readers:
            return UNREAD
        # The slot's next reading ends with each role's note of what it understood.
        step = readers[0].step
        note = next(
            e
            for e in self.reference.events[step:]
            if e.agent == readers[0].agent
            and e.sm == sm
            and e.operation == "tile_scheduler.next_work"
        )
        flag_bit = at == 8 and flip.bit == 0
        was_valid = note.operands["valid"]
        if not flag_bit and (at >= 8 or not was_valid):
            return self._with(self.problem.accumulators)
        if not was_valid:
            # Told of a tile (0, 0, 0) that is not there, the scheduler asks once more.
            return Prediction("fault")
        lost = note.operands["m"], note.operands["n"]
        named = self._named_tile(lost, at, flip.bit) if not flag_bit else None
        mask = self._region(lost)
        if len(readers) == plan(self.config).clc_consumers // 32:
            d, sfd = self.reference.d.copy(), self.reference.sfd
            d[mask] = 0
            if sfd is not None:
                return Prediction("within", mask=mask)
            return Prediction("used or fault", d, sfd)
        return Prediction(
            "within", mask=mask if named is None else mask | self._region(named)
        )

    def _named_tile(self, tile: Tile, at: int, bit: int) -> Tile | None:
        """The tile that the changed answer names; None outside the grid or batch."""
        word = int.from_bytes(
            np.array([tile[0], tile[1]], "<u4").tobytes(), "little"
        ) ^ (1 << 8 * at + bit)
        m, n, batch = word & 0xFFFFFFFF, word >> 32 & 0xFFFF, word >> 48
        return None if batch or m > 64 or n > 64 else (m, n)

    def _region(self, tile: Tile) -> NDArray[np.bool_]:
        mask = np.zeros(self.reference.d.shape, np.bool_)
        mask[self.problem.rows(0, tile), self.problem.rows(1, tile)] = True
        return mask

    def _pointer(self, flip: Flip, sm: int, since: int) -> Prediction:
        """TMEM's address: the MMA warp read it at once, the epilogue warps do later."""
        uses = self.reference.uses(flip.space, flip.address, since)
        readers = self._until_overwritten(flip, uses)
        if not readers:
            return UNREAD
        bit = 8 * (flip.address % 4) + flip.bit
        if bit >= 9:
            return Prediction(
                "fault", fault=(TmemAllocationFault, LaneQuarterViolation)
            )
        quarter = np.arange(self.reference.d.shape[0]) % 128 // 32
        warps = [int(e.agent[4:]) % 4 for e in readers]
        mask = np.zeros(self.reference.d.shape, np.bool_)
        mask[np.isin(quarter, warps)] = True
        return Prediction("within", mask=mask)

    def _until_overwritten(self, flip: Flip, uses: list[Event]) -> list[Event]:
        readers = []
        for e in uses:
            if _writes(e, flip.space, flip.address):
                break
            readers.append(e)
        return readers

    # Tiles.

    def _stages(self, name: str) -> tuple[int, int]:
        """Shared address and size of stage 0."""
        smem, config = plan(self.config).smem, self.config
        offset, nbytes = {
            "A": (smem.a, plan(config).a_nbytes),
            "B": (smem.b, plan(config).b_nbytes),
            "SFA": (smem.sfa, plan(config).sfa_nbytes),
            "SFB": (smem.sfb, plan(config).sfb_nbytes),
            "C": (smem.c, plan(config).c_subtile_nbytes),
            "D": (smem.d, plan(config).d_subtile_nbytes),
            "response": (smem.clc_response, 16),
        }[name]
        return SMEM_BASE + offset, nbytes

    def _tile_of_number(self, sm: int, number: int) -> Tile:
        return self.reference.tiles[sm][number // self.problem.k_blocks]

    def _tile_of_mma(self, sm: int, e: Event) -> tuple[Tile, int]:
        """Tile and K=64 block of an MMA: they land in order."""
        number = self.reference.mmas[sm].index(e)
        return self._tile_of_number(sm, number), number % self.problem.k_blocks

    def _operands_of(self, tile: Tile) -> list[tuple[Any, Any]]:
        return [
            (codes[rows].copy(), scales[rows].copy())
            for rows, (codes, scales) in (
                (self.problem.rows(i, tile), self.problem.padded[i]) for i in (0, 1)
            )
        ]

    def _tile_accumulators(self, tile: Tile) -> NDArray[np.float32]:
        rows, columns = (self.problem.rows(i, tile) for i in (0, 1))
        return self.problem.accumulators[rows, columns].copy()

    def _multiply(self, pair: list[tuple[Any, Any]]) -> NDArray[np.float32]:
        (codes_a, scales_a), (codes_b, scales_b) = pair
        return self.problem.product(codes_a, codes_b, scales_a, scales_b)

    def _with_tile(self, tile: Tile, acc: NDArray[np.float32]) -> Prediction:
        accumulators = self.problem.accumulators.copy()
        rows, columns = (self.problem.rows(i, tile) for i in (0, 1))
        accumulators[rows, columns] = acc
        return self._with(accumulators)

    def _with(
        self, accumulators: NDArray[np.float32], c: NDArray[np.float32] | None = None
    ) -> Prediction:
        return Prediction("used", *self.problem.finish(accumulators, c))


def _flipped(x: NDArray[np.float32], bit: int) -> NDArray[np.float32]:
    return (x.view(np.uint32) ^ np.uint32(1 << bit)).view(np.float32)


def places(reference: Reference) -> dict[str, list[tuple[str, int, int]]]:
    """Every class of location: pieces (space, first address, bytes)."""
    config = reference.problem.config
    smem, tmem, size = plan(config).smem, plan(config).tmem, LANE // 4
    ends = sorted(
        [
            (smem.d, config.d_stages * plan(config).d_subtile_nbytes),
            (smem.c, config.c_stages * plan(config).c_subtile_nbytes),
            (smem.a, plan(config).mainloop_stages * plan(config).a_nbytes),
            (smem.b, plan(config).mainloop_stages * plan(config).b_nbytes),
            (smem.sfa, plan(config).mainloop_stages * plan(config).sfa_nbytes),
            (smem.sfb, plan(config).mainloop_stages * plan(config).sfb_nbytes),
        ]
    )
    names = {
        smem.d: "D",
        smem.c: "C",
        smem.a: "A",
        smem.b: "B",
        smem.sfa: "SFA",
        smem.sfb: "SFB",
    }
    parts = [(names[at], at, nbytes) for at, nbytes in ends if nbytes]
    rings = {
        "mainloop": (smem.mainloop_full, 16 * plan(config).mainloop_stages),
        "accumulator": (smem.accumulator_full, 16 * config.accumulator_stages),
        "clc": (smem.clc_full, 16 * config.clc_stages),
        "throttle": (smem.throttle_full, 16 * config.clc_stages),
        "c": (smem.c_full, 16 * config.c_stages),
        "load_order": (smem.load_order, 8),
    }
    parts += [(f"barrier.{name}", at, n) for name, (at, n) in rings.items()]
    parts += [
        ("response", smem.clc_response, 16 * config.clc_stages),
        ("pointer", smem.tmem_pointer, 4),
        ("unused smem", smem.end, 232_448 - smem.end),
        ("unused smem", smem.tmem_pointer + 4, smem.d - smem.tmem_pointer - 4),
    ]
    columns = [
        ("accumulator", 0, config.accumulator_stages * config.tile_n),
        *(("tmem SFA", at, 16) for at in tmem.sfa),
        *(("tmem SFB", at, 4 * plan(config).sf_rows_b // 32) for at in tmem.sfb),
        ("unused tmem", tmem.end, size - tmem.end),
    ]
    found: dict[str, list[tuple[str, int, int]]] = {}
    for sm in range(reference.setting.sms):
        for name, at, nbytes in parts:
            found.setdefault(name, []).append((f"smem{sm}", SMEM_BASE + at, nbytes))
        for name, column, count in columns:
            for lane in range(128):
                at = lane * LANE + 4 * column
                found.setdefault(name, []).append((f"tmem{sm}", at, 4 * count))
    return found


def draw_flips(reference: Reference, count: int, seed: int) -> list[Flip]:
    """Take turns over the classes; six flips in ten follow a write at once."""
    rng = np.random.default_rng(seed)
    where = places(reference)
    turns = [n for n in where for _ in range(3 if n in MATRICES else 1)]
    steps = reference.event_at_step
    flips = []
    for i in range(count):
        name = turns[i % len(turns)]
        pieces = where[name]
        space, first, nbytes = pieces[int(rng.integers(len(pieces)))]
        address = first + int(rng.integers(nbytes))
        when = int(rng.integers(len(steps)))
        uses = reference.uses(space, address, 0)
        uses = [e for e in uses if _writes(e, space, address)] or uses
        if uses and rng.random() < 0.6:
            after = uses[int(rng.integers(len(uses)))].step
            when = min(int(np.searchsorted(steps, after + 1)), len(steps) - 1)
        flips.append(Flip(name, space, address, int(rng.integers(8)), when))
    return flips


def run_with(
    reference: Reference, flip: Flip
) -> tuple[NDArray[Any], NDArray[np.uint8] | None] | HardwareFault:
    """Run once more and flip the bit before the machine step."""
    step = -1

    def inject(machine: Machine) -> None:
        nonlocal step
        step += 1
        if step == flip.when:
            sm = machine.sms[int(flip.space[4:])]
            memory = sm.smem if flip.space.startswith("smem") else sm.tmem
            memory.data[flip.address - memory.base] ^= np.uint8(1 << flip.bit)

    try:
        return reference.problem.execute(inject)
    except HardwareFault as fault:
        return fault


def same(a: NDArray[Any] | None, b: NDArray[Any] | None) -> bool:
    return (a is None and b is None) or (
        a is not None and b is not None and bool((a == b).all())
    )


def check(reference: Reference, flip: Flip, wanted: Prediction) -> str:
    """Make the flip; return what came of it, or fail."""
    result = run_with(reference, flip)
    if isinstance(result, HardwareFault):
        assert "fault" in wanted.outcome or wanted.outcome == "within", str(result)
        assert isinstance(result, wanted.fault), str(result)
        assert wanted.text in str(result)
        return "fault"
    d, sfd = result
    unchanged = same(d, reference.d) and same(sfd, reference.sfd)
    if wanted.outcome == "unread":
        assert unchanged
        return "unread"
    assert wanted.outcome != "fault", "no fault was raised"
    if wanted.outcome == "within":
        assert wanted.mask is not None
        assert (d == reference.d)[~wanted.mask].all()
    else:
        assert same(d, wanted.d)
        assert same(sfd, wanted.sfd)
    return "masked" if unchanged else "changed"


@cache
def reference_of(name: str) -> Reference:
    return Reference(SETTINGS[name])


def check_many(name: str, count: int, seed: int) -> Counter[tuple[str, str]]:
    reference = reference_of(name)
    predictor = Predictor(reference)
    outcomes: Counter[tuple[str, str]] = Counter()
    for flip in draw_flips(reference, count, seed):
        wanted = predictor.predict(flip)
        print(flip, wanted.outcome)
        outcomes[flip.where, check(reference, flip, wanted)] += 1
    return outcomes


@pytest.mark.parametrize("name", SETTINGS)
def test_the_predictor_knows_the_run_without_a_flip(name: str) -> None:
    reference = reference_of(name)
    d, sfd = reference.problem.finish(reference.problem.accumulators)
    assert same(d, reference.d)
    assert same(sfd, reference.sfd)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_thousand_flips_change_exactly_what_is_predicted(name: str) -> None:
    outcomes = check_many(name, 260, seed=1)
    table = {
        where: {o: n for (w, o), n in sorted(outcomes.items()) if w == where}
        for where, _ in sorted(outcomes)
    }
    print(table)
    reference = reference_of(name)
    assert set(table) == set(places(reference))
    idle = {"unused smem", "unused tmem"}
    if reference.problem.c is None:
        idle |= {"barrier.c", "barrier.load_order"}
    if reference.problem.config.scheduler == "static":
        idle |= {"barrier.clc", "barrier.throttle", "response"}
    if reference.setting.schedule == "eager":
        # Copy and MMA land in one machine step: no flip comes between them.
        idle |= {"tmem SFA", "tmem SFB"}
    for where, found in table.items():
        if where in idle:
            assert set(found) == {"unread"}, where
        elif where in MATRICES:
            assert "changed" in found, where
        elif where == "response":
            assert found.keys() - {"unread"}
        else:
            assert "fault" in found, where


@pytest.mark.parametrize("name", SETTINGS)
def test_other_flips_every_day(name: str, rotating_seed: int) -> None:
    check_many(name, 40, rotating_seed)


@pytest.mark.soak
@pytest.mark.parametrize("name", SETTINGS)
def test_ten_thousand_flips(name: str, rotating_seed: int) -> None:
    check_many(name, 2500, rotating_seed)
