"""catalogue: all forms of the executor's registry, each as a kernel of its own.

Every entry of the registry has its shapes here, or a probe of its own, or says why no
probe can ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

import fp4ref.ptx  # noqa: F401  it registers the instructions
from fp4ref.device import Call, Pointer
from fp4ref.device.launch import Parameter, Struct
from fp4ref.ptx.run.registry import ENTRIES, Entry
from probes.forms import (
    blackwell_shapes,
    lane_shapes,
    matrix_shapes,
    mbarrier_shapes,
    memory_shapes,
    shapes,
)
from probes.forms.inputs import BITS, BLOCK, COUNT, make, random
from probes.forms.memory_shapes import PARAM_NBYTES
from probes.forms.shapes import SOURCES, Shape
from probes.forms.spellings import maker_of, spellings

SHAPES = {
    **shapes.SHAPES,
    **lane_shapes.SHAPES,
    **matrix_shapes.SHAPES,
    **memory_shapes.SHAPES,
    **mbarrier_shapes.SHAPES,
    **blackwell_shapes.SHAPES,
}

OWN_PROBE = {
    "control.flow": "cta",
    "barriers.sync": "cta",
    "barriers.arrive": "cta",
    "barriers.warp_sync": "cta",
    "barriers.cluster_arrive": "cluster",
    "barriers.cluster_wait": "cluster",
    "barriers.fence_proxy_async": "tma",
    "barriers.fence_mbarrier_init": "cluster",
    "cp_async.arrive": "forms",
    "moves.map_address": "cluster",
    "tensormaps.cp_fenceproxy": "tensormap",
    "tensormaps.fence_acquire": "tensormap",
    "tensormaps.fence_release": "tensormap",
    "tensormaps.replace": "tensormap",
    "tma.load": "tma",
    "tma.store": "tma",
    "tma.commit_group": "bulk_groups",
    "tma.wait_group": "bulk_groups",
}
"""Makers whose instructions another probe asks about, or the kernels around a form."""

OWN_TEST = {
    "control.call": "ptx/test_calls.py",
    "control.indexed_branch": "ptx/test_branch_by_index.py",
    "bulk_copies.load": "ptx/test_bulk_copies.py",
    "bulk_copies.store": "ptx/test_bulk_copies.py",
    "bulk_copies.copy": "ptx/test_bulk_reductions.py",
    "bulk_reductions.into_global": "ptx/test_bulk_reductions.py",
    "bulk_reductions.into_shared": "ptx/test_bulk_reductions.py",
    "cp_async.commit_group": "ptx/test_copy_groups.py",
    "cp_async.wait_all": "ptx/test_copy_groups.py",
    "cp_async.wait_group": "ptx/test_copy_groups.py",
    "conversion_packed.halves_to_scales": "ptx/test_rounded_and_small.py",
    "conversion_packed.halves_to_small": "ptx/test_rounded_and_small.py",
    "conversion_packed.small_to_halves": "ptx/test_rounded_and_small.py",
    "conversion_packed.to_half": "ptx/test_rounded_and_small.py",
    "conversion_packed.to_halves": "ptx/test_rounded_and_small.py",
    "conversion_packed.to_small": "ptx/test_rounded_and_small.py",
    "conversion_packed.to_tf32": "ptx/test_rounded_and_small.py",
    "conversion_stochastic.to_halves": "ptx/test_stochastic_rounding.py",
    "conversion_stochastic.to_small": "ptx/test_stochastic_rounding.py",
    "conversion_rounded.from_integer": "ptx/test_card_arithmetic.py",
    "conversion_rounded.narrower": "ptx/test_card_arithmetic.py",
    "conversion_rounded.to_integer": "ptx/test_card_arithmetic.py",
    "conversion_rounded.to_integer_in_range": "ptx/test_card_arithmetic.py",
    "conversion_rounded.to_integral": "ptx/test_card_arithmetic.py",
    "conversion_rounded.wider": "ptx/test_card_arithmetic.py",
    "doubles.arithmetic": "ptx/test_card_arithmetic.py",
    "doubles.copy_sign": "ptx/test_card_arithmetic.py",
    "doubles.min_max": "ptx/test_card_arithmetic.py",
    "doubles.sign": "ptx/test_card_arithmetic.py",
    "float_pairs.arithmetic": "ptx/test_float_pairs.py",
    "double_reciprocals.approximate": "device/test_doubles_probe.py",
    "dot_products.dot_of_halves": "ptx/test_integer_fields.py",
    "extended.with_carry": "ptx/test_integer_fields.py",
    "masks.extend": "ptx/test_integer_fields.py",
    "masks.mask": "ptx/test_integer_fields.py",
    "masks.nth_set": "ptx/test_integer_fields.py",
    "comparisons.is_of_class": "ptx/test_comparisons.py",
    "comparisons.set_halves": "ptx/test_comparisons.py",
    "comparisons.set_value": "ptx/test_comparisons.py",
    "floating.min_max_of_magnitudes": "ptx/test_comparisons.py",
    "moves.is_outside_windows": "ptx/test_moves.py",
    "floating.bounded": "ptx/test_rounded_and_small.py",
    "halves.approximate": "ptx/test_card_arithmetic.py",
    "halves.arithmetic": "ptx/test_card_arithmetic.py",
    "halves.min_max": "ptx/test_card_arithmetic.py",
    "halves.set_predicate": "ptx/test_rounded_and_small.py",
    "halves.sign": "ptx/test_card_arithmetic.py",
    "integer.in_halves": "ptx/test_float_pairs.py",
    "lanes.reduce_floats": "ptx/test_float_pairs.py",
    "rounded.arithmetic": "ptx/test_card_arithmetic.py",
    "rounded.mixed": "ptx/test_rounded_and_small.py",
    "quotients.quotient": "ptx/test_approximations.py",
    "quotients.without_ftz": "ptx/test_approximations.py",
    "roots.root": "ptx/test_approximations.py",
}
"""Makers whose instructions a test asks about: against what a card gave,
against the same operation on one element, or by what a wait guarantees.
"""

NO_ANSWER = {
    "control.nanosleep": "waits, and returns nothing",
    "barriers.fence": "orders memory, and returns nothing",
    "control.trap": "stops the kernel, and returns nothing",
    "barriers.griddepcontrol_wait": "orders two launches, and returns nothing",
    "barriers.griddepcontrol_launch": "orders two launches, and returns nothing",
    "barriers.set_registers": "moves registers between warps; no value changes",
    "bulk_copies.prefetch": "a hint",
    "tma.prefetch": "a hint",
    "tma.prefetch_tensormap": "a hint",
}
"""Makers whose instructions return no bits."""

ARGUMENTS = ("st.param", "st.param::func")
"""Stores of a call's arguments: the test of calls asks about them."""

HEADER = ".version 9.0\n.target {arch}\n.address_size 64\n"


@dataclass(frozen=True)
class Form:
    """One shape of one opcode."""

    opcode: str
    shape: Shape
    maker: str

    @property
    def name(self) -> str:
        """The opcode, and what sets the shape apart."""
        return ", ".join(filter(None, (self.opcode, self.shape.suffix)))

    @property
    def buffers(self) -> tuple[str, ...]:
        """Names of the outputs in order: memory first."""
        registers = tuple(f"d{i}" for i in range(len(self.shape.outputs)))
        return ("to", *registers) if self.shape.memory else registers

    def entry(self, name: str = "form") -> str:
        """PTX of the kernel."""
        return "\n".join(
            (_declaration(self.shape, name), "{", *_lines(self.shape), "}")
        )

    def text(self, arch: str = "sm_90a") -> str:
        """PTX of a module with this kernel alone."""
        return f"{HEADER.format(arch=arch)}{table(self.shape)}{self.entry()}\n"

    def call(self) -> Call:
        """The launch over all inputs."""
        shape = self.shape
        buffers = {
            f"in{i}": values.view(np.uint8)
            for i, values in enumerate(make(shape.inputs))
        }
        params: list[Parameter] = [Pointer(name) for name in buffers]
        if shape.memory:
            buffers["to"] = np.full(COUNT * shape.memory, 0xEE, np.uint8)
        for i, bits in enumerate(shape.outputs):
            buffers[f"d{i}"] = np.full(COUNT * bits // 8, 0xEE, np.uint8)
        params += [Pointer(name) for name in self.buffers]
        if _uses(shape, "block"):
            words = random("block", PARAM_NBYTES // 8)
            params.append(Struct(tuple(words), PARAM_NBYTES))
        return Call(
            "form",
            buffers,
            tuple(params),
            grid=(COUNT // BLOCK, 1, 1),
            block=(BLOCK, 1, 1),
            cluster=(shape.cluster, 1, 1),
        )


def _uses(shape: Shape, variable: str) -> bool:
    return f" {variable};" in shape.body


def table(shape: Shape) -> str:
    """Return the constants, if the statement reads them."""
    if not _uses(shape, "table"):
        return ""
    words = ", ".join(map(hex, random("table", PARAM_NBYTES // 8)))
    return f".const .align 16 .b64 table[{PARAM_NBYTES // 8}] = {{{words}}};\n"


def _declaration(shape: Shape, name: str) -> str:
    count = len(shape.inputs) + len(shape.outputs) + bool(shape.memory)
    params = [f".param .u64 p{i}" for i in range(count)]
    if _uses(shape, "block"):
        params.append(f".param .align 128 .b8 block[{PARAM_NBYTES}]")
    return f".visible .entry {name}({', '.join(params)})"


def _lines(shape: Shape) -> Iterator[str]:
    """Index, inputs into registers, the statement, results out of registers."""
    yield ".reg .b32 %thread, %index, %cta; .reg .b64 %index64, %at, %in, %from, %to;"
    yield "mov.u32 %thread, %tid.x; mov.u32 %cta, %ctaid.x;"
    yield f"mad.lo.u32 %index, %cta, {BLOCK}, %thread; cvt.u64.u32 %index64, %index;"
    place = 0
    for register, kind in zip(SOURCES, shape.inputs, strict=False):
        bits = BITS[kind]
        target = "%from" if bits == 128 else "%at"
        yield f"ld.param.u64 %in, [p{place}];"
        yield f"mad.lo.u64 {target}, %index64, {bits // 8}, %in;"
        if bits < 128:
            yield f".reg .b{bits} {register}; ld.global.b{bits} {register}, [%at];"
        place += 1
    if shape.memory:
        yield f"ld.param.u64 %to, [p{place}];"
        yield f"mad.lo.u64 %to, %index64, {shape.memory}, %to;"
        place += 1
    declared = max(len(shape.outputs), 2)
    for i in range(declared):
        bits = shape.outputs[i] if i < len(shape.outputs) else 32
        yield f".reg .b{bits} %d{i};"
    yield shape.body
    for i, bits in enumerate(shape.outputs):
        yield f"ld.param.u64 %at, [p{place + i}];"
        yield f"mad.lo.u64 %at, %index64, {bits // 8}, %at;"
        yield f"st.global.b{bits} [%at], %d{i};"
    yield "ret;"


def entries() -> Iterator[Entry]:
    """Yield every entry of the registry once."""
    yield from {id(e): e for listed in ENTRIES.values() for e in listed}.values()


@cache
def forms() -> dict[str, Form]:
    """Every form that has a shape here, by name, whether or not sm_90 has it."""
    found: dict[str, Form] = {}
    for entry in entries():
        maker = maker_of(entry)
        if maker not in SHAPES:
            continue
        for opcode, groups in spellings(entry):
            for shape in SHAPES[maker](opcode, groups):
                form = Form(opcode, shape, maker)
                found.setdefault(form.name, form)
    return found


def without_shape() -> Iterator[str]:
    """Yield the opcodes for which a maker that has shapes has none."""
    for entry in entries():
        if shaped := SHAPES.get(maker_of(entry)):
            for opcode, groups in spellings(entry):
                if next(iter(shaped(opcode, groups)), None) is None:
                    yield opcode
