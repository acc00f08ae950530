"""forms: every form that the executor accepts and Hopper has gives the card's bits."""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from fp4ref.errors import HardwareFault, InputError
from fp4ref.ptx import parse
from fp4ref.ptx.instructions import floating, integer
from fp4ref.ptx.run.modifiers import parts
from fp4ref.ptx.run.registry import ENTRIES, find, instruction
from probes.forms import emulated
from probes.forms.catalogue import (
    ARGUMENTS,
    NO_ANSWER,
    OWN_PROBE,
    OWN_TEST,
    SHAPES,
    entries,
    forms,
    without_shape,
)
from probes.forms.compiler import find_ptxas, refusals
from probes.forms.faults import faults
from probes.forms.inputs import COUNT
from probes.forms.recording import GROUP, digest, recording
from probes.forms.spellings import maker_of
from probes.probe import probes
from probes.transcript import load

SAMPLE = 6
PARTS = 64
RECORDED = recording().streams
LACKING = recording().meta["lacking"]


def rotating(names, count=SAMPLE):
    """Return some of the names, others each day, all of them in the end."""
    day, turns = datetime.date.today().toordinal(), -(-len(names) // count)
    return list(names)[day % turns :: turns]


def accepted(form):
    try:
        return emulated.accepts(form)
    except InputError:
        return False


def differences(names):
    return [
        line
        for name in names
        for line in recording().differences(forms()[name], emulated.run(forms()[name]))
    ]


# -- nothing is left out


def test_every_entry_of_the_registry_is_asked_or_says_why_not():
    makers = {maker_of(entry) for entry in entries()}
    answers = [*SHAPES, *OWN_PROBE, *OWN_TEST, *NO_ANSWER]
    assert sorted(answers) == sorted(makers)


def test_the_test_of_an_instruction_names_it():
    for maker, name in OWN_TEST.items():
        text = (Path(__file__).parents[1] / name).read_text()
        entry = next(e for e in entries() if maker_of(e) == maker)
        heads = re.match(r"\(\?P<name>([^)]*)\)", entry.opcode.pattern)[1]
        heads = [head.split("\\")[0] for head in heads.split("|")]
        assert any(head in text for head in heads), maker


def missing_forms():
    """Return forms that are neither recorded, nor lacking, nor refused."""
    known = {*RECORDED, *LACKING}
    return [n for n, form in forms().items() if n not in known and accepted(form)]


def test_every_accepted_form_is_recorded_or_lacks_on_sm_90():
    assert missing_forms() == []
    gone = {*RECORDED, *LACKING} - set(forms())
    assert gone == set()
    assert not set(RECORDED) & set(LACKING)
    print(f"{len(RECORDED)} forms recorded, {len(LACKING)} that sm_90 lacks")


def test_a_new_form_without_a_recording_is_found(monkeypatch):
    entry = next(e for e in entries() if maker_of(e) == "floating.sign")
    added = {"new": [*ENTRIES["abs"]]}
    monkeypatch.setitem(ENTRIES, "abs", added["new"])
    instruction("abs", form="(?P<ftz>.ftz)?.f16", operands=2)(entry.make)
    forms.cache_clear()
    try:
        assert missing_forms() == ["abs.f16", "abs.ftz.f16"]
    finally:
        monkeypatch.undo()
        forms.cache_clear()


def test_only_arguments_of_calls_have_no_shape():
    assert {opcode.rsplit(".", 1)[0].split(".v")[0] for opcode in without_shape()} == {
        *ARGUMENTS
    }


@pytest.mark.parametrize("maker", OWN_PROBE)
def test_another_probe_has_the_instruction(maker):
    name = OWN_PROBE[maker]
    texts = (
        [form.text() for form in rotating_of_copies()]
        if name == "forms"
        else [load(name).ptx]
    )
    assert name == "forms" or name in probes()
    found = {
        maker_of(found[0])
        for text in texts
        for entry in parse(text).entries.values()
        for each in entry.body
        if (found := find(getattr(each, "opcode", "")))
    }
    assert maker in found


def rotating_of_copies():
    return [form for form in forms().values() if form.maker == "cp_async.copy"][:1]


@pytest.mark.parametrize(
    "name",
    [
        "bar.red.popc.u32",
        "red.global.add.f64",
        "red.global.max.noftz.v2.bf16",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
        "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32",
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
        "rsqrt.approx.f64, positive",
        "wmma.load.c.sync.aligned.row.m8n32k16.global.f32",
        "wmma.mma.sync.aligned.row.row.m16n16k8.f32.tf32.tf32.f32",
        "wmma.mma.sync.aligned.row.row.m16n16k16.f16.f32",
    ],
)
def test_a_form_that_a_rule_rests_on(name):
    assert differences([name]) == []


@pytest.mark.parametrize("pattern", ["a*", "a{2}", "[ab]+", "(a"])
def test_a_pattern_that_cannot_be_spelled_is_refused(pattern):
    with pytest.raises(ValueError, match=r"spellings|open group"):
        parts(pattern)


# -- what sm_90 lacks is the compiler's word


def test_the_compiler_says_what_sm_90_lacks():
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("ptxas is not installed: pip install 'fp4ref[cutlass]'")
    refused = rotating([*LACKING], 40)
    asked = [forms()[name] for name in [*refused, *rotating([*RECORDED], 60)]]
    assert refusals(ptxas, asked, "sm_90a") == {n: LACKING[n] for n in refused}
    nowhere = recording().meta["nowhere"]
    later = {n: nowhere[n] for n in refused if n in nowhere}
    assert refusals(ptxas, asked, "sm_100a") == later


def test_the_executor_accepts_no_form_that_no_target_has():
    # The kernels say PTX 9.0; what came later has its own tests.
    nowhere = recording().meta["nowhere"]
    assert not [n for n, why in nowhere.items() if "requires PTX ISA" not in why]


@pytest.mark.parametrize(
    "name",
    [
        "setp.lt.b32",
        "red.exch.b32",
        "red.acquire.global.add.u32",
        "ld.release.gpu.global.u32",
        "st.acquire.gpu.global.u32",
        "ld.global.wb.u32",
        "st.global.nc.u32",
        "st.global.L2::64B.u32",
        "mbarrier.arrive.release.b64",
        "mbarrier.test_wait.acquire.shared.b64",
    ],
)
def test_what_is_no_ptx_has_no_entry(name):
    assert find(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "ld.global.L2::evict_first.u32",
        "mov.b64, 8 pieces",
        "tcgen05.ld.sync.aligned.16x256b.x64.b32",
    ],
)
def test_what_is_no_ptx_is_refused(name):
    assert not accepted(forms()[name])


# -- the recording


def test_the_recording_is_of_these_kernels_and_inputs():
    assert {"card", "driver", "date"} <= set(recording().meta)
    old = [n for n, (crc, *_) in RECORDED.items() if digest(forms()[n]) != crc]
    assert old == []


def test_the_page_has_the_numbers():
    page = (Path(__file__).parents[2] / "docs" / "measured.md").read_text()
    assert f"{len(RECORDED):,} forms" in page
    assert f"{COUNT:,} inputs each" in page
    assert f"refuses {len(LACKING)} more" in page
    assert recording().meta["date"] in page


def test_all_recordings_are_small():
    folder = resources.files("fp4ref.data") / "transcripts"
    sizes = [len(file.read_bytes()) for file in folder.iterdir()]
    assert sum(sizes) < 6_000_000


def test_a_sample_is_as_recorded():
    assert differences(rotating(RECORDED)) == []


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_every_form_is_as_recorded(part):
    assert differences([*RECORDED][part::PARTS]) == []


@pytest.mark.parametrize("name", faults())
def test_what_ends_in_an_error_on_the_card_is_a_fault(name):
    assert recording().meta["faults"][name].startswith("cuCtxSynchronize: CUDA_ERROR")
    with pytest.raises(HardwareFault):
        emulated.run(faults()[name])


# -- a wrong executor is found


@pytest.mark.parametrize("at", [5, COUNT - 1])
def test_one_wrong_bit_is_found(at):
    form = forms()["add.u32"]
    outputs = emulated.run(form)
    assert recording().differences(form, outputs) == []
    outputs["d0"].view(np.uint32)[at] ^= 1
    lines = recording().differences(form, outputs)
    assert f"groups, first at {at // GROUP * GROUP}" in lines[-1]
    assert len(lines) == 1 + (at == 5)


def test_a_flush_on_the_subnormal_grid_is_found(monkeypatch):
    monkeypatch.setattr(floating, "_ROUNDS_TO_NORMAL", 0.0)
    assert differences(["mul.ftz.f32"])


@pytest.mark.parametrize(
    ("form", "name", "wrong"),
    [
        ("add.u32", "add", np.subtract),
        ("min.s16", "min", np.maximum),
        ("max.u64", "max", lambda a, b: np.maximum(a.view("i8"), b.view("i8"))),
    ],
)
def test_wrong_integer_arithmetic_is_found(monkeypatch, form, name, wrong):
    monkeypatch.setitem(integer._BINARY, name, wrong)
    assert differences([form])


def test_the_forms_are_listed():
    done = subprocess.run(
        [sys.executable, "-m", "probes.forms.record", "list"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{len(RECORDED)} forms" in done.stdout
    assert all(name in done.stdout for name in LACKING)
