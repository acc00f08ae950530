"""flip_predictor: what a flipped bit will do.

It knows the layouts by formula, and the machine only by the trace of the run without
the flip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flip_reference import LANE, SMEM_BASE, Reference, Tile, writes
from numpy.typing import NDArray

from fp4ref import plan
from fp4ref.errors import (
    HardwareFault,
    LaneQuarterViolation,
    MbarrierCorrupted,
    ScaleFactorFault,
    TmemAllocationFault,
)
from fp4ref.trace import Event


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


class Predictor:
    """Says what a flip will do, from the events that follow it."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self.problem = reference.problem
        self.config = reference.problem.config
        self.plan = plan(reference.problem.config)

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
            if e.operation.endswith(".load") and writes(e, flip.space, flip.address):
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
            if e.operation.endswith(".load") and writes(e, flip.space, flip.address):
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
            row -= tile[1] * self.config.tile.n % 128
            if not 0 <= row < self.config.tile.n:
                return self._with_tile(tile, self._multiply(pair))
        pair[which][1][row, column] ^= 1 << flip.bit
        return self._with_tile(tile, self._multiply(pair))

    # TMEM.

    def _accumulator(self, flip: Flip, sm: int, since: int) -> Prediction:
        lane, byte = divmod(flip.address, LANE)
        column, bit = byte // 4, 8 * (byte % 4) + flip.bit
        inside = column % self.config.tile.n
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
                partial = flipped(partial, bit)
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
                tile = self.reference.tiles[sm][loads.index(e) // self.plan.subtiles]
                acc = self._tile_accumulators(tile)
                acc[lane, inside] = flipped(acc[lane, inside].reshape(1, 1), bit)[0, 0]
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
            if writes(e, flip.space, flip.address):
                return UNREAD
            loads = self._loads_of_c(sm, e.agent)
            tile_number, subtile = divmod(loads.index(e), self.plan.subtiles)
            tile = self.reference.tiles[sm][tile_number]
            row, column, low_bit = self._element_of_stage("C", flip)
            row += 128 * tile[0]
            column += self.config.tile.n * tile[1] + 32 * subtile
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
                and 0
                <= e.operands["address"] - start
                < self.config.epilogue.c_stages * nbytes
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
            if self.config.epilogue.d_format == "nvfp4":
                column, bit = column + bit // 4, bit % 4
            if row < d.shape[0] and column < d.shape[1]:
                d[row, column] ^= d.dtype.type(1 << bit)
            return Prediction("used", d, self.reference.sfd)
        return UNREAD

    def _element_of_stage(self, name: str, flip: Flip) -> tuple[int, int, int]:
        """Row and column in a 128 x 32 box, and the first bit of the flipped byte."""
        start, nbytes = self._stages(name)
        bits = (self.plan.c_type if name == "C" else self.plan.d_type).bits
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
        if len(readers) == self.plan.clc_consumers // 32:
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
            if writes(e, flip.space, flip.address):
                break
            readers.append(e)
        return readers

    # Tiles.

    def _stages(self, name: str) -> tuple[int, int]:
        """Shared address and size of stage 0."""
        smem = self.plan.smem
        offset, nbytes = {
            "A": (smem.a, self.plan.a_nbytes),
            "B": (smem.b, self.plan.b_nbytes),
            "SFA": (smem.sfa, self.plan.sfa_nbytes),
            "SFB": (smem.sfb, self.plan.sfb_nbytes),
            "C": (smem.c_subtile, self.plan.c_subtile_nbytes),
            "D": (smem.d_subtile, self.plan.d_subtile_nbytes),
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


def flipped(x: NDArray[np.float32], bit: int) -> NDArray[np.float32]:
    return (x.view(np.uint32) ^ np.uint32(1 << bit)).view(np.float32)
