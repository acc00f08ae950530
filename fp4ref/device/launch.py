"""launch: one kernel call, described once and run on a GPU.

A `Call` holds plain bytes and names, so that another executor can run the same call.
Its parameter block is laid out here, by the rules of PTX: each parameter at its own
alignment, tensor maps at 128 bytes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.device.driver import DeviceError, bindings, call, find_gpu, libcuda
from fp4ref.trace import Bytes

Dim3 = tuple[int, int, int]
MAP_NBYTES = 128
MAP_ALIGNMENT = 128


@dataclass(frozen=True, slots=True)
class Pointer:
    """A parameter: the address of a buffer, plus an offset."""

    buffer: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class MapOf:
    """A parameter: a tensor map over a buffer, by the arguments of the encode call.

    The numbers are those of cuda.h and of ``TensorMap``; nothing is checked here.
    """

    buffer: str
    data_type: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...] = ()
    interleave: int = 0
    swizzle: int = 0
    l2_promotion: int = 2
    oob_nan: bool = False
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Struct:
    """A parameter: a struct by value, its fields at their own alignment.

    A None stands for a tensor map that is never used: 128 zero bytes.
    """

    fields: tuple[Pointer | MapOf | Scalar | None, ...]
    nbytes: int


Scalar = np.uint32 | np.int32 | np.uint64 | np.float32
Parameter = Pointer | MapOf | Scalar | Struct


@dataclass(frozen=True, slots=True)
class Call:
    """One launch.

    Attributes
    ----------
    buffers
        Contents of global memory before the launch, by name.
    grid
        CTAs, a multiple of `cluster`.
    """

    entry: str
    buffers: Mapping[str, Bytes]
    params: tuple[Parameter, ...]
    grid: Dim3 = (1, 1, 1)
    block: Dim3 = (32, 1, 1)
    cluster: Dim3 = (1, 1, 1)
    smem_nbytes: int = 0


@dataclass(frozen=True, slots=True)
class ParameterBlock:
    """Parameters as bytes, and where each starts."""

    data: bytes
    offsets: tuple[int, ...] = field(default=())


def parameter_block(
    params: tuple[Parameter | None, ...],
    address: Callable[[str], int],
    encode: Callable[[MapOf, int], bytes],
) -> ParameterBlock:
    """Lay parameters out.

    Parameters
    ----------
    address
        Address of a buffer by name.
    encode
        The 128 bytes of a tensor map at an address.
    """
    block = bytearray()
    offsets = []
    for each in params:
        match each:
            case Pointer(buffer, offset):
                data, alignment = (address(buffer) + offset).to_bytes(8, "little"), 8
            case MapOf(buffer=buffer, offset=offset):
                data = encode(each, address(buffer) + offset)
                alignment = MAP_ALIGNMENT
            case Struct(fields, nbytes):
                inner = parameter_block(fields, address, encode).data
                data, alignment = inner.ljust(nbytes, b"\0"), MAP_ALIGNMENT
            case None:
                data, alignment = bytes(MAP_NBYTES), MAP_ALIGNMENT
            case _:
                data, alignment = each.tobytes(), each.itemsize
        block += bytes(-len(block) % alignment)
        offsets.append(len(block))
        block += data
    return ParameterBlock(bytes(block), tuple(offsets))


def encode_tiled(arguments: MapOf, address: int) -> tuple[int, bytes]:
    """``cuTensorMapEncodeTiled``: the driver's status, 0 for success, and 128 bytes.

    The library is called directly: the bindings refuse some arguments themselves.
    """
    m = arguments
    storage, at = _aligned(MAP_NBYTES, MAP_ALIGNMENT)
    ones = m.element_strides or (1,) * len(m.dims)
    status = libcuda().cuTensorMapEncodeTiled(
        ctypes.c_void_p(at),
        ctypes.c_int(m.data_type),
        ctypes.c_uint32(len(m.dims)),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * 8)(*m.dims),
        (ctypes.c_uint64 * 8)(*m.strides),
        (ctypes.c_uint32 * 8)(*m.box),
        (ctypes.c_uint32 * 8)(*ones),
        ctypes.c_int(m.interleave),
        ctypes.c_int(m.swizzle),
        ctypes.c_int(m.l2_promotion),
        ctypes.c_int(m.oob_nan),
    )
    skip = at - ctypes.addressof(storage)
    return int(status), storage.raw[skip : skip + MAP_NBYTES]


def _aligned(nbytes: int, alignment: int) -> tuple[Any, int]:
    """Return zeroed storage and an aligned address in it."""
    storage = ctypes.create_string_buffer(nbytes + alignment)
    start = ctypes.addressof(storage)
    return storage, start + -start % alignment


def _encoded(arguments: MapOf, address: int) -> bytes:
    status, data = encode_tiled(arguments, address)
    if status:
        raise DeviceError(f"cuTensorMapEncodeTiled: status {status} for {arguments}")
    return data


class Module:
    """A cubin on the first GPU.

    Raises
    ------
    DeviceError
        No GPU, or the driver refuses the cubin.
    """

    def __init__(self, cubin: bytes) -> None:
        gpu = find_gpu()
        if not gpu:
            raise DeviceError(gpu.missing)
        driver = bindings()
        device = call(driver.cuDeviceGet, 0)
        context = call(driver.cuDevicePrimaryCtxRetain, device)
        call(driver.cuCtxSetCurrent, context)
        self._driver = driver
        self._module = call(driver.cuModuleLoadData, cubin)

    def run(self, what: Call) -> dict[str, Bytes]:
        """Run `what` to its end; return every buffer as it is then.

        Raises
        ------
        DeviceError
            The driver refused the launch, or the kernel failed.
        """
        driver = self._driver
        addresses: dict[str, int] = {}
        try:
            for name, data in what.buffers.items():
                addresses[name] = int(call(driver.cuMemAlloc, data.size))
                host = np.ascontiguousarray(data)
                call(
                    driver.cuMemcpyHtoD,
                    addresses[name],
                    host.ctypes.data,
                    host.size,
                )
            self._launch(what, addresses)
            call(driver.cuCtxSynchronize)
            result = {}
            for name, data in what.buffers.items():
                back: NDArray[np.uint8] = np.empty(data.size, np.uint8)
                call(
                    driver.cuMemcpyDtoH,
                    back.ctypes.data,
                    addresses[name],
                    back.size,
                )
                result[name] = back
            return result
        finally:
            for address in addresses.values():
                driver.cuMemFree(address)

    def fill(self, variable: str, data: bytes | None = None) -> None:
        """Write a variable of the module from its start; None zeroes all of it."""
        driver = self._driver
        address, nbytes = _pair(
            driver.cuModuleGetGlobal(self._module, variable.encode())
        )
        if data is None:
            call(driver.cuMemsetD8, address, 0, nbytes)
        else:
            call(driver.cuMemcpyHtoD, address, data, len(data))

    def read(self, variable: str) -> NDArray[np.uint8]:
        """Copy a variable of the module back."""
        driver = self._driver
        address, nbytes = _pair(
            driver.cuModuleGetGlobal(self._module, variable.encode())
        )
        back: NDArray[np.uint8] = np.empty(nbytes, np.uint8)
        call(driver.cuMemcpyDtoH, back.ctypes.data, address, nbytes)
        return back

    def _launch(self, what: Call, addresses: Mapping[str, int]) -> None:
        driver = self._driver
        function = call(driver.cuModuleGetFunction, self._module, what.entry.encode())
        dynamic = driver.CUfunction_attribute
        call(
            driver.cuFuncSetAttribute,
            function,
            dynamic.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            what.smem_nbytes,
        )
        block = parameter_block(what.params, addresses.__getitem__, _encoded)
        storage, start = _aligned(len(block.data), MAP_ALIGNMENT)
        ctypes.memmove(start, block.data, len(block.data))
        pointers = (ctypes.c_void_p * len(block.offsets))(
            *(start + offset for offset in block.offsets)
        )
        config = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = what.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = what.block
        config.sharedMemBytes = what.smem_nbytes
        config.hStream = driver.CUstream(0)
        if what.cluster != (1, 1, 1):
            attribute = driver.CUlaunchAttribute()
            attribute.id = (
                driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            )
            shape = attribute.value.clusterDim
            shape.x, shape.y, shape.z = what.cluster
            config.attrs, config.numAttrs = [attribute], 1
        call(driver.cuLaunchKernelEx, config, function, ctypes.addressof(pointers), 0)
        del storage  # the driver has copied the parameters


def _pair(result: tuple[Any, ...]) -> tuple[Any, int]:
    """Return the two values of a driver call."""
    status, first, second = result
    if int(status) != 0:
        raise DeviceError(f"cuModuleGetGlobal: {status.name}")
    return first, int(second)


def run(cubin: bytes, what: Call) -> dict[str, Bytes]:
    """Load `cubin` and run one call; see `Module`."""
    return Module(cubin).run(what)
