"""replay: emulator and ptx backend do what the recorded card did, bit by bit."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from recordings import BACKENDS, TRAPS, differences

from fp4ref.device.compile import nvrtc_version
from fp4ref.hardware import mbarrier, tma, tma_box
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode
from fp4ref.numerics.reciprocal import rcp_approx_ftz
from probes import convert, exhaustive, header_formats, tensor_map
from probes.mbarrier import FORBIDDEN
from probes.probe import pattern, probes
from probes.transcript import load

NAMES = tuple(probes())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", NAMES)
def test_every_case_is_as_recorded(name, backend):
    if backend == "ptx" and all(case.on_ptx for case in probes()[name].cases):
        pytest.skip(f"not on ptx: {probes()[name].cases[0].on_ptx}")
    assert differences(name, backend) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_recording_is_of_these_sources_and_calls(name):
    probe, meta = probes()[name], load(name).meta
    assert (meta["sources"], meta["calls"]) == (
        probe.sources_digest(),
        probe.calls_digest(),
    )
    assert {"card", "driver", "date", "nvrtc"} <= set(meta)


@pytest.mark.parametrize("name", NAMES)
def test_the_recorded_ptx_is_what_the_sources_compile_to(name):
    here, there = nvrtc_version(), load(name).meta["nvrtc"]
    if here is None:
        pytest.skip("NVRTC is not installed: pip install 'fp4ref[cuda]'")
    if here != there:
        pytest.skip(f"NVRTC {here} found; the recording is of {there}")
    assert probes()[name].compiled().ptx == load(name).ptx


def test_what_the_machine_calls_a_fault_ends_in_a_trap_on_the_card():
    tolerated = []
    for name in ("tma", "mbarrier"):
        errors = load(name).meta["errors"]
        for case in probes()[name].cases:
            if case.refusal in TRAPS and case.name not in errors:
                tolerated.append(case.name)
            assert case.refusal in TRAPS or case.name not in errors
    # PTX forbids these; an H200 answers all the same.
    assert tolerated == [
        "tx-count of 2^20",
        "init with 0",
        "init with 2^20",
        "arrive 0",
        "init twice",
    ]
    assert set(tolerated) < set(FORBIDDEN)


def test_the_word_of_a_live_mbarrier_is_not_in_shared_memory():
    seen, after, done = load("mbarrier").output("live word", "out").view(np.uint64)
    assert (int(seen), int(done)) == (0xA5A5A5A5_A5A5A5A5, 1)
    state = mbarrier.MbarrierState.decode(int(after))
    assert state == mbarrier.MbarrierState(0, 2, 3, 0)


# -- tensor maps


def map_differences() -> list[str]:
    transcript = load("tensor_map")
    found = []
    for row, m in enumerate(tensor_map.table()):
        got = tensor_map.words(m)
        accepted = transcript.arrays["status"][row] == 0
        if DataType.U4_ALIGN8B <= m.data_type <= DataType.U6_ALIGN16B:
            # sm_90 has no 4-bit and 6-bit types.
            found += [f"{m}: accepted by the driver"] if accepted else []
        elif m.swizzle == SwizzleMode.B128_ATOM_32B:
            # The driver of an H200 has no such swizzle.
            found += [f"{m}: accepted by the driver"] if accepted else []
        elif (got is not None) != accepted:
            found.append(f"{m}: {'refused' if got is None else 'accepted'}")
        elif got is not None and got != transcript.arrays["words"][row].tobytes():
            found.append(f"{m}: other words")
    return found


def test_tensor_maps_are_accepted_refused_and_encoded_as_by_the_driver():
    transcript = load("tensor_map")
    assert transcript.meta["calls"] == tensor_map.table_digest()
    assert map_differences() == []
    assert (transcript.arrays["status"] == 0).sum() > 3000


# -- functions of one float, all 2^32 inputs

MODELS = convert.MODELS | header_formats.MODELS


@pytest.mark.parametrize(
    "name", ["e4m3", "bf16", "f16", "e2m1", "ue8m0_rp", "ue8m0_rz"]
)
def test_a_conversion_changes_where_the_card_changes(name):
    first, last, values = exhaustive.runs(load("exhaustive").arrays[f"changes/{name}"])
    middle = first + (last - first) // np.uint32(2)
    for patterns in (first, last, middle):
        got = MODELS[name](patterns.view(np.float32))
        np.testing.assert_array_equal(got, values)


@pytest.mark.parametrize("name", exhaustive.CHECKSUMS)
def test_checksums_of_a_function(name):
    sums = load("exhaustive").arrays[f"checksum/{name}"]
    # Blocks of both signs around 1, and some anywhere.
    near = [0x000, 0x3B7, 0x3B8, 0x3F0, 0x3F8, 0x400, 0x41A, 0x7F8, 0xBF8, 0xC03]
    anywhere = (pattern(3, 4) % np.uint64(4096)).tolist()
    assert block_differences(MODELS[name], sums, [*near, *anywhere]) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", exhaustive.CHECKSUMS)
def test_every_checksum_of_a_function(name):
    sums = load("exhaustive").arrays[f"checksum/{name}"]
    assert block_differences(MODELS[name], sums, range(4096)) == []


def block_differences(model, sums, blocks):
    place = np.arange(1 << 20, dtype=np.uint32)
    return [
        hex(block << 20)
        for block in blocks
        if exhaustive.checksum(model((place | np.uint32(block << 20)).view(np.float32)))
        != int(sums[block])
    ]


def test_the_reciprocal_table_is_the_one_of_the_card():
    x = np.arange(0x3F800000, 0x40000000, dtype=np.uint32).view(np.float32)
    digest = hashlib.sha256(rcp_approx_ftz(x).tobytes()).hexdigest()
    assert digest == load("exhaustive").meta["rcp_sha256"]


@pytest.mark.parametrize("name", ["ex2", "tanh_approx"])
def test_samples_of_an_approximation(name):
    case = next(c for c in convert.PROBE.cases if c.name == name)
    x = case.call.buffers["in"].view(np.float32)
    recorded = load("convert").output(name, "out").view(np.uint32)
    np.testing.assert_array_equal(MODELS[name](x), recorded)


# -- a wrong machine is found


def test_a_wrong_swizzle_is_found(monkeypatch):
    def off_by_one_chunk(swizzle, phase, nbytes, data):
        order = right(swizzle, phase, nbytes, data).copy()
        if swizzle == 3:
            order[:32] = np.roll(order[:32], 16)
        return order

    right = tma_box._order
    monkeypatch.setattr(tma_box, "_order", off_by_one_chunk)
    monkeypatch.setattr(tma_box, "_chunks", tma_box._chunks.__wrapped__)
    for backend in BACKENDS:
        assert differences("tma", backend, "swizzle 3")


def test_a_wrong_fill_byte_is_found(monkeypatch):
    def one_byte(m):
        tile = right(m)
        tile[0, 0] ^= 1
        return tile

    right = tma_box.fill
    monkeypatch.setattr(tma_box, "fill", one_byte)
    for backend in BACKENDS:
        assert differences("tma", backend, "outside gone")


def test_a_wrong_nan_fill_is_found(monkeypatch):
    monkeypatch.setattr(tma_box, "NAN_FILL", 0x7FFF)
    assert differences("tma", "emulator", "NaN fill")


def test_a_store_cut_at_the_element_is_found(monkeypatch):
    monkeypatch.setattr(tma, "CHUNK", 1)
    assert differences("tma", "emulator", "store ragged")


@pytest.mark.parametrize(
    ("rule", "value"), [("MAX_BOX", 255), ("MAX_BOX_NBYTES", 232_448)]
)
def test_a_wrong_tensor_map_rule_is_found(monkeypatch, rule, value):
    monkeypatch.setattr(f"fp4ref.hardware.tensor_map.{rule}", value)
    assert map_differences()


def test_a_wrong_tensor_map_byte_is_found(monkeypatch):
    right = TensorMap.to_bytes

    def one_bit(m):
        data = bytearray(right(m))
        data[13 * 4] ^= 1
        return bytes(data)

    monkeypatch.setattr(TensorMap, "to_bytes", one_bit)
    assert map_differences()


def test_wrong_barrier_arithmetic_is_found(monkeypatch):
    def one_more(state):
        more = state.tx_count + (state.tx_count > 0)
        return right(state._replace(tx_count=more))

    right = mbarrier.MbarrierState.encode
    monkeypatch.setattr(mbarrier.MbarrierState, "encode", one_more)
    for backend in BACKENDS:
        assert differences("mbarrier", backend, "bytes")
