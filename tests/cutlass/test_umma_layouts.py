"""umma_layouts: operands of an MMA lie where CuTe puts them, for its descriptors."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from fp4ref.cutlass.toolchain import Toolchain, build
from fp4ref.hardware.instr_descriptor import UnscaledInstrDescriptor
from fp4ref.hardware.mma_elements import unpack_codes
from fp4ref.hardware.mxf8f6f4_descriptor import Mxf8f6f4InstrDescriptor
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.numerics import ElementFormat

HERE = Path(__file__).parent
ROWS = 128

Lines = dict[str, list[tuple[list[str], list[int]]]]


def printed(tools: Toolchain, program: str) -> str:
    built = build(tools, HERE / f"{program}.cu", progress=print)
    done = subprocess.run([built.program], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def lines(tools: Toolchain) -> Lines:
    """What the program prints, by the first word of a line."""
    found: Lines = {}
    for line in printed(tools, "umma_layouts").splitlines():
        head, equals, values = line.partition(" = ")
        if equals:
            name, *words = head.split()
            found.setdefault(name, []).append((words, list(map(int, values.split()))))
    return found


def test_every_canonical_layout_is_cutes(lines):
    seen = set()
    for (swizzle, size, major, start, word), addresses in lines["tile"]:
        # The program's tiles start at address 0, where its descriptor has no start.
        desc = SmemDescriptor.decode(int(word) | int(start) >> 4)
        nbytes, mn_major = int(size), major == "1"
        k = 32 // nbytes
        want = np.array(addresses).reshape(ROWS, k)
        if mn_major:
            got = desc.mn_major_offsets(k, ROWS * nbytes)[:, ::nbytes].T
        else:
            got = desc.offsets(ROWS, 32)[:, ::nbytes]
        np.testing.assert_array_equal(got, want, err_msg=f"{swizzle} {size} {major}")
        seen.add((swizzle, size, major, desc.leading_nbytes, desc.stride_nbytes))
    assert len(seen) == 25  # 128 bytes are one span of the 128-byte swizzle
    assert len(lines["tile"]) == 52


def test_every_instruction_descriptor_is_cutes(lines):
    for names, (plain, scaled) in lines["words"]:
        a, b = (ElementFormat(name) for name in names)
        flags = {"negate_b": True, "a_mn_major": True}
        assert UnscaledInstrDescriptor("f8f6f4", 128, 48, a, b, **flags).encode() == (
            plain
        )
        assert Mxf8f6f4InstrDescriptor(128, 48, a, b, **flags).encode() == scaled
    assert len(lines["words"]) == 25


def test_packed_elements_lie_in_a_chunk_as_cutlass_packs_them(lines):
    for (name, number), data in lines["packed"]:
        element = ElementFormat(name)
        codes = unpack_codes(np.array([data], np.uint8), element)[0]
        want = np.zeros(16, np.uint8)
        want[int(number)] = (1 << element.bits) - 1
        np.testing.assert_array_equal(codes, want)
    assert len(lines["packed"]) == 48


def test_a_stage_of_padded_elements_expects_packed_bytes(tools):
    types = {
        "e4m3": DataType.UINT8,
        "e3m2": DataType.U6_ALIGN16B,
        "e2m1": DataType.U4_ALIGN16B,
    }
    b = TensorMap(DataType.UINT8, 0, (128, 128), (128,), (128, 128))
    said = dict(
        line.split()[:2] for line in printed(tools, "padded_stage").splitlines()
    )
    assert list(said) == list(types)
    for name, nbytes in said.items():
        a = TensorMap(types[name], 0, (128, 128), (128,), (128, 128))
        assert int(nbytes) == a.box_nbytes + b.box_nbytes
