"""epilogue: global scales, bias, the scale of D, and the order of the sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fp4ref.evidence.triage.case import Case
from fp4ref.evidence.triage.mistake import Change, Mistake, setting
from fp4ref.evidence.triage.reading import Bias, Order

_SPLITS: Final = (2, 3, 4, 5, 6, 7, 8)
_ORDERS: Final[tuple[tuple[Order, str], ...]] = (
    ("float64", "exact, rounded once"),
    ("one by one", "float32, element after element"),
    ("block by block", "float32, block after block"),
    ("any", "float32, in an order of its own"),
)


def _alphas(case: Case) -> Iterator[tuple[str, Change]]:
    a, b = (float(q.global_scale or 1) for q in (case.a, case.b))
    right = np.float32(case.alpha)
    with np.errstate(all="ignore"):
        one, g, h = np.float64(1), np.float64(a), np.float64(b)
        found = {
            "alpha is missing": one,
            "alpha is inverted": one / np.float64(case.alpha),
            "alpha is applied twice": np.float64(case.alpha) ** 2,
            "that of A is missing": one / h,
            "that of B is missing": one / g,
            "that of A is inverted": g / h,
            "that of B is inverted": h / g,
            "that of A is used for B too": one / (g * g),
            "that of B is used for A too": one / (h * h),
        }
        seen = {float(right)}
        for words, value in found.items():
            alpha = float(np.float32(value))
            if alpha in seen or not np.isfinite(alpha) or alpha == 0:
                continue
            seen.add(alpha)
            yield words, setting(alpha=alpha)
    norm = case.config.epilogue.norm_constant
    if case.format == "nvfp4" and norm != 1:
        yield "norm constant is missing", setting(norm=1.0)
        yield "norm constant is inverted", setting(norm=1 / norm)


def _biases(case: Case) -> Iterator[tuple[str, Change]]:
    if case.bias is None:
        return
    kinds: tuple[tuple[Bias, str], ...] = (
        ("row", "by row for by column"),
        ("missing", "missing"),
        ("scaled", "added before alpha"),
    )
    for kind, words in kinds:
        yield words, setting(bias=kind)


def _unrounded(case: Case) -> Iterator[tuple[str, Change]]:
    if case.format == "nvfp4":
        yield "", setting(unrounded=True)


def _orders(case: Case) -> Iterator[tuple[str, Change]]:
    for order, words in _ORDERS:
        yield words, setting(order=order)


def _slices(case: Case) -> Iterator[tuple[str, Change]]:
    asked = case.config.tiles.splits
    for splits in (1, *_SPLITS):
        if splits != asked and splits <= case.k_tiles:
            words = f"{splits} slices of K" if splits > 1 else "one slice of K"
            yield words, setting(splits=splits)


EPILOGUE = (
    Mistake(
        "unrounded scale of D",
        "Elements of D were divided by a block scale that was not rounded.",
        "amax / 6 was used for the elements, and its rounded code was stored: reader "
        "and writer have different scales.",
        "the reciprocal in the epilogue: of the decoded UE4M3 code [CUTLASS: "
        "LinCombBlockScaleFactor]",
        _unrounded,
    ),
    Mistake(
        "bias",
        "The bias is added along the wrong side, before alpha, or not at all.",
        "A bias of N was broadcast as a column: element m for element n.",
        "the broadcast in the epilogue: Sm90RowBroadcast is a row that every row of D "
        "adds; Sm90ColBroadcast the other",
        _biases,
    ),
    Mistake(
        "global scale",
        "The factor of the product is missing, the inverse, or of one operand only.",
        "Checkpoints store amax / 2688 (ModelOpt, torchao) or its inverse "
        "(TransformerEngine, FlashInfer, vLLM, compressed-tensors). The MMA has no "
        "place for either: alpha = 1 / (G_A * G_B).",
        "alpha at the launch; from_packed(global_scale_convention=...)",
        _alphas,
    ),
    Mistake(
        "split-K order",
        "K is summed in slices whose float32 sums are added: no mistake in itself.",
        "The kernel runs split-K or stream-K with another count of slices.",
        "GemmConfig.nvfp4(splits=...) gives these bits",
        _slices,
    ),
    Mistake(
        "float32 order",
        "Products are added in float32: a reference without the MMA's arithmetic.",
        "A float32 GEMM of dequantised operands, on a GPU or with BLAS, rounds to "
        "nearest; the MMA aligns the terms of K = 64 and truncates.",
        "what computed D: compare with a tolerance (oracle.bound), or with the MMA's "
        "model, fp4ref.matmul",
        _orders,
    ),
)
