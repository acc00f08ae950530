"""card_check: whether the first GPU gives a context and memory; prints its clocks."""

from __future__ import annotations

import json
import sys

from fp4ref.device.driver import DeviceError, bindings, call

NBYTES = 256 << 20
"""More than any rung takes; the soft tensor core has 42 MB of TMEM."""


def clocks() -> dict[str, int]:
    """Make a context, take memory, and return the clocks in MHz.

    Raises
    ------
    DeviceError
        The driver refused one of these.
    """
    driver = bindings()
    device = call(driver.cuDeviceGet, 0)
    context = call(driver.cuDevicePrimaryCtxRetain, device)
    call(driver.cuCtxSetCurrent, context)
    call(driver.cuMemFree, call(driver.cuMemAlloc, NBYTES))
    attribute = driver.CUdevice_attribute
    names = {"sm": "CLOCK_RATE", "memory": "MEMORY_CLOCK_RATE"}
    return {
        name: call(
            driver.cuDeviceGetAttribute,
            getattr(attribute, f"CU_DEVICE_ATTRIBUTE_{word}"),
            device,
        )
        // 1000
        for name, word in names.items()
    }


def main() -> int:
    """Run the command line."""
    try:
        print(json.dumps(clocks()))
    except DeviceError as error:
        print(str(error).split(", or use backend=")[0], file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
