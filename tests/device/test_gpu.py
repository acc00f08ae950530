"""gpu: the probes, live; skipped where there is no Hopper GPU, with what was found."""

from __future__ import annotations

import numpy as np
import pytest
from recordings import TRAPS, first_difference

from fp4ref.device import CompileError, find_gpu
from fp4ref.device.launch import Module, encode_tiled
from probes import convert, exhaustive, header_formats, tensor_map
from probes.probe import probes
from probes.transcript import load

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def modules():
    gpu = find_gpu()
    if not gpu:
        pytest.skip(gpu.missing)
    if gpu.capability != (9, 0):
        pytest.skip(f"the probes are compiled for compute capability 9.0; found: {gpu}")
    try:
        return {
            name: Module(probe.compiled().cubin) for name, probe in probes().items()
        }
    except CompileError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", tuple(probes()))
def test_every_case_is_as_recorded_and_as_emulated(modules, name):
    probe, transcript = probes()[name], load(name)
    found = []
    for case in probe.cases:
        if case.refusal in TRAPS:
            continue  # a trap would end the process's context
        got = modules[name].run(case.call)
        emulated = {} if case.refusal or case.unlike else probe.emulate(case)
        for output in case.outputs:
            recorded = transcript.output(case.name, output)
            if not case.unlike:
                found.append((case.name, first_difference(got[output], recorded)))
            if emulated:
                line = first_difference(emulated[output], got[output])
                found.append((case.name, line))
    assert [each for each in found if each[1]] == []


def test_the_driver_encodes_as_recorded(modules):
    transcript = load("tensor_map")
    for row, m in enumerate(tensor_map.table()):
        status, data = encode_tiled(m, tensor_map.ADDRESS + m.offset)
        assert (status == 0) == (transcript.arrays["status"][row] == 0), m
        if status == 0:
            assert data == transcript.arrays["words"][row].tobytes(), m


@pytest.mark.parametrize(
    "name", [n for each in exhaustive.CHANGES.values() for n in each]
)
def test_conversions_change_as_recorded(modules, name):
    probe = next(p for p, names in exhaustive.CHANGES.items() if name in names)
    _, pairs = exhaustive.changes(modules[probe], name)
    recorded = load("exhaustive").arrays[f"changes/{name}"]
    np.testing.assert_array_equal(exhaustive.pack_changes(pairs), recorded)
    assert name in convert.MODELS | header_formats.MODELS


@pytest.mark.parametrize("name", exhaustive.CHECKSUMS)
def test_checksums_are_as_recorded(modules, name):
    recorded = load("exhaustive").arrays[f"checksum/{name}"]
    got = exhaustive.checksums(modules["convert"], name)
    np.testing.assert_array_equal(got, recorded)
