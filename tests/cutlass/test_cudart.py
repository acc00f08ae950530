"""test_cudart: every request of the stand-in runtime, answered without a program."""

from __future__ import annotations

import struct

import pytest

from fp4ref.cutlass.cudart import Copy, Launch, Op, Runtime, Status
from fp4ref.cutlass.entries import Param
from fp4ref.errors import InputError, LaunchFault, NotModelled
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.tensor_map import TensorMap


def no_launch(*args: object) -> None:
    pytest.fail("nothing was to be launched")


def make(launch=no_launch, **hooks: object) -> Runtime:
    entries = {"kernel": (Param(0, 1), Param(8, 8))}
    return Runtime(Machine(), entries, launch, **hooks)


def u64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def malloc(runtime: Runtime, nbytes: int) -> int:
    status, answer = runtime.answer(Op.MALLOC, u64(nbytes))
    assert status == Status.SUCCESS
    return struct.unpack("<Q", answer)[0]


def encode_args(**changes: int) -> bytes:
    fields = {
        "data_type": 13,
        "rank": 3,
        "address": 0x7F0000000000,
        "interleave": 0,
        "swizzle": 3,
        "l2": 2,
        "fill": 0,
    } | changes
    return u64(
        *fields.values(),
        *(512, 256, 1, 0, 0),
        *(256, 0, 0, 0, 0),
        *(256, 128, 1, 0, 0),
        *(1, 1, 1, 0, 0),
    )


def test_bytes_come_back_as_they_went():
    runtime = make()
    malloc(runtime, 7)
    address = malloc(runtime, 100)
    data = bytes(range(100))
    assert runtime.answer(Op.UPLOAD, u64(address) + data) == (0, b"")
    assert runtime.answer(Op.DOWNLOAD, u64(address + 10, 20)) == (0, data[10:30])
    assert runtime.copies == [
        Copy(0, "to device", address, 100, 1),
        Copy(1, "to host", address + 10, 20, 1),
    ]


def test_device_copies_and_fills():
    runtime = make()
    one, two = malloc(runtime, 16), malloc(runtime, 16)
    runtime.answer(Op.FILL, u64(one, 0xAB, 1, 16))
    runtime.answer(Op.COPY, u64(two + 4, one, 8))
    assert runtime.answer(Op.DOWNLOAD, u64(two + 4, 8))[1] == b"\xab" * 8


def test_a_fill_with_words_is_little_endian():
    runtime = make()
    address = malloc(runtime, 16)
    runtime.answer(Op.FILL, u64(address + 4, 0x01020304, 4, 2))
    found = runtime.answer(Op.DOWNLOAD, u64(address, 16))[1]
    assert found == b"\xcd" * 4 + b"\4\3\2\1" * 2 + b"\xcd" * 4


def test_memory_nobody_wrote_is_poison():
    runtime = make()
    assert runtime.answer(Op.DOWNLOAD, u64(malloc(runtime, 4), 4))[1] == b"\xcd" * 4


def test_freeing_twice_is_an_invalid_value():
    runtime = make()
    address = malloc(runtime, 8)
    assert runtime.answer(Op.FREE, u64(address))[0] == Status.SUCCESS
    assert runtime.answer(Op.FREE, u64(address))[0] == Status.INVALID_VALUE
    assert runtime.answer(Op.FREE, u64(address + 4))[0] == Status.INVALID_VALUE


def test_a_copy_outside_every_allocation_is_a_fault():
    runtime = make()
    address = malloc(runtime, 8)
    status, _ = runtime.answer(Op.UPLOAD, u64(address) + bytes(9))
    assert status == Status.LAUNCH_FAILURE
    assert "not inside one allocation" in str(runtime.fault)


def test_the_hook_sees_and_replaces_copies_to_the_device():
    seen = []

    def double(copy: Copy, data: bytes) -> bytes | None:
        seen.append((copy.allocation, data))
        return bytes(2 * b for b in data) if copy.allocation == 1 else None

    runtime = make(on_copy=double)
    one, two = malloc(runtime, 4), malloc(runtime, 4)
    for address in (one, two):
        runtime.answer(Op.UPLOAD, u64(address) + b"\1\2\3\4")
    assert seen == [(0, b"\1\2\3\4"), (1, b"\1\2\3\4")]
    assert runtime.answer(Op.DOWNLOAD, u64(one, 4))[1] == b"\1\2\3\4"
    assert runtime.answer(Op.DOWNLOAD, u64(two, 4))[1] == b"\2\4\6\x08"


def test_the_hook_cannot_change_the_length():
    runtime = make(on_copy=lambda copy, data: b"")
    with pytest.raises(InputError, match="0 bytes for copy 0 of 4 bytes"):
        runtime.answer(Op.UPLOAD, u64(malloc(runtime, 4)) + bytes(4))


def test_a_launch_arrives_with_its_parameter_block():
    calls = []

    def launch(machine: Machine, found: Launch) -> list[str]:
        calls.append(found)
        return ["hello\n"]

    runtime = make(launch)
    assert runtime.answer(Op.REGISTER, b"kernel") == (0, struct.pack("<2I", 1, 8))
    shape = (0, 2, 3, 1, 256, 1, 1, 2, 1, 1, 0, 0, 0, 0, 4096)
    assert runtime.answer(Op.LAUNCH, u64(*shape) + b"x12345678") == (0, b"hello\n")
    block = b"x" + bytes(7) + b"12345678"
    expected = Launch("kernel", (2, 3, 1), (256, 1, 1), (2, 1, 1), 4096, block)
    assert calls == runtime.launches == [expected]
    two_shapes = (0, 4, 4, 1, 256, 1, 1, 2, 1, 1, 4, 4, 1, 1, 0)
    runtime.answer(Op.LAUNCH, u64(*two_shapes) + b"x12345678")
    assert calls[1].cluster == (2, 1, 1)
    assert calls[1].preferred == (4, 4, 1)
    assert calls[1].nonportable


def test_a_kernel_without_ptx_is_refused():
    with pytest.raises(InputError, match="kernel other is in the program, but not"):
        make().answer(Op.REGISTER, b"other")


def test_a_fault_in_a_kernel_is_kept_and_reported_as_launch_failure():
    def launch(*args: object) -> None:
        raise LaunchFault("too much of it")

    runtime = make(launch)
    runtime.answer(Op.REGISTER, b"kernel")
    shape = (0, 1, 1, 1, 32, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0)
    status, _ = runtime.answer(Op.LAUNCH, u64(*shape) + bytes(9))
    assert status == Status.LAUNCH_FAILURE
    assert isinstance(runtime.fault, LaunchFault)


def test_a_tensor_map_is_encoded():
    runtime = make()
    status, answer = runtime.answer(Op.ENCODE_TILED, encode_args())
    assert status == Status.SUCCESS
    (made,) = runtime.tensor_maps
    assert made.dims == (512, 256, 1)
    assert made.strides == (256, 0)
    assert made.box == (256, 128, 1)
    assert TensorMap.from_bytes(answer) == made


def test_a_tensor_map_against_the_rules_is_an_invalid_value():
    runtime = make()
    status, answer = runtime.answer(Op.ENCODE_TILED, encode_args(address=8))
    assert (status, answer) == (Status.INVALID_VALUE, b"")
    assert "multiple of 16 bytes, not 0x8" in runtime.refused_maps[0]
    assert runtime.fault is None


@pytest.mark.parametrize("changes", [{"swizzle": 5}, {"data_type": 16}])
def test_a_tensor_map_that_is_not_modelled_is_named(changes):
    runtime = make()
    status, _ = runtime.answer(Op.ENCODE_TILED, encode_args(**changes))
    assert status == Status.LAUNCH_FAILURE
    assert isinstance(runtime.fault, NotModelled)
    assert "cuTensorMapEncodeTiled: data type" in str(runtime.fault)


def test_a_refused_call_is_named():
    runtime = make()
    runtime.answer(Op.REFUSE, b"cudaMemcpy: cudaMemcpyDefault")
    assert isinstance(runtime.fault, NotModelled)
    assert "cudaMemcpy: cudaMemcpyDefault" in str(runtime.fault)
