"""driver: find the GPU, and say in one sentence why there is none."""

from __future__ import annotations

import ctypes
import importlib
import platform
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fp4ref.errors import Fp4refError

_VERSION_FILE = Path("/proc/driver/nvidia/version")

OLDEST_DRIVER = 13_000
"""CUDA version, thousandfold, that a driver must have to load what NVRTC 13 makes."""

_IN_WORDS = {
    "CUDA_ERROR_DEVICE_UNAVAILABLE": "the GPU is busy: another process holds it in "
    "exclusive mode. Wait until that ends, or use backend='ptx', which needs no GPU",
    "CUDA_ERROR_OUT_OF_MEMORY": "the GPU has too little free memory. End what else "
    "runs there, or use backend='ptx', which needs no GPU",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "the NVIDIA driver and its library are of "
    "different versions. Restart after the update, or use backend='ptx'",
}
"""What a user can do about a status that is no mistake of the kernel."""


class DeviceError(Fp4refError):
    """There is no GPU to run on, or the driver refused a call."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """What was found.

    Attributes
    ----------
    card
        Name of the card; '' if there is none.
    driver
        Version of the kernel driver; '' if it is not known.
    sms
        Its multiprocessors.
    missing
        One sentence: why nothing can run; '' if a card is there.
    """

    card: str = ""
    capability: tuple[int, int] = (0, 0)
    driver: str = ""
    missing: str = ""
    sms: int = 0

    def __bool__(self) -> bool:
        return not self.missing

    def __str__(self) -> str:
        if self.missing:
            return self.missing
        major, minor = self.capability
        return f"{self.card}, compute capability {major}.{minor}, driver {self.driver}"


@cache
def find_gpu() -> Gpu:
    """Look for the first GPU, once; raises nothing."""
    system = f"{platform.system()} on {platform.machine()}"
    if platform.system() not in ("Linux", "Windows"):
        return Gpu(missing=f"CUDA has no driver for {system}")
    try:
        importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        return Gpu(missing=f"cuda-python is not installed ({error})")
    try:
        driver = bindings()
        _check_driver(int(call(driver.cuDriverGetVersion)))
        device = call(driver.cuDeviceGet, 0)
        name = call(driver.cuDeviceGetName, 128, device)
        attribute = driver.CUdevice_attribute
        capability = tuple(
            call(
                driver.cuDeviceGetAttribute,
                getattr(attribute, f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{part}"),
                device,
            )
            for part in ("MAJOR", "MINOR")
        )
    except DeviceError as error:
        return Gpu(missing=str(error))
    card = name.split(b"\0")[0].decode()
    sms = call(
        driver.cuDeviceGetAttribute,
        attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
        device,
    )
    return Gpu(card, (capability[0], capability[1]), _driver_version(), sms=sms)


def _check_driver(version: int) -> None:
    """Raise `DeviceError` for a driver that is too old."""
    if version < OLDEST_DRIVER:
        raise DeviceError(
            f"the NVIDIA driver is for CUDA {_dotted(version)}; this needs one for "
            f"CUDA {_dotted(OLDEST_DRIVER)} or later. Update it"
        )


def _dotted(version: int) -> str:
    """Write a version as ``13.0``."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _driver_version() -> str:
    """Version of the kernel driver, as nvidia-smi prints it."""
    try:
        text = _VERSION_FILE.read_text()
    except OSError:
        text = ""
    if found := re.search(r"\b\d{3}\.\d+(?:\.\d+)?\b", text):
        return found.group()
    return f"for CUDA {_dotted(int(call(bindings().cuDriverGetVersion)))}"


@cache
def bindings() -> Any:
    """Return ``cuda.bindings.driver``, initialised.

    Raises
    ------
    DeviceError
        No cuda-python, no driver library, or no GPU.
    """
    try:
        driver: Any = importlib.import_module("cuda.bindings.driver")
        result = driver.cuInit(0)
    except ImportError as error:
        raise DeviceError(f"cuda-python is not installed ({error})") from None
    except RuntimeError as error:
        # The bindings load libcuda at the first call; what they raise is theirs.
        first = str(error).splitlines()[0].split(".")[0] if str(error) else "no reason"
        raise DeviceError(f"no NVIDIA driver is installed ({first})") from None
    if int(result[0]) != 0:
        raise DeviceError(f"the NVIDIA driver finds no GPU ({result[0].name})")
    return driver


def call(function: Any, *arguments: Any) -> Any:
    """Call a driver function and return its value.

    Raises
    ------
    DeviceError
        It did not return ``CUDA_SUCCESS``.
    """
    status, *values = function(*arguments)
    if int(status) != 0:
        words = _IN_WORDS.get(status.name, "")
        raise DeviceError(f"{function.__name__}: {status.name}{words and ': '}{words}")
    return values[0] if values else None


@cache
def libcuda() -> ctypes.CDLL:
    """Return the driver library itself, for calls with arguments it shall refuse."""
    bindings()
    name = "nvcuda.dll" if platform.system() == "Windows" else "libcuda.so.1"
    return ctypes.CDLL(name)
