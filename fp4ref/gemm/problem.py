"""problem: operands checked and uploaded, the launch, and D read back.

What the host does. Tensor maps of the problem are made here, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.errors import InputError
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.fusion.launch_arguments import place, results
from fp4ref.gemm.nvfp4_gemm import nvfp4_gemm
from fp4ref.gemm.operand_checks import (
    alpha_of,
    checked_bias,
    padded_c,
    sizes,
    with_loader,
)
from fp4ref.gemm.partition import gemm_params, pitch_elements
from fp4ref.gemm.plan import plan
from fp4ref.gemm.plan.rules import MOST_UNITS
from fp4ref.gemm.tile_grid import TileGrid
from fp4ref.gemm.void_d import void_d
from fp4ref.gemm.workspace import (
    check_workspace,
    checked_workspace,
    new_workspace,
    zero_locks,
)
from fp4ref.hardware.machine import Machine
from fp4ref.layout import sf_nbytes
from fp4ref.numerics import unpack_e2m1
from fp4ref.numerics.elements import BLOCKS, element
from fp4ref.numerics.subnormals import require_subnormals
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.unscaled import Operand
from fp4ref.trace import Bytes, Dim3

K_MULTIPLE = 32


def padded_k(k: int) -> int:
    """Return the next K that a row of packed E2M1 at TMA's pitch can have."""
    return -(-k // K_MULTIPLE) * K_MULTIPLE


@dataclass(frozen=True)
class GemmOutput:
    """What the kernel left in global memory, cropped to the user's shape.

    Attributes
    ----------
    d
        (L, M, N), however it lies in memory: float32, float16, or unsigned codes of
        types that NumPy has not; a `VoidD` if the kernel stores none.
    sfd
        (L, padded bytes) in the 128x4 layout over the rows of D in memory; None unless
        D is NVFP4.
    written
        (L, M, N): which elements of D were stored.
    left
        What the formula's nodes left, by name.
    """

    d: NDArray[Any]
    sfd: Bytes | None
    written: NDArray[np.bool_]
    left: Mapping[str, NDArray[Any]]


class GemmProblem:
    """Operands in the global memory of a machine, ready to launch.

    Parameters
    ----------
    a, b
        Operands (M, K) and (N, K) of the configuration's formats, or with a leading
        batch dimension L.
    c
        (M, N) or (L, M, N) in `config.epilogue.c_format` bits, or None.
    bias
        (N,) float32, or None.
    alpha
        Factor of the product, finite in float32; None takes
        ``1 / (global scale of A * global scale of B)``.
    workspace
        Bytes for the sums and locks of split-K, the locks zero; None makes them.
    arguments
        What a tree's nodes take, by name; a tree has its bias from `bias` or from here.

    Raises
    ------
    InputError
        Shapes, formats or presence do not fit the configuration.
    """

    def __init__(
        self,
        machine: Machine,
        a: Operand,
        b: Operand,
        c: NDArray[Any] | None,
        bias: NDArray[np.float32] | None,
        config: GemmConfig,
        alpha: float | None = None,
        workspace: NDArray[np.uint8] | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        require_subnormals()
        planned = plan(config)
        batches, m, n, k = sizes(a, b, planned)
        config = with_loader(planned, k)
        self.machine, self.config, self.plan = machine, config, plan(config)
        self.shape = (batches, m, n)
        _check_units(batches, config)
        _, rows, columns = self.stored_shape
        d_pitch, self._d_nbytes = pitch_elements(columns, self.plan.d_type), 0
        if config.epilogue.d_format is not None:
            self._d_nbytes = batches * rows * d_pitch * self.plan.d_type.bits // 8
        self._sfd_nbytes = 0
        if block := BLOCKS.get(config.epilogue.d_format or ""):
            per_row = -(-columns // block.vec_size)
            self._sfd_nbytes = batches * sf_nbytes(rows, per_row)
        if config.operands.swap_ab:
            a, b, m, n = b, a, n, m
        passed = dict(arguments or {})
        if bias is not None and config.epilogue.fusion is not None:
            if "bias" in passed:
                raise InputError("bias is passed as bias= and in arguments; drop one")
            passed["bias"], bias = bias, None
        at = self._upload(a, b, c, bias)
        slots = place(self.plan.fusion, machine.gmem, passed, self.stored_shape)
        tiles = TileGrid.of(m, n, batches, config).output_tiles
        at["workspace"] = self._workspace(workspace, tiles)
        self.params = gemm_params(
            self.plan,
            (batches, m, n, k),
            at,
            a.scale_format,
            alpha_of(a, b, alpha),
            slots,
        )

    @property
    def stored_shape(self) -> tuple[int, int, int]:
        """(L, rows, columns) of C and D in memory."""
        batches, m, n = self.shape
        plain = self.config.epilogue.store == "plain"
        return (batches, m, n) if plain else (batches, n, m)

    def _upload(
        self,
        a: Operand,
        b: Operand,
        c: NDArray[Any] | None,
        bias: NDArray[np.float32] | None,
    ) -> dict[str, int]:
        """Copy the operands to global memory, make room for D; addresses by name."""
        gmem, config = self.machine.gmem, self.config
        at = {
            "A": gmem.upload("A", a.packed()),
            "B": gmem.upload("B", b.packed()),
        }
        for name, q in (("SFA", a), ("SFB", b)):
            if isinstance(q, BlockScaled):
                at[name] = gmem.upload(name, q.swizzled_scales().data)
        if config.epilogue.c_format is not None:
            at["C"] = gmem.upload("C", padded_c(c, self.shape, self.plan))
        elif c is not None:
            raise InputError("c is given, but config.epilogue.c_format is None; set it")
        if self._d_nbytes:
            at["D"] = gmem.allocate("D", self._d_nbytes)
        if self._sfd_nbytes:
            at["SFD"] = gmem.allocate("SFD", self._sfd_nbytes)
        checked = checked_bias(bias, self.shape[2], config)
        if checked is not None:
            at["bias"] = gmem.upload("bias", checked)
        return at

    def _workspace(self, given: NDArray[np.uint8] | None, tiles: int) -> int:
        """Make room for the splits to come together; 0 where there is but one."""
        gmem = self.machine.gmem
        if given is None:
            return new_workspace(gmem, self.plan, tiles)
        return gmem.upload("workspace", checked_workspace(given, self.plan, tiles))

    def zero_locks(self) -> None:
        """Make the workspace of split-K ready for another launch."""
        grid, at = self.params.grid, self.params.workspace
        if at:
            zero_locks(self.machine.gmem, self.plan, grid.output_tiles, at)

    def launch(self, tiles: Iterable[tuple[int, ...]] | None = None) -> None:
        """Run the kernel; `tiles` restricts it to (m, n) or (m, n, batch) tiles.

        Raises
        ------
        InputError
            A tile is outside the grid, a part is asked of the static scheduler, or
            the workspace cannot be used.
        HardwareFault
            The kernel did something wrong.
        """
        dims, only = self.grid_dims(tiles)
        self.machine.launch(
            lambda cta: nvfp4_gemm(cta, self.plan, self.params),
            dims,
            cluster=self.plan.cluster,
            smem_nbytes=self.plan.smem.end,
            only=only,
        )

    def grid_dims(
        self, tiles: Iterable[tuple[int, ...]] | None = None
    ) -> tuple[Dim3, list[Dim3] | None]:
        """Extents of the launch, and the CTAs to start; None for all.

        Raises
        ------
        InputError
            As for `launch`.
        """
        config, grid = self.config, self.params.grid
        check_workspace(self.machine.gmem, self.plan, self.params)
        only = None
        if tiles is not None:
            asked = (self._ctaid(tile, i) for tile in tiles for i in range(grid.splits))
            only = list(dict.fromkeys(asked))
            if config.tiles.scheduler == "static":
                raise InputError(
                    "some tiles only: the static scheduler walks the whole grid; use "
                    "scheduler='clc'"
                )
        if config.tiles.scheduler == "static":
            return self._persistent_dims(), only
        return grid.dims, only

    def _persistent_dims(self) -> Dim3:
        """Extents of as many clusters as run at a time, at most one for each unit."""
        cluster_m, cluster_n, _ = self.plan.cluster
        major, minor = self.params.grid.clusters
        units = major * minor * self.params.grid.dims[2]
        most = max(1, len(self.machine.sms) // self.plan.cluster_size)
        return min(most, units) * cluster_m, cluster_n, 1

    def _ctaid(self, tile: tuple[int, ...], split: int) -> tuple[int, int, int]:
        """Return the first CTA of the cluster that has a split of a tile."""
        grid = self.params.grid
        try:
            at = tuple(index(i) for i in tile)
        except TypeError:
            at = ()
        m, n, batch = (*at, 0)[:3] if len(at) in (2, 3) else (-1, -1, -1)
        inside = 0 <= m < grid.tiles_m and 0 <= n < grid.tiles_n
        if not inside or not 0 <= batch < grid.batches:
            raise InputError(
                f"tiles: {tile!r:.60}; give (m, n) or (m, n, batch) inside "
                f"{grid.tiles_m} x {grid.tiles_n} tiles and {grid.batches} batches"
            )
        x, y, z = grid.ctaid(m, n, batch, split)
        cluster_m, cluster_n, _ = self.plan.cluster
        return x - x % cluster_m, y - y % cluster_n, z

    def output(self) -> GemmOutput:
        """Copy D and SFD back, and what the nodes left."""
        gmem = self.machine.gmem
        d, written = self._stored_d()
        sfd = None
        if sfd_address := self.params.sfd:
            sfd = gmem.contents(sfd_address, self._sfd_nbytes)
            sfd_start = sfd_address - gmem.base
            known = gmem.written[sfd_start : sfd_start + self._sfd_nbytes]
            sfd = np.where(known, sfd, 0).astype(np.uint8).reshape(self.shape[0], -1)
        slots = self.params.arguments
        left = results(self.plan.fusion, gmem, slots, self.stored_shape)
        return GemmOutput(d, sfd, written, left)

    def _stored_d(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return D, 0 where nothing was stored, and where something was: (L, M, N)."""
        gmem, config = self.machine.gmem, self.config
        batches, rows, columns = self.stored_shape
        if self.params.d is None:
            return void_d(), np.zeros(self.shape, np.bool_)
        address = self.params.d.address
        start = address - gmem.base
        raw = gmem.contents(address, self._d_nbytes)
        written = gmem.written[start : start + self._d_nbytes]
        shape = (batches, rows, -1)
        d: NDArray[Any]
        stored = element(config.epilogue.d_format or "")
        if stored.bits == 4:
            d = unpack_e2m1(raw).reshape(shape)
            mask = np.repeat(written, 2).reshape(shape)
        else:
            d = raw.view(stored.host_dtype).reshape(shape)
            mask = written[:: d.itemsize].reshape(shape)
        d, mask = d[..., :columns], mask[..., :columns]
        if config.epilogue.store == "transposed":
            d, mask = d.swapaxes(1, 2), mask.swapaxes(1, 2)
        return np.where(mask, d, d.dtype.type(0)), mask


def _check_units(batches: int, config: GemmConfig) -> None:
    """Raise `InputError` for more batches and splits than a grid has along z."""
    splits = config.tiles.splits
    if batches * splits > MOST_UNITS:
        raise InputError(
            f"{batches} batches of splits={splits}: they lie along z, and a grid has "
            f"at most {MOST_UNITS} there. Launch some batches after the others"
        )
