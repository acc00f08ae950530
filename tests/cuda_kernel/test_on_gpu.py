"""on_gpu: the whole kernel on a card, native or soft, has the emulator's bits."""

from __future__ import annotations

from typing import Any

import card_family
import numpy as np
import pytest
from gemm_cases import CONFIG_CASES, EXTRA, Case

import fp4ref
from fp4ref.device import find_gpu
from fp4ref.device.compile import runs_kernel

pytestmark = pytest.mark.gpu
CLUSTERS: list[dict[str, Any]] = [
    {"cluster_m": 2},
    {"cluster_n": 2, "d_format": "nvfp4"},
    {"cluster_m": 2, "cluster_n": 2, "scheduler": "static"},
]


@pytest.fixture(scope="module", autouse=True)
def card() -> None:
    gpu = find_gpu()
    if not gpu:
        pytest.skip(gpu.missing)
    if not runs_kernel(gpu.capability):
        pytest.skip(f"the kernel needs compute capability 9.0 or 10.x; found: {gpu}")


def small(case: Case) -> bool:
    return case.m * case.n * case.k < 3_000_000


CASES = [
    *filter(small, CONFIG_CASES[::4]),
    EXTRA[0],
    *(Case(300, 130, 96, sms=4, config=config) for config in CLUSTERS),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_card_has_the_bits_of_the_emulator(case: Case) -> None:
    want = case.run("emulator", trace=False)
    got = case.run("device", schedule="eager")
    np.testing.assert_array_equal(got.d.view(np.uint8), want.d.view(np.uint8))
    if want.sfd is not None:
        np.testing.assert_array_equal(got.sfd, want.sfd)


@pytest.mark.parametrize("name", card_family.CASES)
def test_a_tree_or_kind_has_the_bits_of_the_oracle_on_the_card(name: str) -> None:
    assert card_family.on_card(name) == card_family.by_oracle(name)


def test_twice_on_the_card_is_the_same() -> None:
    q = fp4ref.quantize(np.linspace(-3, 3, 130 * 64, dtype=np.float32).reshape(130, 64))
    first, second = (fp4ref.run(q, q, backend="device") for _ in range(2))
    np.testing.assert_array_equal(first.d, second.d)
    assert "NVRTC" in first.meta["kernel"]
