"""launch: the parameter block, and plain words where there is no GPU."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from fp4ref.device import DeviceError, Gpu, MapOf, Pointer, find_gpu
from fp4ref.device.launch import Module, parameter_block

LOADED = """
import sys
import fp4ref, fp4ref.device, fp4ref.device.launch
print([m for m in sys.modules if m == "cuda" or m.startswith("cuda.")])
"""


def test_importing_fp4ref_imports_no_cuda():
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_parameters_lie_at_their_own_alignment():
    m = MapOf("t", 0, (64, 4), (64,), (64, 4))
    block = parameter_block(
        (np.uint32(7), Pointer("t", 16), m, np.int32(-1), np.uint64(9)),
        {"t": 0x1000}.__getitem__,
        lambda _, address: address.to_bytes(8, "little") * 16,
    )
    assert block.offsets == (0, 8, 128, 256, 264)
    assert block.data[8:16] == (0x1010).to_bytes(8, "little")
    assert block.data[128:136] == (0x1000).to_bytes(8, "little")
    assert len(block.data) == 272


def test_what_is_missing_is_one_sentence():
    gpu = find_gpu()
    if gpu:
        pytest.skip(f"there is a GPU: {gpu}")
    assert str(gpu) == gpu.missing
    assert gpu.missing
    assert "\n" not in gpu.missing
    with pytest.raises(DeviceError) as caught:
        Module(b"")
    assert str(caught.value) == gpu.missing


def test_a_card_says_what_it_is():
    gpu = Gpu("NVIDIA H200", (9, 0), "580.159.04")
    assert gpu
    assert str(gpu) == "NVIDIA H200, compute capability 9.0, driver 580.159.04"
