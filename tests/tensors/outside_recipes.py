"""outside_recipes: the recipes in C++, compiled here with NVIDIA's headers."""

from __future__ import annotations

import ctypes
import gzip
import os
import shutil
import subprocess
import sysconfig
from functools import cache
from importlib import resources
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

SOURCE = Path(__file__).with_name("recipes.cpp")
HEADERS = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "include")
TYPES = {"float32": 0, "float16": 1, "bfloat16": 2}


@cache
def library() -> ctypes.CDLL:
    """Compile once a process; skipped, with the reason, where that cannot be."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None or not (HEADERS / "cuda_fp4.h").exists():
        pytest.skip("needs g++ and CUDA's headers from the extra 'cuda'")
    folder = Path(mkdtemp(prefix="fp4ref_recipes"))
    made = folder / "recipes.so"
    flags = ["-O1", "-ffp-contract=off", "-shared", "-fPIC"]
    include = [f"-I{HEADERS}", f"-I{HEADERS / 'cccl'}"]
    command = [compiler, *flags, *include, "-o", str(made), str(SOURCE)]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(made))
    shutil.rmtree(folder)
    return loaded


@cache
def reciprocal_offsets() -> NDArray[np.int8]:
    packed = resources.files("fp4ref.data") / "rcp_approx_sm90_delta.bin.gz"
    return np.frombuffer(gzip.decompress(packed.read_bytes()), np.int8)


def outside(
    name: str,
    blocks: NDArray[np.float32],
    *,
    encode: float | None,
    decode: float | None,
    ue8m0: bool,
    range: float,
    largest: float,
    dtype: str,
    drop: bool,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Codes and scales of blocks (count, vec)."""
    count, vec = blocks.shape
    codes, scales = np.zeros(blocks.shape, np.uint8), np.zeros(count, np.uint8)

    def pointer(array: NDArray[Any]) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    blocks = np.ascontiguousarray(blocks)
    known = library().quantise(
        name.encode(),
        pointer(blocks),
        ctypes.c_int64(count),
        vec,
        ctypes.c_float(1 if encode is None else encode),
        ctypes.c_float(1 if decode is None else decode),
        int(encode is None),
        int(ue8m0),
        TYPES[dtype],
        ctypes.c_float(range),
        ctypes.c_float(largest),
        int(drop),
        pointer(reciprocal_offsets()),
        pointer(codes),
        pointer(scales),
    )
    assert known, f"recipes.cpp has no form of {name!r}"
    return codes, scales
