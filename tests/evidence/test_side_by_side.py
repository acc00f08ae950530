"""side_by_side: each hardware event with both statements and both sets of bytes."""

from __future__ import annotations

import pytest
from wide_operands import wide_pair

import fp4ref
from fp4ref.errors import InputError
from fp4ref.evidence.side_by_side import Pair, of_frame, side_by_side


@pytest.fixture(scope="module")
def runs() -> tuple[fp4ref.Run, fp4ref.Run]:
    a, b = wide_pair(1, 130, 100, 288)
    return fp4ref.run(a, b), fp4ref.run(a, b, backend="ptx")


@pytest.fixture(scope="module")
def pairs(runs: tuple[fp4ref.Run, fp4ref.Run]) -> list[Pair]:
    return side_by_side(*runs)


def test_every_event_is_there_and_equal(
    runs: tuple[fp4ref.Run, fp4ref.Run], pairs: list[Pair]
) -> None:
    assert len(pairs) == fp4ref.compare(*runs).compared
    assert all(pair.ok for pair in pairs)


def test_both_statements_are_shown(pairs: list[Pair]) -> None:
    mma = next(pair for pair in pairs if pair.key.tensor == "accumulator")
    assert mma.python is not None
    assert mma.cuda is not None
    assert mma.python.place.startswith("fp4ref/gemm/multiply/one_sm.py:")
    assert "tcgen05.mma(" in mma.python.text
    assert mma.cuda.place.startswith("one_sm.cuh:")
    assert "tcgen05_mma<CTA_GROUP, SCALE_VEC>(" in mma.cuda.text
    text = str(mma)
    assert text.startswith("frame 6.6.10: accumulator at m 0, n 0, k 0, K-block 0")
    assert "65,536 bytes, equal" in text


def test_loads_of_a_frame(pairs: list[Pair]) -> None:
    found = of_frame(pairs, "5.4.4")
    assert {pair.key.tensor for pair in found} == {"A"}
    assert len(found) == 4  # two tiles of two k-tiles
    for pair in found:
        assert "tma_load(elected, params.a," in str(pair.cuda)
        assert "tma.load(warp, params.a," in str(pair.python)


def test_another_result_shows(runs: tuple[fp4ref.Run, fp4ref.Run]) -> None:
    a, b = wide_pair(1, 130, 100, 288)
    codes = a.codes.copy()
    codes[5, 3] ^= 8
    changed = fp4ref.BlockScaled(codes, a.scales)
    other = fp4ref.run(changed, b, backend="ptx")
    bad = [pair for pair in side_by_side(runs[0], other) if not pair.ok]
    assert {"A", "accumulator"} <= {pair.key.tensor for pair in bad}
    first = next(pair for pair in bad if pair.key.tensor == "A")
    assert first.different == 1
    assert "1 of 16,384 bytes differ" in str(first)


def test_a_missing_event_shows(runs: tuple[fp4ref.Run, fp4ref.Run]) -> None:
    a, b = wide_pair(1, 130, 100, 288)
    one = fp4ref.run(a, b, tiles=[(0, 0)])
    pairs = side_by_side(one, runs[1])
    late = [pair for pair in pairs if pair.python is None]
    assert late
    assert all(not pair.ok for pair in late)
    assert pairs.index(late[0]) == len(pairs) - len(late)
    assert "in one run only" in str(late[0])


def test_runs_that_cannot_be_shown(runs: tuple[fp4ref.Run, fp4ref.Run]) -> None:
    with pytest.raises(InputError, match="pass a run of 'emulator', then one of 'ptx'"):
        side_by_side(runs[1], runs[0])
    a, b = wide_pair(1, 8, 8, 32)
    untraced = fp4ref.run(a, b, trace=False)
    with pytest.raises(InputError, match="use trace=True"):
        side_by_side(untraced, fp4ref.run(a, b, backend="ptx", trace=False))
