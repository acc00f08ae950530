"""mma_rungs: one MMA for each case, of every kind that the machine has."""

from __future__ import annotations

from typing import Any

import numpy as np

from fp4ref.attest.mma_cases import F32, NONE, Case, Codes, Draw, M, N
from fp4ref.attest.question import Part, Question, of_file, one_cta

ONE = 0x38
"""UE4M3 and E4M3 code of 1."""


def question(kinds: tuple[Case, ...]) -> Question:
    """Return the question of some MMAs, one part for each."""
    words = np.concatenate([case.words() for case in kinds])
    parts = tuple(
        Part(
            case.name,
            "out",
            i * M * N,
            M * N,
            case.predict,
            (("row", M), ("column", N)),
        )
        for i, case in enumerate(kinds)
    )
    call = one_cta("mma", len(kinds) * M * N, words, len(kinds))
    return of_file(
        "mma.cu",
        call,
        parts,
        tensor_core=True,
    )


def nvfp4() -> Question:
    """kind::mxf4nvf4 with UE4M3 scales, one for 16 elements."""
    draw = Draw(1)

    def case(name: str, **changed: Any) -> Case:
        given: dict[str, Any] = {
            "a": draw.codes("e2m1", 64),
            "b": draw.codes("e2m1", 64, N),
            "sfa": draw.scales(1, 0x7E, 4),
            "sfb": draw.scales(1, 0x7E, 4, N),
            "c": draw.c(-8, 14),
        }
        return Case(name, "nvfp4", **given | changed)

    ones = {
        "sfa": np.full((M, 4), ONE, np.uint8),
        "sfb": np.full((N, 4), ONE, np.uint8),
    }
    return question(
        (
            case("wide"),
            _cut(case("groups"), draw, (8, 15), (16, 23)),
            case("truncation", c=draw.c(0, 3), **ones),
            _cut(case("alignment"), draw, (1, 15), (1, 15)),
            _zero_group(case("zero group", c=draw.c(-30, -18)), draw),
            _half_zero(
                case("NaN scale", sfa=_some(draw, draw.scales(1, 0x7E, 4), 0x7F))
            ),
            case("infinite C", c=_specials(draw)),
            _cancelled(case("minus zero", **ones)),
            case("subnormal C", c=draw.c(-149, -127), a=np.zeros((M, 64), np.uint8)),
            case("no input D", c=_specials(draw), input_d=False),
            case("negated A", negated=True),
            case("sign of a scale", sfa=draw.scales(0x80, 0xFE, 4)),
        )
    )


def _some(draw: Draw, codes: Codes, special: int) -> Codes:
    """Put `special` in one of eight places."""
    at = draw.rng.integers(0, 8, codes.shape) == 0
    return np.where(at, codes.dtype.type(special), codes)


def _specials(draw: Draw) -> F32:
    """C with infinities, NaN, zeros of both signs and the largest numbers."""
    values = [0x7F800000, 0xFF800000, 0x7FC00001, 0, 0x80000000, 0x7F7FFFFF, 0xFF7FFFFF]
    chosen: F32 = draw.rng.choice(np.array(values, np.uint32), (M, N)).view(np.float32)
    return chosen


def _cut(case: Case, draw: Draw, of_a: tuple[int, int], of_b: tuple[int, int]) -> Case:
    """C cancels the large first group, so that the lowest bits of the others are seen.

    Scales of 2^-6 by 2^-5 reach down to the last bit that is kept, smaller ones below.
    """
    case.sfa[:], case.sfb[:] = draw.scales(*of_a, 4), draw.scales(*of_b, 4, N)
    case.sfa[:, 0] = case.sfb[:, 0] = 0x78  # 256
    case.a[:, 1:16] = 0
    case.b[:, 1:16] = 0
    case.a[:, 0], case.b[:, 0] = 2, 2  # 1 by 1
    case.c[:] = -65536
    return case


def _zero_group(case: Case, draw: Draw) -> Case:
    """A group of zeros has the largest scales, the others the smallest."""
    case.sfa[:], case.sfb[:] = draw.scales(1, 7, 4), draw.scales(1, 7, 4, N)
    case.sfa[:, 1] = case.sfb[:, 1] = 0x7E
    case.a[:, 16:32] = draw.rng.choice([0, 8], (M, 16))
    return case


def _half_zero(case: Case) -> Case:
    """Every second row of A is zero: a NaN scale is one there too."""
    case.a[::2] = 0
    return case


def _cancelled(case: Case) -> Case:
    """C is minus the products, and -0 where there are none."""
    case.a[::2] &= 8
    case.c[:] = 0
    case.c[:] = -case.predict().view(np.float32).reshape(M, N)
    return case


def mxf4() -> Question:
    """UE8M0 scales, one for 32 elements: kind::mxf4, and mxf4nvf4 with 2X."""
    draw = Draw(2)

    def case(
        name: str,
        kind: str,
        low: int,
        high: int,
        c_range: tuple[int, int],
        **changed: Any,
    ) -> Case:
        given: dict[str, Any] = {
            "a": draw.codes("e2m1", 64),
            "b": draw.codes("e2m1", 64, N),
            "sfa": draw.scales(low, high, 2),
            "sfb": draw.scales(low, high, 2, N),
            "c": draw.c(*c_range),
        }
        return Case(name, kind, **given | changed)

    return question(
        (
            case("mxf4", "mxf4", 117, 137, (-20, 20)),
            case("2X", "mxf4nvf4 2x", 117, 137, (-20, 20)),
            case("scale id", "mxf4", 120, 134, (-8, 8), scale_ids=(0, 2)),
            case("overflow", "mxf4", 184, 192, (120, 127)),
            case("subnormals", "mxf4", 50, 60, (-149, -127)),
            case(
                "smallest scale",
                "mxf4nvf4 2x",
                0,
                0,
                (-149, -140),
                sfb=draw.scales(126, 254, 2, N),
            ),
            _half_zero(
                case(
                    "NaN scale",
                    "mxf4",
                    0,
                    0,
                    (0, 0),
                    sfa=_some(draw, draw.scales(120, 130, 2), 0xFF),
                    sfb=draw.scales(120, 130, 2, N),
                )
            ),
        )
    )


def f16() -> Question:
    """kind::f16 with F16 and BF16 operands."""
    draw = Draw(3)
    cases = []
    for name in ("f16", "bf16"):
        for what in ("sum", "zeros", "specials"):
            a, b = draw.finite(name, 16), draw.finite(name, 16, N)
            c = draw.c(-8, 16)
            if what == "zeros":
                a, b = _far_zeros(a, b)
                c = draw.c(-40, -14)
            if what == "specials":
                a = _some(draw, _some(draw, a, _INF[name]), _INF[name] | 0x8000)
                b, c = _some(draw, b, 0), _mixed(draw)
            cases.append(Case(f"{name} {what}", "f16", a, b, c, formats=(name, name)))
    return question(tuple(cases))


_INF = {"f16": 0x7C00, "bf16": 0x7F80}


def _far_zeros(a: Codes, b: Codes) -> tuple[Codes, Codes]:
    """Every second product is a large number times zero; the rest is small."""
    a[:, ::2], b[:, ::2] = a[:, ::2] & 0x83FF | 0x7000, 0
    a[:, 1::2] &= 0x8FFF
    return a, b


def _mixed(draw: Draw) -> F32:
    """Ordinary C with one special in eight."""
    at = draw.rng.integers(0, 8, (M, N)) == 0
    return np.where(at, _specials(draw), draw.c(-8, 8)).astype(np.float32)


def f8() -> Question:
    """kind::f8f6f4 and kind::mxf8f6f4 with E4M3 and E5M2."""
    draw = Draw(4)

    def case(name: str, kind: str, **changed: Any) -> Case:
        given: dict[str, Any] = {
            "a": draw.finite("e4m3", 32),
            "b": draw.finite("e5m2", 32, N),
            "c": draw.c(-10, 20),
            "formats": ("e4m3", "e5m2"),
        }
        if kind == "mxf8f6f4":
            given["sfa"], given["sfb"] = (
                draw.scales(110, 140, 1),
                draw.scales(110, 140, 1, N),
            )
        return Case(name, kind, **given | changed)

    return question(
        (
            case("f8f6f4 sum", "f8f6f4"),
            case(
                "f8f6f4 specials",
                "f8f6f4",
                a=draw.codes("e4m3", 32),
                b=_some(draw, draw.finite("e5m2", 32, N), 0x7C),
            ),
            case("mxf8f6f4 sum", "mxf8f6f4"),
            case("mxf8f6f4 scale id", "mxf8f6f4", scale_ids=(3, 1)),
            case(
                "mxf8f6f4 NaN scale",
                "mxf8f6f4",
                a=draw.rng.choice(np.array([0, ONE], np.uint8), (M, 32)),
                sfa=_some(draw, draw.scales(110, 140, 1), 0xFF),
            ),
        )
    )


def narrow() -> Question:
    """E2M3, E3M2 and E2M1, sixteen elements in every 16 bytes."""
    draw = Draw(5)
    pairs = (("e2m1", "e3m2"), ("e2m3", "e2m1"), ("e3m2", "e2m3"))
    cases = []
    for kind in ("f8f6f4", "mxf8f6f4"):
        for of_a, of_b in pairs:
            a, b = draw.codes(of_a, 32), draw.codes(of_b, 32, N)
            scales: tuple[Codes, Codes] = (NONE, NONE)
            if kind == "mxf8f6f4":
                scales = draw.scales(120, 134, 1), draw.scales(120, 134, 1, N)
            cases.append(
                Case(
                    f"{kind} {of_a} by {of_b}",
                    kind,
                    a,
                    b,
                    draw.c(-8, 8),
                    *scales,
                    (of_a, of_b),
                )
            )
    return question(tuple(cases))
