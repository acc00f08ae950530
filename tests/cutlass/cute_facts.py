"""cute_facts: what CuTe's structs and traits say, and where the machine says other.

Each function returns the differences, so that a test and the search for outside
witnesses of a rule can ask the same. Nothing of the machine is in the questions.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from fp4ref.cutlass.toolchain import Toolchain, build
from fp4ref.errors import DescriptorFault, HardwareFault
from fp4ref.hardware.instr_descriptor import InstrDescriptor, UnscaledInstrDescriptor
from fp4ref.hardware.mxf8f6f4_descriptor import Mxf8f6f4InstrDescriptor
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tensor_memory import fragment
from fp4ref.numerics import ElementFormat, ScaleFormat

HERE = Path(__file__).parent
Masks = dict[str, int]


@cache
def printed(tools: Toolchain) -> tuple[dict[str, Masks], dict[str, list[int]]]:
    """Return the bits of each field of each struct, and the other lines."""
    built = build(tools, HERE / "cute_fields.cu", progress=print)
    done = subprocess.run([built.program], capture_output=True, text=True, check=True)
    fields: dict[str, Masks] = defaultdict(dict)
    others = {}
    for line in done.stdout.splitlines():
        head, _, values = line.partition(" = ")
        match head.split():
            case ["field", struct, name]:
                fields[struct][name] = int(values)
            case [*words]:
                others[" ".join(words)] = [int(each) for each in values.split()]
    return dict(fields), others


def word(masks: Masks, values: dict[str, int]) -> int:
    """Put values into their fields."""
    return sum(value << (masks[n] & -masks[n]).bit_length() - 1
               for n, value in values.items())  # fmt: skip


def instruction_fields(tools: Toolchain) -> list[str]:
    """Read instruction descriptors whose fields CuTe's structs have filled."""
    masks, _ = printed(tools)
    found = []

    def compare(what: str, got: Any, **want: Any) -> None:
        for name, value in want.items():
            if getattr(got, name) != value:
                found.append(f"{what}: {name} is {getattr(got, name)}, not {value}")

    for m, flag, sf in product((128,), (0, 1), range(3)):
        shape = {"m_dim_": m >> 4, "n_dim_": 48 >> 3, "scale_format_": sf % 2}
        signs = {"a_negate_": flag, "b_negate_": 1 - flag}
        ids = {"a_sf_id_": sf, "b_sf_id_": (sf + 1) % 3}
        types = {"a_format_": 1, "b_format_": 1}
        text = word(masks["Scaled"], shape | signs | ids | types)
        compare(
            "mxf4nvf4",
            InstrDescriptor.decode(text),
            **{"m": m, "n": 48, "a_sf_id": sf, "b_sf_id": (sf + 1) % 3},
            **{"negate_a": bool(flag), "negate_b": not flag},
            scale_format=[ScaleFormat.UE4M3, ScaleFormat.UE8M0][sf % 2],
        )
        types, majors = {"a_format_": 0, "b_format_": 1}, {"a_major_": flag}
        text = word(
            masks["Scaled"], shape | signs | ids | types | majors | {"scale_format_": 1}
        )
        compare(
            "mxf8f6f4",
            Mxf8f6f4InstrDescriptor.decode(text),
            **{"m": m, "n": 48, "a_sf_id": sf, "b_sf_id": (sf + 1) % 3},
            **{"a_format": ElementFormat.E4M3, "b_format": ElementFormat.E5M2},
            **{"a_mn_major": bool(flag), "b_mn_major": False},
        )
    for m, flag in product((64, 128), (0, 1)):
        values = {"m_dim_": m >> 4, "n_dim_": 6, "c_format_": 1, "b_format_": 1}
        values |= {"a_major_": flag, "b_major_": 1 - flag, "a_negate_": flag}
        text = word(masks["Plain"], values)
        compare(
            "f8f6f4",
            UnscaledInstrDescriptor.decode(text, "f8f6f4"),
            **{"m": m, "n": 48, "negate_a": bool(flag), "negate_b": False},
            **{"a_mn_major": bool(flag), "b_mn_major": not flag},
            **{"a_format": ElementFormat.E4M3, "b_format": ElementFormat.E5M2},
        )
    return found


def swizzle_codes(tools: Toolchain) -> list[str]:
    """Read matrix descriptors with CuTe's codes of the swizzles."""
    masks, others = printed(tools)
    found = []
    for span, code in zip((32, 64, 128), others["swizzle 32 64 128"], strict=True):
        values = {"version_": 1, "layout_type_": code, "stride_byte_offset_": 32}
        got = SmemDescriptor.decode(word(masks["Matrix"], values)).swizzle
        if got.span != span:
            found.append(f"code {code}: a swizzle of {got.span} bytes, not {span}")
    return found


def unnamed_bits(tools: Toolchain) -> list[str]:
    """Set, one at a time, the bits that no field of CuTe's structs has."""
    masks, _ = printed(tools)
    shape = {"m_dim_": 8, "n_dim_": 6}
    types = {"a_format_": 1, "b_format_": 1}
    scaled = word(masks["Scaled"], shape | types)
    mixed = word(masks["Scaled"], shape | {"scale_format_": 1})
    plain = word(masks["Plain"], shape | {"c_format_": 1})
    matrix = word(masks["Matrix"], {"version_": 1, "stride_byte_offset_": 64})
    readers = (
        ("mxf4nvf4", "Scaled", 32, scaled, InstrDescriptor.decode),
        ("mxf8f6f4", "Scaled", 32, mixed, Mxf8f6f4InstrDescriptor.decode),
        ("f8f6f4", "Plain", 32, plain,
         lambda w: UnscaledInstrDescriptor.decode(w, "f8f6f4")),
        ("matrix", "Matrix", 64, matrix, SmemDescriptor.decode),
    )  # fmt: skip
    found = []
    for what, struct, size, right, read in readers:
        read(right)
        named = 0
        for mask in masks[struct].values():
            named |= mask
        for bit in range(size):
            if not named >> bit & 1:
                try:
                    read(right | 1 << bit)
                    found.append(f"{what}: bit {bit}, which has no name, is taken")
                except DescriptorFault:
                    pass
    return found


def register_places(tools: Toolchain) -> list[str]:
    """Compare lane and column of each register of ``tcgen05.ld``."""
    _, others = printed(tools)
    found = []
    for head, values in others.items():
        match head.split():
            case ["registers", "32x32b" | "16x64b" | "16x128b" | "16x256b" as shape, _]:
                lane, column = fragment(shape, 1)
                if lane.ravel().tolist() != values[::2]:
                    found.append(f"{shape}: other lanes")
                if column.ravel().tolist() != values[1::2]:
                    found.append(f"{shape}: other columns")
    return found


def pair_scales(tools: Toolchain) -> list[str]:
    """Put scales of B where CuTe has them, and multiply by a pair."""
    sys.path.insert(0, str(HERE.parent / "hardware"))
    from test_data_path import SFB, scaled_pair

    found = []
    for mode, m in (("4by1", 256), ("2by2", 128)):
        places = np.array(printed(tools)[1][f"scales {mode}"]).reshape(-1, 128, 4, 2)

        def put(warp: Any, codes: Any, places: Any = places) -> None:
            for copy in places:
                for (lane, byte), code in zip(
                    copy.reshape(-1, 2), codes.astype(np.uint8).ravel(), strict=True
                ):
                    at = lane * 2048 + 4 * SFB + byte
                    warp.tmem.poke(at, np.array([code], np.uint8))

        got, want = scaled_pair(128, put, m)
        for rank in (0, 1):
            halves = np.hsplit(want[rank], 256 // m)
            if not np.array_equal(got[rank], np.concatenate(halves)):
                found.append(f"{mode}: D of CTA {rank} has other bits")
    return found


# -- shapes ------------------------------------------------------------------------

_F16 = "cutlass::half_t, cutlass::half_t, float"
_F4 = "cutlass::float_e2m1_t, cutlass::float_e2m1_t, float, cutlass::float_ue8m0_t"
_K = "UMMA::Major::K, UMMA::Major::K"
OPERATIONS = {
    "SM100_MMA_F16BF16_SS": (_F16, _K, "unscaled", 1),
    "SM100_MMA_F16BF16_2x1SM_SS": (_F16, _K, "unscaled", 2),
    "SM100_MMA_MXF4_SS": (_F4, f"32, {_K}", "block_scale", 1),
    "SM100_MMA_MXF4_2x1SM_SS": (_F4, f"32, {_K}", "block_scale", 2),
}
"""CuTe's operation: its types, what follows M and N, and the machine's name of it."""

SHAPES = tuple(product((64, 128, 192, 256), (8, 12, 16, 20, 24, 48, 240, 248, 256)))


def _syntax(tools: Toolchain, lines: list[str]) -> str:
    """Return what the host compiler says of a text with CUTLASS's headers."""
    folders = (tools.cutlass / "include", tools.include, tools.include / "cccl")
    command = [tools.host_compiler, "-std=c++17", "-fsyntax-only", "-fmax-errors=0",
               *(f"-I{each}" for each in folders), "-x", "c++", "-"]  # fmt: skip
    said = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True
    ).stderr
    assert "fatal error" not in said, said[:500]
    return said


@cache
def refused_shapes(tools: Toolchain) -> dict[str, set[tuple[int, int]]]:
    """Return the M and N that a ``static_assert`` of CuTe refuses, by operation."""
    lines = ["#include <cute/arch/mma_sm100_umma.hpp>",
             "#include <cutlass/numeric_types.h>", "using namespace cute;"]  # fmt: skip
    for name, (types, rest, _, _) in OPERATIONS.items():
        lines += [f"template struct cute::{name}<{types}, {m}, {n}, {rest}>;"
                  for m, n in SHAPES]  # fmt: skip
    said = _syntax(tools, lines)
    found: dict[str, set[tuple[int, int]]] = {name: set() for name in OPERATIONS}
    now = None
    for line in said.splitlines():
        if at := re.search(r"In instantiation of .struct cute::(\w+)<(.+)>.:", line):
            numbers = re.findall(r"(?<![\w:])(\d+)(?![\w:])", at[2])
            now = at[1], (int(numbers[0]), int(numbers[1]))
        elif "static assertion failed" in line and now is not None:
            found[now[0]].add(now[1])
    return found


def shapes(tools: Toolchain) -> list[str]:
    """Compare which M and N the machine takes."""
    from fp4ref.hardware.instr_descriptor import check_shape

    found = []
    for name, (_, _, kind, group) in OPERATIONS.items():
        for m, n in SHAPES:
            try:
                check_shape("idesc", kind, group, m, n)
                taken = True
            except HardwareFault:
                taken = False
            if taken == ((m, n) in refused_shapes(tools)[name]):
                found.append(f"{name}: {m} x {n} is {'taken' if taken else 'refused'}")
    return found


# -- clusters ----------------------------------------------------------------------

CLUSTERS = range(1, 9)
"""CTAs along M; one along N."""


@cache
def refused_clusters(tools: Toolchain) -> set[int]:
    """Return the clusters that a ``static_assert`` of CUTLASS refuses for pairs.

    It asks along M alone, and a pair lies there: with one CTA along N it is the size.
    """
    lines = ["#include <cutlass/gemm/collective/builders/sm100_common.inl>",
             "using namespace cute;", "template <int CTAs> auto copy_of_pairs() {",
             "  namespace built = cutlass::gemm::collective::detail;",
             "  return built::sm100_cluster_shape_to_tma_atom_A(",
             "      Shape<Int<CTAs>, _1, _1>{}, Layout<_2>{}); }"]  # fmt: skip
    lines += [f"auto of_{n}() {{ return copy_of_pairs<{n}>(); }}" for n in CLUSTERS]
    said = _syntax(tools, lines).splitlines()
    found, now = set(), 0
    for line in said:
        if at := re.search(r"copy_of_pairs\(\) \[with int CTAs = (\d+)\]", line):
            now = int(at[1])
        elif "Cluster shape not divisible by MMA size" in line and "error" in line:
            found.add(now)
    return found


def clusters_of_pairs(tools: Toolchain) -> list[str]:
    """Compare which clusters the machine takes for a kernel of CTA pairs."""
    from fp4ref.hardware.grid import check_pairs

    found = []
    for ctas in CLUSTERS:
        try:
            check_pairs((ctas, 1, 1), "tcgen05.mma.cta_group::2", "the kernel")
            taken = True
        except HardwareFault:
            taken = False
        if taken == (ctas in refused_clusters(tools)):
            found.append(f"{ctas} CTAs are {'taken' if taken else 'refused'}")
    return found


QUESTIONS = (
    instruction_fields,
    swizzle_codes,
    unnamed_bits,
    register_places,
    pair_scales,
    shapes,
    clusters_of_pairs,
)
