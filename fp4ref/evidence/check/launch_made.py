"""launch_made: a `Launch` from live arrays, and from what a compiler returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import require_array, require_integer
from fp4ref.errors import InputError
from fp4ref.evidence.check.kernel_text import read_kernel
from fp4ref.evidence.check.launch import (
    MAP_TYPES,
    SWIZZLES,
    Buffer,
    Launch,
    MapOf,
    Param,
    Pointer,
    Scalar,
    Struct,
    Tolerance,
    Value,
)
from fp4ref.ptx import Program
from fp4ref.ptx.text.syntax import Variable
from fp4ref.trace import Dim3

_MAP_NBYTES = 128


@dataclass(frozen=True)
class ArrayMap:
    """A tensor map of an array; see `tensor_map`."""

    array: NDArray[Any]
    map: MapOf


def tensor_map(
    array: NDArray[Any],
    data_type: str,
    dims: Sequence[int],
    strides: Sequence[int],
    box: Sequence[int],
    *,
    swizzle: int | str = 0,
) -> ArrayMap:
    """Return an argument that is a tensor map of an array.

    Parameters
    ----------
    data_type
        As in cuda.h, for example ``"u4_align8b"``.
    dims, box
        Elements, fastest dimension first.
    strides
        Bytes, for dimensions 1 and up.
    swizzle
        0, 32, 64 or 128 bytes, or ``"128_atom_32"``.

    Raises
    ------
    InputError
        The driver would refuse it.
    """
    if data_type not in MAP_TYPES or swizzle not in SWIZZLES:
        raise InputError(
            f"tensor_map: {data_type!r:.40}, swizzle {swizzle!r:.40}; types are "
            f"{', '.join(MAP_TYPES)}, swizzles {', '.join(map(str, SWIZZLES))}"
        )
    found = MapOf(
        "",
        MAP_TYPES[data_type],
        tuple(map(int, dims)),
        tuple(map(int, strides)),
        tuple(map(int, box)),
        SWIZZLES[swizzle],
    )
    found.encode({"": 0x7F00_0000_0000})
    return ArrayMap(require_array(array, "tensor_map array"), found)


def launch_arrays(
    kernel: Any,
    grid: Sequence[int],
    arguments: Sequence[Any],
    *,
    block: Sequence[int] | None = None,
    cluster: Sequence[int] | None = None,
    smem_nbytes: int = 0,
    sms: int | None = None,
    entry: str | None = None,
    expected: Mapping[int, Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> Launch:
    """Return a launch with live arguments.

    Parameters
    ----------
    kernel
        As of `check`.
    arguments
        In the order of the entry: an array is a buffer and its pointer, a number a
        scalar of the type that the entry declares, `bytes` or a `Struct` a by-value
        struct, and there is `tensor_map`. One array twice is one buffer.
    block, cluster
        By default what the entry's ``.reqntid``, ``.maxntid`` and
        ``.reqnctapercluster`` say.
    expected
        What arrays should hold after a right run, by the place of the argument.
    rtol, atol
        How near; every bit if neither is given.

    Raises
    ------
    InputError
        An argument does not fit the entry.
    """
    program = read_kernel(kernel).program(entry)
    declared = program.entry.params
    given = list(arguments)
    if len(given) != len(declared):
        raise InputError(
            f"arguments: {len(given)}; {program.entry.name[:60]} takes "
            f"{len(declared)}: {', '.join(v.name for v in declared)}"
        )
    buffers = _Buffers(dict(expected or {}), rtol, atol)
    params = tuple(
        Param(_value(buffers, i, argument, variable), variable.name)
        for i, (argument, variable) in enumerate(zip(given, declared, strict=True))
    )
    if left := set(buffers.expected) - buffers.used:
        raise InputError(f"expected: argument {sorted(left)[0]} is no array")
    launch = Launch(
        grid=_dim3(grid, "grid"),
        block=_dim3(block, "block") if block else declared_block(program),
        params=params,
        buffers=buffers.made,
        entry=program.entry.name,
        cluster=_dim3(cluster, "cluster") if cluster else declared_cluster(program),
        smem_nbytes=require_integer(smem_nbytes, "smem_nbytes", 0),
        sms=sms,
        source="the arguments",
    )
    launch.check(program)
    return launch


def launch_triton(
    compiled: Any,
    grid: Sequence[int],
    arguments: Sequence[Any],
    **more: Any,
) -> Launch:
    """Return a launch of what `triton.compile` returned.

    Its metadata give the warps, shared memory and clusters; the pointers to scratch
    memory that Triton adds behind the arguments are filled in.

    Parameters
    ----------
    arguments
        Of the kernel's signature without its constants, as for `launch_arrays`.
    more
        `expected`, `rtol`, `atol` and `sms` of `launch_arrays`.

    Raises
    ------
    InputError
        It is no compiled kernel, or an argument does not fit.
    """
    metadata = getattr(compiled, "metadata", None)
    if metadata is None or not hasattr(metadata, "num_warps"):
        raise InputError(
            f"compiled is {type(compiled).__name__}; need what triton.compile returned"
        )
    name = getattr(metadata, "name", None)
    program = read_kernel(compiled).program(name)
    given = list(arguments)
    for variable in program.entry.params[len(given) :]:
        if variable.nbytes != 8:
            break
        given.append(_scratch(metadata, grid, len(program.entry.params) - len(given)))
    cluster = tuple(getattr(metadata, "cluster_dims", None) or (1, 1, 1))
    count = getattr(metadata, "num_ctas", 1) or 1
    if prod(cluster) == 1 and count > 1:
        cluster = (count, 1, 1)
    threads = (32 * metadata.num_warps, 1, 1)
    directives = program.entry.directives
    has_block = "reqntid" in directives or "maxntid" in directives
    launch = launch_arrays(
        compiled,
        grid,
        given,
        block=None if has_block else threads,
        cluster=cluster,
        smem_nbytes=metadata.shared,
        entry=name,
        **more,
    )
    # Triton's grid counts clusters.
    whole = tuple(g * c for g, c in zip(launch.grid, cluster, strict=True))
    return replace(launch, grid=cast("Dim3", whole))


def _scratch(metadata: Any, grid: Sequence[int], left: int) -> Any:
    """Return what a trailing pointer of Triton's gets: global scratch, then profile."""
    name = "global_scratch_size" if left == 2 else "profile_scratch_size"
    nbytes = (getattr(metadata, name, 0) or 0) * prod(grid)
    return np.zeros(nbytes, np.uint8) if nbytes else 0


def launch_cute_dsl(
    compiled: Any, grid: Sequence[int], arguments: Sequence[Any], **more: Any
) -> Launch:
    """Return a launch of what `cute.compile` returned, with its PTX kept.

    Grid and arguments are those of the device function: CuTe DSL computes them in host
    code that does not run here. Block and cluster come from the entry.

    Parameters
    ----------
    compiled
        With its text in ``__ptx__`` (CUTE_DSL_KEEP_PTX=1).
    arguments, more
        As of `launch_arrays`; a tensor is a `Struct` or `tensor_map`.

    Raises
    ------
    InputError
        It kept no PTX, or an argument does not fit.
    """
    if not isinstance(getattr(compiled, "__ptx__", None), str):
        raise InputError(
            f"compiled is {type(compiled).__name__} without __ptx__; compile with "
            "CUTE_DSL_KEEP_PTX=1"
        )
    return launch_arrays(compiled, grid, arguments, **more)


def declared_block(program: Program) -> Dim3:
    """Return the block that the entry asks for.

    Raises
    ------
    InputError
        It says nothing of it.
    """
    directives = program.entry.directives
    found = directives.get("reqntid") or directives.get("maxntid")
    if not found:
        raise InputError(
            f"block: {program.entry.name[:60]} has no .reqntid or .maxntid; give it"
        )
    return cast("Dim3", (*found, 1, 1)[:3])


def declared_cluster(program: Program) -> Dim3:
    """Return the cluster that the entry asks for; one CTA if it does not."""
    found = program.entry.directives.get("reqnctapercluster") or (1,)
    return cast("Dim3", (*found, 1, 1)[:3])


def _dim3(value: Sequence[int], name: str) -> Dim3:
    found = [require_integer(each, name, 1) for each in value]
    if not 1 <= len(found) <= 3:
        raise InputError(f"{name}: {len(found)} extents; 1 to 3")
    return cast("Dim3", (*found, 1, 1)[:3])


class _Buffers:
    """The buffers of the arrays that were passed, each array once."""

    def __init__(
        self, expected: dict[int, Any], rtol: float | None, atol: float | None
    ) -> None:
        self.expected = expected
        self.used: set[int] = set()
        near = rtol is not None or atol is not None
        self.tolerance = Tolerance(rtol or 0.0, atol or 0.0) if near else None
        self.made: dict[str, Buffer] = {}
        self._names: dict[int, str] = {}

    def add(self, array: NDArray[Any], place: int, name: str) -> str:
        """Return the name of an array's buffer."""
        if id(array) in self._names and place not in self.expected:
            return self._names[id(array)]
        if array.size == 0:
            raise InputError(f"argument {place}, {name}: an empty array")
        want = None
        if place in self.expected:
            self.used.add(place)
            want = np.ascontiguousarray(require_array(self.expected[place], "expected"))
            if want.nbytes != array.nbytes:
                raise InputError(
                    f"expected, argument {place}: {want.nbytes:,} bytes; the array has "
                    f"{array.nbytes:,}"
                )
        self._names[id(array)] = name
        held = array if want is None else want
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.made[name] = Buffer(
            name,
            array.nbytes,
            held.dtype,
            held.shape,
            raw,
            expected=want,
            tolerance=self.tolerance,
        )
        return name


def _value(buffers: _Buffers, place: int, argument: Any, variable: Variable) -> Value:
    if isinstance(argument, ArrayMap):
        name = buffers.add(argument.array, place, variable.name)
        return replace(argument.map, buffer=name)
    if isinstance(argument, Struct | Scalar | Pointer | MapOf):
        return argument
    if isinstance(argument, bytes):
        return Struct(argument)
    if isinstance(argument, np.ndarray) and argument.ndim:
        array = require_array(argument, f"argument {place}, {variable.name}")
        return Pointer(buffers.add(array, place, variable.name))
    number = argument.item() if isinstance(argument, np.generic) else argument
    if isinstance(number, bool):
        number = int(number)
    if not isinstance(number, int | float):
        raise InputError(
            f"argument {place}, {variable.name}: {type(argument).__name__}; need an "
            "array, a number, bytes, a Struct or a tensor_map"
        )
    kind = variable.kind
    if isinstance(number, float) and kind[0] == "b":
        kind = {2: "f16", 4: "f32", 8: "f64"}.get(variable.nbytes, kind)
    return Scalar(kind, number)
