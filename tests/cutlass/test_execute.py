"""test_execute: CUTLASS's compiled 72b on the emulated SM, judged by its own host code.

A kernel written by others, which knows nothing of this machine, is the outside witness
of the hardware model. The fidelity table names the rules without which it fails.
"""

from __future__ import annotations

import numpy as np
import pytest
from raw_bits import assert_bits_equal
from wide_operands import wide_pair

import fp4ref
from fp4ref import GemmConfig, oracle
from fp4ref.cuda_kernel.sass import figures, mandatory
from fp4ref.cutlass.examples import assemble_example
from fp4ref.cutlass.execute import CutlassRun, execute_example
from fp4ref.device.compile import CompileError
from fp4ref.errors import InputError
from fp4ref.evidence.hardware_events import hardware_events
from fp4ref.frames import events_of
from fp4ref.gemm.plan import plan
from fp4ref.hardware.advisory import Advisory

SHAPES = [
    (128, 128, 256),
    (256, 384, 512),
    (128, 96, 768),
    (256, 32, 2048),
    (100, 160, 64),
    (384, 256, 1056),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("schedule", ["eager", "late"])
def test_the_unmodified_example_passes_its_own_check(example_72b, shape, schedule):
    found = execute_example("72b", *shape, schedule=schedule, trace=False)
    assert found.result.passed, found.result.problems


def test_the_example_passes_under_a_rotating_seed(example_72b, rotating_seed):
    found = execute_example("72b", 256, 256, 512, schedule=rotating_seed, sms=3)
    assert found.result.passed, found.result.problems


def run_wide(seed: int, schedule: str | int) -> tuple[CutlassRun, fp4ref.Run]:
    """Run both kernels on operands that tell a right accumulator from a wrong one."""
    a, b = wide_pair(seed, 256, 96, 768)
    config = GemmConfig.example_72b()
    theirs = execute_example("72b", 256, 96, 768, operands=(a, b), schedule=schedule)
    assert theirs.result.fault is None
    want = oracle.expected(a, b, config=config)
    codes, scales = theirs.output(256, 96)
    assert_bits_equal(codes, want.d)
    assert_bits_equal(scales, want.sfd)
    return theirs, fp4ref.run(a, b, config=config)


@pytest.mark.parametrize("schedule", ["eager", "late", 11])
def test_wide_inputs_give_the_bits_of_the_integer_model(example_72b, schedule):
    theirs, ours = run_wide(5, schedule)
    found = fp4ref.compare(ours, theirs.trace)
    assert found.ok, found.report()
    k_tiles, tiles, subtiles = 3, 2, 3
    assert found.counts == {
        "A": k_tiles * tiles,
        "B": k_tiles * tiles,
        "SFA": k_tiles * tiles,
        "SFB": k_tiles * tiles,
        "SFA in TMEM": 4 * k_tiles * tiles,
        "SFB in TMEM": 4 * k_tiles * tiles,
        "accumulator": 4 * k_tiles * tiles,
        "D": subtiles * tiles,
        "SFD": 1,
    }


def test_the_examples_own_inputs_hide_faults_that_wide_ones_show(example_72b):
    """Its small integers are summed exactly by any accumulator."""
    found = execute_example("72b", 128, 128, 256)
    events = hardware_events(found.trace)
    words = np.concatenate(
        [e.data.ravel() for k, e in events.items() if k.tensor == "accumulator"]
    ).view(np.float32)
    assert np.array_equal(words, np.round(words * 4) / 4)
    assert np.abs(words).max() < 2**20


def test_events_carry_the_line_of_the_cuda_source(example_72b):
    found = execute_example("72b", 128, 128, 256)
    mmas = [e for e in found.trace if e.operation == "tcgen05.mma"]
    assert {e.kernel_source.split(":")[0] for e in mmas} == {"mma_sm100_umma.hpp"}
    assert all(not e.source for e in mmas)
    assert not events_of(found.trace, "6.6.9")


def test_what_it_relies_on_is_in_the_fidelity_table(example_72b):
    found = execute_example("72b", 256, 384, 512, schedule="late", trace=False)
    assert set(found.advisories) == {
        Advisory.COPY_OVER_MMA.value,
        Advisory.LOAD_WITHOUT_WAIT.value,
    }


@pytest.mark.parametrize(
    ("schedule", "rule"),
    [("eager", "tcgen05.wait::ld"), ("late", "tcgen05.cp")],
)
def test_the_ptx_text_alone_does_not_allow_it(example_72b, schedule, rule):
    """Each schedule stops at one of the two rows of the fidelity table."""
    found = execute_example("72b", 256, 384, 512, ordering="ptx", schedule=schedule)
    assert not found.result.passed
    assert rule in found.result.problems[0]


def test_its_sass_has_the_known_figures(example_72b):
    try:
        found = figures(assemble_example("72b"))
    except CompileError as error:
        pytest.skip(str(error))
    assert (found.registers, found.spill_instructions) == (168, 0)
    for opcode, count in mandatory(plan(GemmConfig.example_72b())).items():
        assert found.loop_counts[opcode] == count
    assert 60 <= found.per_k_tile <= 75


def test_operands_of_another_size_are_refused(example_72b):
    with pytest.raises(InputError, match="give matrices of"):
        execute_example("72b", 128, 128, 256, operands=wide_pair(0, 128, 128, 512))


def test_72b_passes_its_own_check_where_the_rules_are_tried(example_72b):
    found = execute_example("72b", 256, 96, 320, schedule="late", sms=1, trace=False)
    assert found.result.passed, found.result.problems or "its own check fails"
