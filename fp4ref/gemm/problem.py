"""problem: operands checked and uploaded, the launch, and D read back.

What the host does. Tensor maps of the problem are made here, once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import require_finite_float32
from fp4ref.errors import InputError
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.nvfp4_gemm import nvfp4_gemm
from fp4ref.gemm.partition import gemm_params, pitch_elements
from fp4ref.gemm.plan import Plan, plan
from fp4ref.gemm.plan.rules import MOST_UNITS
from fp4ref.gemm.tile_grid import TileGrid
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
from fp4ref.tensors.block_scaled import BlockScaled
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
        (L, M, N): float32, float16, uint16 bit patterns of bf16, or uint8 E2M1 codes.
    sfd
        (L, padded bytes) in the 128x4 layout; None unless D is NVFP4.
    written
        (L, M, N): which elements of D were stored.
    """

    d: NDArray[Any]
    sfd: Bytes | None
    written: NDArray[np.bool_]


class GemmProblem:
    """Operands in the global memory of a machine, ready to launch.

    Parameters
    ----------
    a, b
        NVFP4 operands (M, K) and (N, K), or with a leading batch dimension L.
    c
        (M, N) or (L, M, N) in `config.epilogue.c_format` bits, or None.
    bias
        (N,) float32, or None.
    alpha
        Factor of the product, finite in float32; None takes
        ``1 / (global scale of A * global scale of B)``.
    workspace
        Bytes for the sums and locks of split-K, the locks zero; None makes them.

    Raises
    ------
    InputError
        Shapes, formats or presence do not fit the configuration.
    """

    def __init__(
        self,
        machine: Machine,
        a: BlockScaled,
        b: BlockScaled,
        c: NDArray[Any] | None,
        bias: NDArray[np.float32] | None,
        config: GemmConfig,
        alpha: float | None = None,
        workspace: NDArray[np.uint8] | None = None,
    ) -> None:
        self.machine, self.config, self.plan = machine, config, plan(config)
        batches, m, n, k = _sizes(a, b, self.plan.sf_vec_size)
        self.shape = (batches, m, n)
        _check_units(batches, config)
        d_pitch = pitch_elements(n, self.plan.d_type)
        self._d_nbytes = batches * m * d_pitch * self.plan.d_type.bits // 8
        self._sfd_nbytes = 0
        if block := BLOCKS.get(config.epilogue.d_format):
            self._sfd_nbytes = batches * sf_nbytes(m, -(-n // block.vec_size))
        at = self._upload(a, b, c, bias)
        at["workspace"] = self._workspace(workspace)
        self.params = gemm_params(
            self.plan,
            (batches, m, n, k),
            at,
            a.scale_format,
            _alpha(a, b, alpha),
        )

    def _upload(
        self,
        a: BlockScaled,
        b: BlockScaled,
        c: NDArray[Any] | None,
        bias: NDArray[np.float32] | None,
    ) -> dict[str, int]:
        """Copy the operands to global memory, make room for D; addresses by name."""
        gmem, config = self.machine.gmem, self.config
        at = {
            "A": gmem.upload("A", a.packed()),
            "B": gmem.upload("B", b.packed()),
            "SFA": gmem.upload("SFA", a.swizzled_scales().data),
            "SFB": gmem.upload("SFB", b.swizzled_scales().data),
        }
        if config.epilogue.c_format is not None:
            at["C"] = gmem.upload("C", _padded_c(c, self.shape, self.plan))
        elif c is not None:
            raise InputError("c is given, but config.epilogue.c_format is None; set it")
        at["D"] = gmem.allocate("D", self._d_nbytes)
        if self._sfd_nbytes:
            at["SFD"] = gmem.allocate("SFD", self._sfd_nbytes)
        checked = _checked_bias(bias, self.shape[2], config)
        if checked is not None:
            at["bias"] = gmem.upload("bias", checked)
        return at

    def _workspace(self, given: NDArray[np.uint8] | None) -> int:
        """Make room for the splits to come together; 0 where there is but one."""
        batches, m, n = self.shape
        tiles = TileGrid.of(m, n, batches, self.config).output_tiles
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
        """Copy D and SFD back."""
        gmem, config = self.machine.gmem, self.config
        batches, m, n = self.shape
        d_address, sfd_address = self.params.d.address, self.params.sfd
        start = d_address - gmem.base
        raw = gmem.contents(d_address, self._d_nbytes)
        written = gmem.written[start : start + self._d_nbytes]
        shape = (batches, m, -1)
        d: NDArray[Any]
        stored = element(config.epilogue.d_format)
        if stored.bits == 4:
            d = unpack_e2m1(raw).reshape(shape)
            mask = np.repeat(written, 2).reshape(shape)
        else:
            d = raw.view(stored.host_dtype).reshape(shape)
            mask = written[:: d.itemsize].reshape(shape)
        mask = mask[..., :n]
        sfd = None
        if sfd_address:
            sfd = gmem.contents(sfd_address, self._sfd_nbytes)
            sfd_start = sfd_address - gmem.base
            known = gmem.written[sfd_start : sfd_start + self._sfd_nbytes]
            sfd = np.where(known, sfd, 0).astype(np.uint8).reshape(batches, -1)
        zero = d.dtype.type(0)
        return GemmOutput(np.where(mask, d[..., :n], zero), sfd, mask)


def _sizes(a: BlockScaled, b: BlockScaled, vec_size: int) -> tuple[int, int, int, int]:
    """Return (L, M, N, K); raise `InputError` if the operands do not fit."""
    for name, q in (("A", a), ("B", b)):
        if q.vec_size != vec_size:
            raise InputError(
                f"{name} has one scale for {q.vec_size} elements; this kernel takes "
                f"{vec_size}: set operand_format={q.format!r}",
                gap="gemm-operands",
            )
        if q.codes.ndim not in (2, 3):
            raise InputError(
                f"{name} has shape {q.codes.shape}; give (M, K) or (L, M, K)"
            )
        if 0 in q.codes.shape:
            raise InputError(
                f"{name} has shape {q.codes.shape}; every size is at least 1"
            )
    if a.scale_format is not b.scale_format:
        raise InputError(
            f"A has {a.scale_format.name} scales and B {b.scale_format.name}; the "
            "instruction descriptor has one scale type for both"
        )
    *lead_a, m, k = a.codes.shape
    *lead_b, n, k_b = b.codes.shape
    if lead_a != lead_b or k != k_b:
        raise InputError(
            f"A is {a.codes.shape} and B is {b.codes.shape}; K and the batch dimension "
            "must agree (D = A @ B.T)"
        )
    if k != padded_k(k):
        raise InputError(
            f"K = {k}: K must be a multiple of {K_MULTIPLE}, because TMA's row pitch "
            f"of K / 2 bytes is a multiple of 16. Pad with code 0 and scale 0 to "
            f"{padded_k(k)}; the result does not change"
        )
    return (lead_a[0] if lead_a else 1), m, n, k


def _check_units(batches: int, config: GemmConfig) -> None:
    """Raise `InputError` for more batches and splits than a grid has along z."""
    splits = config.tiles.splits
    if batches * splits > MOST_UNITS:
        raise InputError(
            f"{batches} batches of splits={splits}: they lie along z, and a grid has "
            f"at most {MOST_UNITS} there. Launch some batches after the others"
        )


def _alpha(a: BlockScaled, b: BlockScaled, given: float | None) -> float:
    """Return alpha as float32: the one given, or 1 over the global scales."""
    if given is not None:
        return require_finite_float32(given, "alpha")
    product = float(a.global_scale or 1) * float(b.global_scale or 1)
    with np.errstate(over="ignore"):
        alpha = float(np.float32(1.0 / product)) if product else float("inf")
    if alpha == float("inf"):
        raise InputError(
            f"global scales {a.global_scale} and {b.global_scale}: alpha, 1 over their "
            "product, is infinite in float32. Divide A or B by a power of two before "
            "quantising, which divides D by it, or pass alpha="
        )
    return alpha


def _padded_c(
    c: NDArray[Any] | None, shape: tuple[int, int, int], plan: Plan
) -> NDArray[Any]:
    """Return C with a padded row pitch; zeros when the kernel never reads it."""
    config, (batches, m, n) = plan.config, shape
    dtype = element(config.epilogue.c_format or "f32").host_dtype
    padded = np.zeros((batches, m, pitch_elements(n, plan.c_type)), dtype)
    if c is None:
        if plan.loads_c:
            raise InputError(
                f"beta={config.epilogue.beta} needs c; pass c= of shape {(m, n)}"
            )
        return padded
    if c.dtype != dtype or c.shape not in ((m, n), (batches, m, n)):
        raise InputError(
            f"c is {c.dtype} {c.shape}; give {dtype} {(m, n)} (c_format "
            f"{config.epilogue.c_format!r}; bf16 as its uint16 bits)"
        )
    padded[..., :n] = c
    return padded


def _checked_bias(
    bias: NDArray[np.float32] | None, n: int, config: GemmConfig
) -> NDArray[np.float32] | None:
    """Return the bias that the kernel adds; None if it adds none."""
    if bias is None and not config.epilogue.bias:
        return None
    if bias is None or not config.epilogue.bias:
        raise InputError("pass bias= and set config.epilogue.bias, or neither")
    if bias.shape != (n,) or bias.dtype != np.float32:
        raise InputError(f"bias is {bias.dtype} {bias.shape}; give float32 ({n},)")
    return bias
