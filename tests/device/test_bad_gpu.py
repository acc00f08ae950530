"""Each GPU that cannot run the kernel gets one sentence: what is needed, what runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fp4ref.cuda_kernel.build import require_tcgen05
from fp4ref.device import driver
from fp4ref.device.driver import DeviceError, call, find_gpu
from fp4ref.errors import InputError


class Status(int):
    name = "CUDA_SUCCESS"


def failing(name: str) -> Any:
    status = Status(1)
    status.name = name

    def function() -> tuple[Status]:
        return (status,)

    return function


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("CUDA_ERROR_DEVICE_UNAVAILABLE", "busy: another process holds it"),
        ("CUDA_ERROR_OUT_OF_MEMORY", "too little free memory"),
        ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "of different versions"),
    ],
)
def test_a_busy_or_full_gpu_is_said_in_words(status: str, words: str) -> None:
    with pytest.raises(DeviceError, match=words) as found:
        call(failing(status))
    assert status in str(found.value)
    assert "backend='ptx'" in str(found.value)


def test_another_status_is_its_name() -> None:
    with pytest.raises(DeviceError, match=r"function: CUDA_ERROR_UNKNOWN$"):
        call(failing("CUDA_ERROR_UNKNOWN"))


def test_an_old_driver_is_named_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = SimpleNamespace(cuDriverGetVersion=lambda: (Status(0), 12_040))
    monkeypatch.setattr(driver, "bindings", lambda: old)
    monkeypatch.setattr("importlib.import_module", lambda name: None)
    found = find_gpu.__wrapped__()
    assert not found
    assert found.missing == (
        "the NVIDIA driver is for CUDA 12.4; this needs one for CUDA 13.0 or later. "
        "Update it"
    )


def test_a_card_without_clusters_is_named() -> None:
    with pytest.raises(InputError, match=r"A100 .* 8\.0, .* clusters and TMA; .* 9\.0"):
        require_tcgen05((8, 0), "A100")
    with pytest.raises(InputError) as found:
        require_tcgen05((12, 0), "RTX PRO 6000")
    assert "clusters" not in str(found.value)
