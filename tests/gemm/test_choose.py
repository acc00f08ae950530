"""choose: a configuration that the rules allow, with the figures that speak for it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fp4ref import GemmConfig
from fp4ref.errors import ConfigError, InputError
from fp4ref.gemm.choose import choose, estimate
from fp4ref.gemm.plan.rules import broken

sizes = st.integers(1, 20_000)


@settings(max_examples=25, deadline=None)
@given(sizes, sizes, sizes)
def test_a_choice_breaks_no_rule_and_is_no_worse_than_the_default(m, n, k):
    found = choose(m, n, k)
    assert not broken(found.config)
    plain = estimate(GemmConfig(), m, n, k)
    assert found.estimate.clocks <= 1.02 * plain.clocks
    assert GemmConfig.nvfp4(**found.asked) == found.config


def test_the_estimate_of_the_default_is_the_one_on_paper():
    """1,024 tiles on 148 SMs are 7 waves of 16 k-tiles.

    A k-tile takes 36,864 bytes of 148 SMs at 17e12 bytes a second, which is more than
    its four MMAs of 64 clocks.
    """
    found = estimate(GemmConfig(), 4096, 4096, 4096)
    loads = 36_864 * 148 / (17e12 / 1.845e9)
    assert (found.waves, found.bound) == (7, "L2")
    assert found.clocks == pytest.approx(7 * 16 * loads + 1500)


def test_a_pair_with_wide_tiles_is_bound_by_its_mmas():
    """Four MMAs of 128 clocks a k-tile: 16 x 16 tiles of 256 columns for 66 pairs."""
    config = GemmConfig.nvfp4(
        cta_group=2,
        tile_m=256,
        tile_n=256,
        accumulator_stages=1,
        cluster_m=2,
        cluster_n=2,
    )
    found = estimate(config, 4096, 4096, 4096)
    assert (found.waves, found.bound) == (4, "MMA")
    assert found.clocks == 4 * 16 * 512 + 1500


@pytest.mark.parametrize(
    ("shape", "asked"),
    [
        ((8192, 8192, 8192), {"cta_group": 2, "tile_n": 256}),
        ((256, 256, 16384), {"splits": 4}),
    ],
)
def test_known_cases(shape, asked):
    found = choose(*shape)
    assert asked.items() <= found.asked.items()
    for name in asked:
        assert any(line.startswith(name.replace("_group", "_group ")[:9]) for line in
                   found.why)  # fmt: skip


def test_it_says_that_nothing_was_measured():
    assert "nothing here was measured" in str(choose(100, 100, 100))


@pytest.mark.parametrize("size", [0, -1, 1 << 40, 2.5, "many"])
def test_a_size_is_a_positive_integer(size):
    for place in range(3):
        given_ = [128, 128, 128]
        given_[place] = size
        with pytest.raises(InputError):
            choose(*given_)


def test_an_unknown_format_is_refused():
    with pytest.raises(ConfigError, match="operand_format"):
        choose(128, 128, 128, operand_format="fp3")
