"""73 and 74: tensors filled and products checked by kernels of the same program."""

from __future__ import annotations

import pytest

from fp4ref.cutlass import toolchain
from fp4ref.cutlass.execute import CutlassRun, execute_example
from fp4ref.cutlass.toolchain import Toolchain
from fp4ref.errors import InputError, ReadWhileInFlight
from fp4ref.hardware.advisory import Advisory
from fp4ref.layout import Swizzle, SwizzleMode

# Two tiles of 256 x 128 and two k-tiles, of which the last ones are partly outside.
SHAPE_73 = 144, 136, 72
SHAPE_74 = 144, 120, 144


@pytest.fixture
def headers(tools: Toolchain) -> None:
    if missing := toolchain.missing_packages(list(toolchain.HEADERS)):
        pytest.skip(f"the [cutlass] extra is not installed: {', '.join(missing)}")


def launches(found: CutlassRun) -> list[str]:
    known = ("BlockForEach", "GemmUniversal", "device6kernel4Gemm", "BlockCompareEqual")
    return [
        next(word for word in known if word in launch.name)
        for launch in found.result.launches
    ]


ORDER = [
    *["BlockForEach"] * 3,
    "GemmUniversal",
    "device6kernel4Gemm",
    "BlockCompareEqual",
]


@pytest.mark.soak
def test_73_passes_its_own_check(headers: None):
    found = execute_example("73", *SHAPE_73, trace=False)
    assert found.result.passed, found.result.problems
    assert launches(found) == ORDER
    gemm = found.result.launches[3]
    assert (gemm.cluster, gemm.preferred) == ((2, 1, 1), (2, 2, 1))
    # Nothing was copied to the device but the flag of the comparison.
    assert [copy.nbytes for copy in found.result.copies] == [4, 4]


@pytest.mark.soak
@pytest.mark.parametrize("schedule", ["late", 1])
def test_73_passes_under_other_schedules(headers: None, schedule: str | int):
    found = execute_example("73", *SHAPE_73, schedule=schedule, trace=False)
    assert found.result.passed, found.result.problems


@pytest.mark.soak
def test_another_atom_of_the_swizzle_makes_73_fail(headers: None, monkeypatch):
    """The kernel lays C and D out itself: TMA must undo the same pattern."""
    right = SwizzleMode.swizzle

    def wrong(mode: SwizzleMode) -> Swizzle:
        assert right.fget is not None
        pairs = mode is SwizzleMode.B128_ATOM_32B
        return Swizzle(3, 4, 3) if pairs else right.fget(mode)

    monkeypatch.setattr(SwizzleMode, "swizzle", property(wrong))
    found = execute_example("73", *SHAPE_73, trace=False)
    assert not found.result.passed


@pytest.mark.soak
def test_74_passes_its_own_check(headers: None):
    """Two clusters share the tile; one adds what the other left in its workspace."""
    found = execute_example("74", *SHAPE_74, trace=False)
    assert found.result.passed, found.result.problems
    assert launches(found) == ORDER
    assert found.result.launches[3].grid == (2, 1, 2)


@pytest.mark.soak
def test_74_relies_on_a_store_and_a_load_of_one_warp_in_order(
    headers: None, monkeypatch: pytest.MonkeyPatch
):
    """The kernel stores the sum to TMEM and loads it again without a wait."""
    found = execute_example("74", *SHAPE_74, schedule="late", trace=False)
    assert found.result.passed, found.result.problems
    assert Advisory.LOAD_AFTER_STORE.value in found.advisories
    monkeypatch.setattr("fp4ref.hardware.tmem._stores_of", lambda *given: ())
    found = execute_example("74", *SHAPE_74, schedule="late", trace=False)
    assert isinstance(found.result.fault, ReadWhileInFlight)
    assert "tcgen05.st in flight" in str(found.result.fault)


def test_missing_headers_are_named_with_the_command(monkeypatch):
    monkeypatch.setitem(toolchain.HEADERS, "no-such-package", "include/none.h")
    with pytest.raises(InputError, match=r"needs no-such-package; run: pip install"):
        toolchain.require_headers(["no-such-package"])
