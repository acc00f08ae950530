"""record: what a Hopper card's barriers, copies and the kernel without MMAs take.

``python -m probes.timing.record OUT`` on a card writes ``OUT/timing_h200.json``. Once
more it measures the kernel without MMAs again and adds that: calls differ by more than
the launches of one call.
"""

from __future__ import annotations

import argparse
import datetime
import json
from pathlib import Path

from fp4ref.device import find_gpu
from fp4ref.device.compile import nvrtc_version
from fp4ref.device.driver import bindings, call
from probes.kernel.soft_sources import soft_sources
from probes.timing import latency, skeleton

RECORD = Path(__file__).parents[2] / "tests" / "data" / "timing_h200.json"


def clock_mhz() -> float:
    """Return the SM clock that the card names as its highest."""
    driver = bindings()
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CLOCK_RATE
    return (
        call(driver.cuDeviceGetAttribute, attribute, call(driver.cuDeviceGet, 0)) / 1e3
    )


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="probes.timing.record")
    parser.add_argument("out", type=Path)
    file: Path = parser.parse_args().out / RECORD.name
    if file.exists():
        found = json.loads(file.read_text())
        found["skeleton"].append(skeleton.measure())
        file.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    gpu = find_gpu()
    found = {
        "card": gpu.card,
        "driver": gpu.driver,
        "date": datetime.date.today().isoformat(),
        "compiler": f"NVRTC {nvrtc_version()}",
        "sources": soft_sources(),
        "sms": gpu.sms,
        "clock_mhz": clock_mhz(),
        "samples": latency.SAMPLES,
        "cycles": latency.measure(),
        "repeats": skeleton.REPEATS,
        "skeleton": [skeleton.measure()],
    }
    file.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
