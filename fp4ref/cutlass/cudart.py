"""cudart: what the stand-in CUDA runtime asks for, done on an emulated machine.

the library in ``stand_in`` is loaded by the program and turns its calls into requests;
here they are answered. A request is a header (operation, 0, length) and that many
bytes: integers of 64 bits, then raw data. The answer has the same header with a
``cudaError_t`` in the second field.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

import numpy as np

from fp4ref.cutlass.entries import Param, parameter_block
from fp4ref.errors import Fp4refError, InputError, NotModelled, TensorMapError
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.tensor_map import MAX_RANK, DataType, TensorMap
from fp4ref.layout import SwizzleMode
from fp4ref.trace import Dim3

HEADER = struct.Struct("<IiQ")

_LAUNCH_WORDS = 15
"""Integers before the parameters of a launch."""

MULTIPROCESSORS = 148
"""SMs of a B200."""

PRINTF_NBYTES = 1 << 20
"""A kernel's ``printf`` keeps this much, here as by CUDA's default."""


class Op(IntEnum):
    """Requests, with the numbers of ``enum op`` in runtime.h."""

    REGISTER = 1
    """Name of a kernel; the answer is the size of each parameter (uint32)."""
    MALLOC = 2
    FREE = 3
    UPLOAD = 4
    """Host to device: address, bytes."""
    DOWNLOAD = 5
    """Device to host: address, length; the answer is the bytes."""
    COPY = 6
    """Device to device: to, from, length."""
    FILL = 7
    """Address, value, its bytes, how many of it."""
    LAUNCH = 8
    """Kernel id, grid, block, cluster, preferred cluster (zeros for none), whether
    it may be non-portable, shared memory, parameter bytes without gaps.

    The answer is what the kernel printed; the program prints it in turn.
    """
    ENCODE_TILED = 9
    """Arguments of ``cuTensorMapEncodeTiled``; the answer is the 128 bytes."""
    REFUSE = 10
    """Name of a call that the stand-in does not model; the program ends."""


class Status(IntEnum):
    """The ``cudaError_t`` values in use."""

    SUCCESS = 0
    INVALID_VALUE = 1
    MEMORY_ALLOCATION = 2
    LAUNCH_FAILURE = 719
    """Sticky: the stand-in fails every later call with it too."""


@dataclass(frozen=True)
class Launch:
    """One kernel launch.

    Attributes
    ----------
    cluster, preferred
        Shapes in CTAs; `preferred` is None for clusters of one shape.
    nonportable
        Whether the kernel's clusters may have more than 8 CTAs.
    params
        The whole parameter block, gaps included.
    """

    name: str
    grid: Dim3
    block: Dim3
    cluster: Dim3
    smem_nbytes: int
    params: bytes
    preferred: Dim3 | None = None
    nonportable: bool = False


@dataclass(frozen=True)
class Copy:
    """One copy between host and device.

    Attributes
    ----------
    index
        Counts the copies of both directions.
    allocation
        Counts the calls of ``cudaMalloc``: the allocation that `address` is in; -1
        for none.
    """

    index: int
    direction: Literal["to device", "to host"]
    address: int
    nbytes: int
    allocation: int


LaunchKernel = Callable[[Machine, Launch], Sequence[str] | None]
"""Runs a kernel to its end; may return what it printed."""

OnCopy = Callable[[Copy, bytes], bytes | None]
"""Called for each copy to the device; may return other bytes to put there."""


@dataclass
class Runtime:
    """State of the stand-in CUDA runtime of one program.

    Parameters
    ----------
    machine
        Its global memory is the device memory; freed memory stays as it is.
    entries
        Parameters of every kernel, from `read_entries`.
    launch
        Runs a kernel to its end.
    on_copy
        May replace what is copied to the device.
    names
        What the program's allocations hold, by their order.
    multiprocessors
        How many SMs the program is told of. The machine may have fewer.

    Attributes
    ----------
    launches, copies, tensor_maps
        Everything the program asked for, in order.
    refused_maps
        Why ``cuTensorMapEncodeTiled`` returned CUDA_ERROR_INVALID_VALUE, each time.
    fault
        What ended the program's luck: a fault of a kernel or of a copy, or a call that
        is not modelled.
    """

    machine: Machine
    entries: Mapping[str, tuple[Param, ...]]
    launch: LaunchKernel
    on_copy: OnCopy | None = None
    names: Mapping[int, str] = field(default_factory=dict)
    multiprocessors: int = MULTIPROCESSORS
    launches: list[Launch] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    tensor_maps: list[TensorMap] = field(default_factory=list)
    refused_maps: list[str] = field(default_factory=list)
    fault: Fp4refError | None = None
    _kernels: list[str] = field(default_factory=list)
    _live: set[int] = field(default_factory=set)
    _order: dict[int, int] = field(default_factory=dict)

    def answer(self, op: Op, body: bytes) -> tuple[Status, bytes]:
        """Do what one request asks for.

        Raises
        ------
        InputError
            The caller's launch or copy hook cannot be used.
        """
        try:
            return self._answer(op, body)
        except TensorMapError as error:
            self.refused_maps.append(str(error))
            return Status.INVALID_VALUE, b""
        except InputError:
            raise
        except Fp4refError as error:
            self.fault = error
            return Status.LAUNCH_FAILURE, b""

    def _answer(self, op: Op, body: bytes) -> tuple[Status, bytes]:
        match op:
            case Op.REGISTER:
                return self._register(body.decode())
            case Op.MALLOC:
                return self._malloc(_u64(body, 1)[0])
            case Op.FREE:
                (address,) = _u64(body, 1)
                if address not in self._live:
                    return Status.INVALID_VALUE, b""
                self._live.remove(address)
            case Op.UPLOAD:
                self._upload(_u64(body, 1)[0], body[8:])
            case Op.DOWNLOAD:
                address, nbytes = _u64(body, 2)
                self._note("to host", address, nbytes)
                data = self.machine.gmem.contents(address, nbytes)
                return Status.SUCCESS, data.tobytes()
            case Op.COPY:
                to, source, nbytes = _u64(body, 3)
                gmem = self.machine.gmem
                gmem.poke(to, gmem.contents(source, nbytes))
            case Op.FILL:
                address, value, width, count = _u64(body, 4)
                one = np.frombuffer(value.to_bytes(width, "little"), np.uint8)
                self.machine.gmem.poke(address, np.tile(one, count))
            case Op.LAUNCH:
                return Status.SUCCESS, self._launch(body)
            case Op.ENCODE_TILED:
                return Status.SUCCESS, self._encode(_u64(body, 7 + 4 * MAX_RANK))
            case Op.REFUSE:
                raise NotModelled(
                    body.decode(errors="replace"),
                    who="host program",
                    rule="the stand-in CUDA runtime has the calls that the known "
                    "examples make",
                    remedy="use another example",
                    gap="cuda-runtime",
                )
        return Status.SUCCESS, b""

    def _register(self, name: str) -> tuple[Status, bytes]:
        if name not in self.entries:
            raise InputError(f"kernel {name} is in the program, but not in its PTX")
        self._kernels.append(name)
        sizes = [p.nbytes for p in self.entries[name]]
        return Status.SUCCESS, struct.pack(f"<{len(sizes)}I", *sizes)

    def _malloc(self, nbytes: int) -> tuple[Status, bytes]:
        index = len(self._order)
        try:
            name = self.names.get(index, f"cudaMalloc {index}")
            address = self.machine.gmem.allocate(name, nbytes)
        except MemoryError:
            return Status.MEMORY_ALLOCATION, bytes(8)
        self._order[address] = index
        self._live.add(address)
        return Status.SUCCESS, struct.pack("<Q", address)

    def _note(
        self, direction: Literal["to device", "to host"], address: int, nbytes: int
    ) -> Copy:
        found = self.machine.gmem.find(address)
        index = self._order.get(found.address, -1) if found else -1
        copy = Copy(len(self.copies), direction, address, nbytes, index)
        self.copies.append(copy)
        return copy

    def _upload(self, address: int, data: bytes) -> None:
        copy = self._note("to device", address, len(data))
        if self.on_copy and (other := self.on_copy(copy, data)) is not None:
            if len(other) != len(data):
                raise InputError(
                    f"on_copy returned {len(other)} bytes for copy {copy.index} of "
                    f"{len(data)} bytes"
                )
            data = other
        self.machine.gmem.poke(address, np.frombuffer(data, np.uint8))

    def _launch(self, body: bytes) -> bytes:
        kernel, *shape, nonportable, smem_nbytes = _u64(body, _LAUNCH_WORDS)
        gx, gy, gz, bx, by, bz, cx, cy, cz, px, py, pz = shape
        name = self._kernels[kernel]
        found = Launch(
            name,
            (gx, gy, gz),
            (bx, by, bz),
            (cx, cy, cz),
            smem_nbytes,
            parameter_block(self.entries[name], body[8 * _LAUNCH_WORDS :]),
            (px, py, pz) if px else None,
            bool(nonportable),
        )
        self.launches.append(found)
        printed = self.launch(self.machine, found)
        return "".join(printed or ()).encode()[:PRINTF_NBYTES]

    def _encode(self, args: tuple[int, ...]) -> bytes:
        data_type, rank, address, interleave, swizzle, l2, fill, *rest = args
        dims, strides, box, element_strides = (
            tuple(rest[MAX_RANK * i :][:n])
            for i, n in enumerate((rank, rank - 1, rank, rank))
        )
        if swizzle not in list(SwizzleMode) or data_type not in list(DataType):
            raise NotModelled(
                f"cuTensorMapEncodeTiled: data type {data_type}, swizzle {swizzle}",
                who="host program",
                rule="this machine has swizzles with 16-byte atoms (0 to 3), the "
                f"128-byte one with 32-byte atoms (4), and data types 0 to "
                f"{max(DataType)}",
                gap="tensor-map-kinds",
            )
        made = TensorMap(
            DataType(data_type),
            address,
            dims,
            strides,
            box,
            element_strides,
            interleave,
            SwizzleMode(swizzle),
            l2,
            bool(fill),
        )
        self.tensor_maps.append(made)
        return made.to_bytes()


def _u64(body: bytes, count: int) -> tuple[int, ...]:
    return struct.unpack_from(f"<{count}Q", body)
