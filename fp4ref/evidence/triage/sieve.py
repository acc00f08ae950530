"""sieve: a few elements in rough arithmetic, to throw most readings away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fp4ref.evidence.triage.case import Case
from fp4ref.evidence.triage.overview import Band, column_unit, spread
from fp4ref.evidence.triage.predict import ACTIVATIONS, F32, converted
from fp4ref.evidence.triage.reading import I64, Map, Reading, Side, through
from fp4ref.numerics.elements import element
from fp4ref.tensors.block_format import NVFP4_VEC_SIZE
from fp4ref.tensors.block_scaled import BlockScaled

ROWS: Final = 4
COLUMNS: Final = 4
"""Or one block of columns that share a scale."""
_NEAR: Final = {
    "f32": 2.0**-13,
    "bf16": 2.0**-7,
    "f16": 2.0**-9,
    "e4m3": 2.0**-3,
    "e5m2": 2.0**-2,
}
"""How near a rough number must be, by the format of D."""
_AT_ONCE: Final = 4096


class Sieve:
    """Some rows and columns of one tile.

    Parameters
    ----------
    found
        The elements of a tile, with those that are still to be explained as `differs`.
    """

    def __init__(self, case: Case, found: Band) -> None:
        unit = column_unit(case)
        rows = _fullest(found.differs.sum(axis=1), ROWS, 1)
        columns = _fullest(found.differs.sum(axis=0), max(COLUMNS, unit), unit)
        if not found.differs.any() and found.sfd_differs is not None:
            rows = _fullest(found.sfd_differs.sum(axis=1), 2 * ROWS, 1)
            blocks = _fullest(found.sfd_differs.sum(axis=0), 2, 1)
            columns = np.flatnonzero(
                np.isin(found.columns // NVFP4_VEC_SIZE, found.blocks[blocks])
            )
        self.case, self.band = case, found.sub(rows, columns)
        self._value_of = {
            name: element(q.format).values(np.arange(1 << element(q.format).bits))
            for name, q in (("a", case.a), ("b", case.b))
        }
        self._codes: dict[tuple[str, tuple[Map, ...]], F32] = {}
        self._scales: dict[tuple[str, tuple[Map, ...]], F32] = {}
        self._values: dict[tuple[str, Side], F32] = {}
        self._sums: dict[tuple[Side, Side], F32] = {}
        x, y = self._side("a", Side()), self._side("b", Side())
        with np.errstate(all="ignore"):
            magnitude = np.abs(x) @ np.abs(y).T
        self._slack = np.nan_to_num(magnitude * np.float32(2.0**-16))

    def shares(self, readings: list[Reading]) -> NDArray[np.float64]:
        """Return which part of what differs each reading gives, roughly."""
        alike: dict[Reading, list[int]] = {}
        for i, reading in enumerate(readings):
            epilogue = replace(reading, a=Side(), b=Side(), splits=1, order="mma")
            alike.setdefault(epilogue, []).append(i)
        found = np.zeros(len(readings))
        for epilogue, places in alike.items():
            for first in range(0, len(places), _AT_ONCE):
                some = places[first : first + _AT_ONCE]
                sums = np.stack([self._sum(readings[i]) for i in some])
                found[some] = self._shares_of(epilogue, sums)
        return found

    def _sum(self, reading: Reading) -> F32:
        key = reading.a, reading.b
        if key in self._sums:
            return self._sums[key]
        with np.errstate(all="ignore"):
            sums: F32 = self._side("a", reading.a) @ self._side("b", reading.b).T
        self._sums[key] = sums
        return sums

    def _shares_of(self, reading: Reading, sums: F32) -> NDArray[np.float64]:
        """Return the shares of readings that differ in their sums (readings, ...)."""
        case, band = self.case, self.band
        seen, known = stored_d(case, reading, band.rows, band.columns)
        z = self._rough(reading, sums)
        shares = []
        if case.format != "nvfp4":
            hit = self._near(z, seen, reading) & known
            if reading.unwritten is not None:
                region = reading.unwritten(band.rows[:, None], band.columns[None])
                hit = np.broadcast_to(region, hit.shape)
            shares.append((hit, band.differs))
        else:
            made = converted(case, reading, z.reshape(-1, z.shape[-1]))
            hit = (made.d.reshape(z.shape) == seen) & known
            shares.append((hit, band.differs))
            if band.sfd_differs is not None and made.sfd is not None:
                scales, there = stored_sfd(case, reading, band.rows, band.blocks)
                hit = made.sfd.reshape(len(z), *scales.shape) == scales
                shares.append((hit & there, band.sfd_differs))
        found = np.ones(len(z))
        for hit, differs in shares:
            if differs.any():
                part = (hit & differs).sum(axis=(1, 2)) / differs.sum()
                found = np.minimum(found, part)
        return found

    def _near(self, z: F32, seen: NDArray[Any], reading: Reading) -> NDArray[np.bool_]:
        of = element(self.case.format)
        value = of.values(seen)
        with np.errstate(all="ignore"):
            if self.case.format in ("e4m3", "e5m2"):
                z = np.clip(z, -of.largest, of.largest)
            slack = self._slack * abs(reading.alpha) + _NEAR[of.name] * np.abs(z)
            near = (np.abs(z - value) <= slack) | (z == value)
        found: NDArray[np.bool_] = near | (np.isnan(z) & np.isnan(value))
        return found

    def _rough(self, reading: Reading, sums: F32) -> F32:
        case, alpha = self.case, np.float32(reading.alpha)
        with np.errstate(all="ignore"):
            z: F32 = alpha * sums
            if case.bias is not None and reading.bias != "missing":
                by_row = reading.bias == "row"
                bias = case.bias[
                    self.band.rows[:, None] % case.n if by_row else self.band.columns
                ]
                z += alpha * bias if reading.bias == "scaled" else bias
            if case.c is not None:
                c = case.c[np.ix_(self.band.rows, self.band.columns)]
                z += np.float32(case.config.epilogue.beta) * c
        apply = ACTIVATIONS.get(case.config.epilogue.activation or "")
        return apply(z) if apply else z

    def _side(self, name: str, side: Side) -> F32:
        if (name, side) in self._values:
            return self._values[name, side]
        q = self.case.a if name == "a" else self.case.b
        rows = self.band.rows if name == "a" else self.band.columns
        codes = self._of_codes(name, q, rows, side.code_maps)
        scales = self._of_scales(name, q, rows, side.scale_maps)
        blocks = codes.reshape(*scales.shape, q.vec_size) * scales[..., None]
        values = blocks.reshape(codes.shape)
        if len(side.code_maps) + len(side.scale_maps) < 2:
            self._values[name, side] = values
        return values

    def _of_codes(
        self, name: str, q: BlockScaled, rows: I64, maps: tuple[Map, ...]
    ) -> F32:
        if (name, maps) in self._codes:
            return self._codes[name, maps]
        row, k = through(maps, rows[:, None], np.arange(q.shape[1])[None])
        codes = np.where(row < 0, 0, q.codes[row, k % q.shape[1]])
        values = self._value_of[name][codes]
        if len(maps) < 2:
            self._codes[name, maps] = values
        return values

    def _of_scales(
        self, name: str, q: BlockScaled, rows: I64, maps: tuple[Map, ...]
    ) -> F32:
        if (name, maps) not in self._scales:
            cols = q.scales.shape[1]
            row, at = through(maps, rows[:, None], np.arange(cols)[None])
            codes = np.where(row < 0, 0, q.scales[row, at % cols])
            self._scales[name, maps] = q.scale_format.decode(codes.astype(np.uint8))
        return self._scales[name, maps]


def stored_d(
    case: Case, reading: Reading, rows: I64, columns: I64
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the dump where a reading stores elements, and which are in it."""
    row, column = through(
        reading.d_maps, *np.broadcast_arrays(rows[:, None], columns[None])
    )
    known = (row >= 0) & (row < case.m)
    return case.d[np.where(known, row, 0), column % case.n], known


def stored_sfd(
    case: Case, reading: Reading, rows: I64, blocks: I64
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return the dumped scales where a reading stores them, and which are in it."""
    assert case.sfd is not None
    row, column = through(
        reading.sfd_maps, *np.broadcast_arrays(rows[:, None], blocks[None])
    )
    known = (row >= 0) & (row < case.m)
    return case.sfd[np.where(known, row, 0), column % case.sfd.shape[1]], known


def _fullest(counts: I64, count: int, unit: int) -> I64:
    """Return the places of some lines with most differences, in runs of `unit`."""
    padded = np.pad(counts, (0, -len(counts) % unit))
    of_units = padded.reshape(-1, unit).sum(axis=1)
    wanted = max(1, count // unit)
    full = np.flatnonzero(of_units >= 0.9 * of_units.max())
    if len(full) > wanted:
        best = full[spread(len(full), wanted, 1)]
    else:
        best = np.sort(np.argsort(-of_units, kind="stable")[:wanted])
    found = (best[:, None] * unit + np.arange(unit)).ravel()
    return found[found < len(counts)]
