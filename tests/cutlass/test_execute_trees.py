"""CUTLASS's fused kernels: our trees of the same meaning have their bits."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fp4ref.cutlass.toolchain import Toolchain

sys.path.insert(0, str(Path(__file__).parents[2] / "conformance"))
import trees


@pytest.mark.soak
@pytest.mark.parametrize("schedule", ["eager", "late", 5])
def test_70_with_scales_and_a_bias_has_the_bits_of_our_tree(
    tools: Toolchain, schedule: str | int
):
    """On its own operands it passes its own check; on wide ones D saturates."""
    trees.cutlass_70((schedule,), (256, 256, 128))


def test_a_changed_example_is_not_changed_in_silence(
    tools: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert "bias.device_data()" in trees.biased_70(tmp_path).read_text()
    monkeypatch.setitem(trees._BIAS, "no such line", "")
    with pytest.raises(AssertionError, match="example 70 has changed: no such line"):
        trees.biased_70(tmp_path)


@pytest.mark.soak
def test_the_ten_kernels_of_71_have_the_bits_of_our_tree(tools: Toolchain):
    """The kernels 6 to 9 are CUTLASS's tree, the others its named operation."""
    trees.cutlass_71(("eager",), (144, 120, 72))
