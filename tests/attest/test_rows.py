"""A rule that is made wrong is seen by a rung that shows it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fp4ref.device.compile import nvrtc_version
from fp4ref.evidence.attested import facts

SCRIPT = Path(__file__).with_name("broken_rows.py")
BLIND = {
    "commit-order": "broken, a later commit may arrive first; here it never does",
    "mma-to-mma": "broken, the machine allows more; only a card can do otherwise",
    "ue4m3-values": "broken, dequantisation has the sign; the MMA decodes by itself",
    "scale-atom": "broken, the inputs lie otherwise, so that another question is asked",
    "quantize-scale": "broken, the order of two factors is another; one of them is 1",
}
"""Rows whose mutation no rung can see, and why they are shown all the same."""

ROWS = sorted(
    {row for each in facts().values() for rows in each.parts.values() for row in rows}
    - set(BLIND)
)
SOME = 4


@pytest.mark.skipif(nvrtc_version() is None, reason="needs NVRTC")
@pytest.mark.rotating(1)
@pytest.mark.parametrize("first", range(0, len(ROWS), SOME))
def test_a_broken_rule_is_seen(first: int) -> None:
    rows = ROWS[first : first + SOME]
    command = [sys.executable, str(SCRIPT), *rows]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert [row for row, where in found.items() if not where] == []
