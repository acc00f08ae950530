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
from fp4ref.hardware.machine import Machine
from fp4ref.layout import sf_nbytes
from fp4ref.numerics import unpack_e2m1
from fp4ref.numerics.elements import BLOCKS, element
from fp4ref.numerics.kinds import kind_of
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
        Operands (M, K) and (N, K) of the configuration's formats, or with a leading
        batch dimension L.
    c
        (M, N) or (L, M, N) in `config.epilogue.c_format` bits, or None.
    bias
        (N,) float32, or None.
    alpha
        Factor of the product, finite in float32; None takes
        ``1 / (global scale of A * global scale of B)``.

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
    ) -> None:
        self.machine, self.config, self.plan = machine, config, plan(config)
        batches, m, n, k = _sizes(a, b, self.plan)
        self.shape = (batches, m, n)
        d_pitch = pitch_elements(n, self.plan.d_type)
        self._d_nbytes = batches * m * d_pitch * self.plan.d_type.bits // 8
        self._sfd_nbytes = 0
        if block := BLOCKS.get(config.epilogue.d_format):
            self._sfd_nbytes = batches * sf_nbytes(m, -(-n // block.vec_size))
        self.params = gemm_params(
            self.plan,
            (batches, m, n, k),
            self._upload(a, b, c, bias),
            a.scale_format,
            _alpha(a, b, alpha),
        )

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

    def launch(self, tiles: Iterable[tuple[int, ...]] | None = None) -> None:
        """Run the kernel; `tiles` restricts it to (m, n) or (m, n, batch) tiles.

        Raises
        ------
        InputError
            A tile is outside the grid, or a part is asked of the static scheduler.
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
        only = None
        if tiles is not None:
            only = list(dict.fromkeys(self._ctaid(tile) for tile in tiles))
            if config.tiles.scheduler == "static":
                raise InputError(
                    "some tiles only: the static scheduler walks the whole grid; use "
                    "scheduler='clc'"
                )
        if config.tiles.scheduler == "static":
            return self._persistent_dims(), only
        return grid.dims, only

    def _persistent_dims(self) -> Dim3:
        """Extents of as many clusters as run at a time, at most one for each tile."""
        cluster_m, cluster_n, _ = self.plan.cluster
        major, minor = self.params.grid.clusters
        tiles = major * minor * self.params.grid.batches
        most = max(1, len(self.machine.sms) // self.plan.cluster_size)
        return min(most, tiles) * cluster_m, cluster_n, 1

    def _ctaid(self, tile: tuple[int, ...]) -> tuple[int, int, int]:
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
        x, y, z = grid.ctaid(m, n, batch)
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


def _sizes(a: Operand, b: Operand, plan: Plan) -> tuple[int, int, int, int]:
    """Return (L, M, N, K); raise `InputError` if the operands do not fit."""
    asked = (
        ("A", a, plan.a_format, "operand_format"),
        ("B", b, plan.b_format, "b_format"),
    )
    for name, q, wanted, field in asked:
        if q.format != wanted:
            remedy = f"Make {name} anew in {wanted}"
            if name == "A" or kind_of(plan.a_format, q.format):
                remedy = f"Set {field}={q.format!r}, or make {name} anew"
            raise InputError(
                f"{name} is {q.format}; this kernel takes {wanted}. {remedy}"
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
        types = [q.scale_format.name if q.scale_format else "no" for q in (a, b)]
        raise InputError(
            f"A has {types[0]} scales and B {types[1]}; the instruction descriptor has "
            "one scale type for both"
        )
    *lead_a, m, k = a.codes.shape
    *lead_b, n, k_b = b.codes.shape
    if lead_a != lead_b or k != k_b:
        raise InputError(
            f"A is {a.codes.shape} and B is {b.codes.shape}; K and the batch dimension "
            "must agree (D = A @ B.T)"
        )
    if k % plan.k_multiple:
        bits = plan.a_type.bits
        pitch = {4: "K / 2", 6: "3 * K / 4", 8: "K", 16: "2 * K"}[bits]
        why = f"TMA's row pitch of {pitch} bytes is a multiple of 16"
        if plan.a_type.is_padded or plan.b_type.is_padded:
            why = "TMA takes whole boxes of 128 padded elements"
        code = "code 0 and scale 0" if plan.sf_atoms else "code 0"
        raise InputError(
            f"K = {k}: K must be a multiple of {plan.k_multiple}, because {why}. Pad "
            f"with {code} to {-(-k // plan.k_multiple) * plan.k_multiple}; the result "
            "does not change"
        )
    return (lead_a[0] if lead_a else 1), m, n, k


def _alpha(a: Operand, b: Operand, given: float | None) -> float:
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
