"""triage: a usual mistake has its name, two have both, anything else has none."""

from __future__ import annotations

import numpy as np
import pytest
import wrong_dumps as made

import fp4ref
from fp4ref import BlockScaled, GemmConfig, oracle
from fp4ref.evidence.faults import GALLERY
from fp4ref.evidence.faults.change import changed_emulator
from fp4ref.evidence.faults.operands import operands
from fp4ref.evidence.triage import MISTAKES, Triage, UnlikeD, triage


def found(dump: made.Dump) -> Triage:
    beside = {"a": made.A, "b": made.B} | dump.beside
    return triage(beside.pop("a"), beside.pop("b"), dump.d, **beside)


@pytest.mark.rotating(4)
@pytest.mark.parametrize("case", made.ONE)
def test_a_usual_mistake_has_its_name(case: str) -> None:
    make, name = made.ONE[case]
    got = found(make())
    assert got.verdict == "explained", got.report()
    (only,) = got.explanations
    assert only.share > 0.99
    assert name in [*only.names, *(n for names in only.alike for n in names)]
    assert len(only.mistakes) == 1
    assert got.unexplained <= 0.01 * only.differing


@pytest.mark.rotating(1)
@pytest.mark.parametrize("case", made.TWO)
def test_two_at_once_have_both_names(case: str) -> None:
    make, names = made.TWO[case]
    got = found(make())
    assert got.verdict == "explained", got.report()
    (only,) = got.explanations
    assert only.share > 0.99
    assert set(only.names) == names


def test_every_mistake_of_the_list_is_made_by_somebody() -> None:
    named = {name for _, name in made.ONE.values()}
    named |= {"boxes of D exchanged", "split-K order", "nibbles of D swapped"}
    assert {each.name for each in MISTAKES} == named


def test_a_right_d_is_right_and_blind_inputs_are_told() -> None:
    got = found(made.Dump(made.product()))
    assert got.ok
    assert got.verdict == "right"
    got.require_right()
    ones = BlockScaled(np.full((128, 512), 2, np.uint8), np.full((128, 32), 0x38, "u1"))
    got = triage(ones, ones, oracle.expected(ones, ones).d)
    assert got.ok
    assert {"nibbles swapped", "scales swizzled twice", "SF row map"} <= set(got.unseen)


def test_what_cannot_be_told_apart_is_said() -> None:
    """One scale in each row of A: which byte is taken tells nothing of the block."""
    a = made.with_(made.A, scales=np.tile(made.A.scales[:, :4], (1, 16)))
    scales = a.scales[:, [block ^ 2 for block in range(64)]]
    dump = made.product(a=made.with_(a, scales=scales))
    got = triage(a, made.B, dump)
    (only,) = got.explanations
    assert only.names == ("SF byte or id",)
    two = np.tile(np.array([0x30, 0x40], np.uint8), (256, 32))
    a = made.with_(made.A, scales=two)
    swapped = made.with_(a, scales=two[:, ::-1])
    got = triage(a, made.B, made.product(a=swapped))
    (only,) = got.explanations
    assert only.alike or only.names == ("SF byte or id",)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("value", [0, np.nan, np.inf, 1])
def test_a_constant_d_has_no_name(value: float) -> None:
    got = found(made.Dump(np.full((made.M, made.N), value, np.float32)))
    assert got.verdict == "none of these", got.report()
    assert "none of these" in got.report()


def test_nibbles_of_one_operand_are_said_of_either() -> None:
    """Each product finds the other partner, whichever side was swapped."""
    assert "nibbles swapped (A or B)" in found(made.nibbles()).report()


def test_a_mistake_in_one_tile_is_named_there() -> None:
    good, wrong = made.product(), made.nibbles().d
    good[128:, 256:] = wrong[128:, 256:]
    got = found(made.Dump(good))
    (only,) = got.explanations
    assert only.names == ("nibbles swapped",)
    assert got.pattern is not None
    assert got.pattern.tiles == "1 of 6: (1,2)"
    assert got.pattern.rows == "128 of 256: 128 to 255"
    assert got.pattern.first.row == 128
    assert got.pattern.first.column == 256
    with pytest.raises(UnlikeD, match="nibbles swapped"):
        got.require_right()


def test_the_report_has_80_columns() -> None:
    for make, _ in (made.ONE["nibbles"], made.TWO["k-tile, bias"]):
        lines = found(make()).report().splitlines()
        assert max(map(len, lines)) <= 80


def test_the_fields_for_a_program_stay() -> None:
    got = found(made.nibbles()).to_dict()
    assert list(got) == [
        *("schema", "ok", "verdict", "shape", "format", "compared", "differing"),
        *("whole", "pattern", "explanations", "unexplained", "unseen"),
    ]
    assert got["schema"] == 1
    (only,) = got["explanations"]
    assert set(only) == {
        *("mistakes", "alike", "explained", "differing", "sampled", "tiles"),
        *("names", "share"),
    }
    assert set(only["mistakes"][0]) == {"name", "where", "what", "cause", "look"}
    assert set(got["pattern"]) == {"first", "rows", "columns", "tiles"}
    assert set(got["pattern"]["first"]) == {
        *("part", "row", "column", "tile", "expected", "found"),
    }


def corrupted(seed: int) -> np.ndarray:
    """A right D with something in it that is no usual mistake."""
    rng = np.random.default_rng(seed)
    good = made.product()
    m, n = good.shape
    match seed % 7:
        case 0:
            flat, count = good.ravel().view(np.uint32), int(rng.integers(1, 4000))
            at = rng.choice(flat.size, count, replace=False)
            flat[at] ^= np.uint32(1) << rng.integers(0, 31, count).astype(np.uint32)
        case 1:
            rows = rng.permutation(m) if rng.random() < 0.5 else np.roll(range(m), 3)
            good = good[rows]
        case 2:
            size = 10.0 ** rng.uniform(-7, 0)
            good *= 1 + np.float32(size) * rng.standard_normal(good.shape, np.float32)
        case 3:
            first, column = rng.integers(0, 2) * 128, rng.integers(0, 3) * 128
            good[first : first + 128, column : column + 128] = 0
        case 4:
            good = np.roll(good, int(rng.integers(1, n)), axis=1)
        case 5:
            rows = rng.choice(m, int(rng.integers(1, m)), replace=False)
            good[rows] = rng.standard_normal((len(rows), n), np.float32)
        case 6:
            good = good[:, rng.permutation(n)] if rng.random() < 0.5 else -good
    return good


@pytest.mark.rotating(2)
@pytest.mark.parametrize("seed", [*range(7), 35])
def test_a_random_corruption_has_no_name(seed: int) -> None:
    got = found(made.Dump(corrupted(seed)))
    assert got.verdict == "none of these", (seed, got.report())


@pytest.mark.soak
def test_200_random_corruptions_have_no_name() -> None:
    for seed in range(200):
        test_a_random_corruption_has_no_name(seed)


@pytest.mark.rotating(1)
@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("scale-columns", "SF byte or id"),
        ("scale-row", "SF row map"),
        ("box-of-d", "boxes of D exchanged"),
        ("every-k-tile-clears", "wrong k-tile"),
    ],
)
def test_a_mistake_in_the_emulator_has_its_name(fault: str, name: str) -> None:
    """The gallery's changed line, not a dump made for this test."""
    each = GALLERY[fault]
    config = GemmConfig.nvfp4(**each.config)
    a, b = operands(each.shape, config.operands)
    with changed_emulator(each.form("emulator").change):
        d = fp4ref.run(a, b, config=config, sms=each.sms).d
    got = triage(a, b, d, config=config)
    named = [n for one in got.explanations for n in (*one.names, *sum(one.alike, ()))]
    assert name in named, got.report()
