"""D and SFD depend on operands, formats, formula and splits, and on nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from family import SCHEDULES, FamilyCase, config_of, cover, k_of
from raw_bits import assert_bits_equal

import fp4ref
from fp4ref import GemmConfig
from fp4ref.gemm.plan.rules import broken

PAIRS = 20
FORMATS: list[dict[str, Any]] = [
    {"operand_format": "nvfp4", "d_format": "nvfp4"},
    {"operand_format": "bf16", "d_format": "f32"},
    {"operand_format": "mxfp8_e4m3", "b_format": "mxfp6_e2m3", "d_format": "bf16"},
    {"operand_format": "e5m2", "d_format": "f16"},
    {"operand_format": "mxfp4", "d_format": "f32"},
]
ASKED = (
    *("operand_format", "b_format", "splits", "d_format", "c_format", "beta"),
    *("activation", "bias"),
)
"""What D depends on."""


def asked(turn: int) -> dict[str, Any]:
    """What one pair of operands is multiplied to."""
    formula = {"c_format": None, "beta": 0.0, "activation": None, "bias": True}
    if turn % 2:
        formula |= {"c_format": "bf16", "beta": 0.5, "activation": "relu"}
    formats = {"b_format": None} | FORMATS[turn % len(FORMATS)]
    return formats | formula | {"splits": 1 + turn // 2 % 3}


def others(turn: int, size: int) -> list[dict[str, Any]]:
    """Configurations of the cover that differ in all other fields."""
    found = []
    choices = cover()
    for i in range(len(choices)):
        choice = choices[(i + turn * len(choices) // PAIRS) % len(choices)]
        config = config_of(choice) | asked(turn)
        if config["d_format"] == "nvfp4":
            config["store"] = "plain"  # scales along M are other scales
        if len(found) < size and not broken(GemmConfig.nvfp4(**config)):
            found.append(config)
    return found


def run(config: dict[str, Any], turn: int, schedule: str, sms: int) -> fp4ref.Run:
    """Run the operands of `turn`: wide ranges, NaN and infinities."""
    k = k_of(800, config)
    case = FamilyCase(140, 136, k, sms=sms, schedule=schedule, config=config)
    operands = case.operands(turn)
    parts = dict(zip(("a", "b", "c", "bias"), operands, strict=True))
    found = fp4ref.run(
        **parts,
        config=GemmConfig.nvfp4(**config),
        **case.settings(turn) | {"trace": False},
    )
    assert found.written.all()
    return found


def same_bits(turn: int, size: int) -> None:
    """One pair of operands under `size` configurations, schedules and machines."""
    one = run(asked(turn), turn, "eager", 1)
    found = others(turn, size)
    assert len(found) == size
    for i, config in enumerate(found):
        sms = config["cluster_m"] * config["cluster_n"] * (1 + i % 2)
        more = run(config, turn, SCHEDULES[(turn + i) % 3], sms)
        assert_bits_equal(one.d, more.d)
        assert (one.sfd is None) == (more.sfd is None)
        if one.sfd is not None and more.sfd is not None:
            assert_bits_equal(one.sfd, more.sfd)


@pytest.mark.parametrize("part", range(3))
def test_d_and_sfd_depend_on_nothing_else(part: int, rotating_seed: int) -> None:
    """Three pairs of operands, other ones each day."""
    same_bits((rotating_seed + 7 * part) % PAIRS, 3)


@pytest.mark.soak
@pytest.mark.parametrize("turn", range(PAIRS))
def test_twenty_pairs_have_the_same_bits(turn: int) -> None:
    same_bits(turn, 24)


def test_the_configurations_differ_in_every_other_field() -> None:
    """And what D depends on is the same in all of them."""
    values: dict[str, set[Any]] = {}
    for turn in range(PAIRS):
        for config in others(turn, 24):
            assert {name: config[name] for name in ASKED} == asked(turn)
            for name, value in config.items():
                values.setdefault(name, set()).add(value)
    same = {name for name in values if len(values[name]) == 1}
    assert not same - set(ASKED)


def test_other_splits_have_other_bits() -> None:
    """The comparison sees what D does depend on."""
    one, other = (
        run(asked(4) | {"splits": splits}, 4, "eager", 1) for splits in (1, 3)
    )
    with pytest.raises(AssertionError):
        assert_bits_equal(one.d, other.d)
