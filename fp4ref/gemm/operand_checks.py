"""operand_checks: what A, B, C and bias must be for a configuration, and alpha."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import require_finite_float32
from fp4ref.errors import InputError
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.partition import pitch_elements
from fp4ref.gemm.plan import Plan
from fp4ref.numerics.elements import element
from fp4ref.numerics.kinds import kind_of
from fp4ref.tensors.unscaled import Operand


def sizes(a: Operand, b: Operand, plan: Plan) -> tuple[int, int, int, int]:
    """Return (L, M, N, K); raise `InputError` if the operands do not fit."""
    wanted_a, wanted_b = plan.formats
    asked = (
        ("A", a, wanted_a, "operand_format"),
        ("B", b, wanted_b, "b_format"),
    )
    for name, q, wanted, field in asked:
        if q.format != wanted:
            remedy = f"Make {name} anew in {wanted}"
            if name == "A" or kind_of(wanted_a, q.format):
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
    return (lead_a[0] if lead_a else 1), m, n, k


def with_loader(plan: Plan, k: int) -> GemmConfig:
    """Return the plan's configuration, with a loader for rows of `k` elements.

    Raises
    ------
    InputError
        TMA cannot read them, and these formats or a cluster's CTAs load by nothing
        else.
    """
    if k % plan.k_multiple == 0:
        return plan.config
    padded = -(-k // plan.k_multiple) * plan.k_multiple
    bits = plan.a_type.bits
    pitch = {4: "K / 2", 6: "3 * K / 4", 8: "K", 16: "2 * K"}[bits]
    why = f"TMA's row pitch of {pitch} bytes is a multiple of 16"
    if plan.a_type.is_padded or plan.b_type.is_padded:
        why = "TMA takes whole boxes of 128 padded elements"
    code = "code 0 and scale 0" if plan.sf_atoms else "code 0"
    if plan.kind != "mxf4nvf4":
        raise InputError(
            f"K = {k}: K must be a multiple of {plan.k_multiple}, because {why}. Pad "
            f"with {code} to {padded}; the result does not change"
        )
    if plan.cluster_size > 1:
        raise InputError(
            f"K = {k}: in a cluster K must be a multiple of {plan.k_multiple}, because "
            f"{why}. Pad with {code} to {padded}, which does not change the result, or "
            "use a cluster of one CTA"
        )
    return plan.config.replace(loader="cp_async")


def alpha_of(a: Operand, b: Operand, given: float | None) -> float:
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


def padded_c(
    c: NDArray[Any] | None, shape: tuple[int, int, int], plan: Plan
) -> NDArray[Any]:
    """Return C with a padded row pitch; zeros when the kernel never reads it."""
    config, (batches, m, n) = plan.config, shape
    format = element(config.epilogue.c_format or "f32")
    dtype, named = format.host_dtype, np.dtype(format.dtype)
    plain = config.epilogue.store == "plain"
    rows, columns = (m, n) if plain else (n, m)
    padded = np.zeros((batches, rows, pitch_elements(columns, plan.c_type)), dtype)
    if c is None:
        if plan.loads_c:
            raise InputError(
                f"{_who_needs_c(config)} needs c; pass c= of shape {(m, n)}"
            )
        return padded
    if dtype != c.dtype != named or c.shape not in ((m, n), (batches, m, n)):
        bits = "" if dtype == named else f", or its bits as {dtype}"
        raise InputError(
            f"c is {c.dtype} {c.shape}; c_format is {config.epilogue.c_format!r}: give "
            f"{named} {(m, n)}{bits}"
        )
    codes = np.ascontiguousarray(c).view(dtype)
    padded[..., :columns] = codes if plain else codes.swapaxes(-1, -2)
    return padded


def _who_needs_c(config: GemmConfig) -> str:
    return "the tree" if config.epilogue.fusion else f"beta={config.epilogue.beta}"


def checked_bias(
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
