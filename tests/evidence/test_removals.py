"""removals: every synchronisation operation is missed, or has a reason that holds."""

from __future__ import annotations

import ast
import inspect
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import fp4ref.gemm
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.errors import HardwareFault
from fp4ref.evidence.faults.change import Change, changed_emulator
from fp4ref.evidence.removals import (
    REASONS,
    Removal,
    computed,
    objection,
    recorded,
    sites,
)
from fp4ref.evidence.removals.case import CASES, Form
from fp4ref.evidence.removals.in_emulator import executed
from fp4ref.evidence.removals.in_ptx import replaced
from fp4ref.evidence.removals.operation import OPERATIONS, UNITS, is_synchronisation
from fp4ref.evidence.removals.reason import CHECKS
from fp4ref.evidence.removals.site import Call, Chain, names
from fp4ref.hardware import clc

GEMM = Path(fp4ref.gemm.__file__).parent
ROOT = GEMM.parents[1]

needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)
FORMS = ["emulator", pytest.param("ptx", marks=needs_nvrtc)]


def of(form: Form) -> set[Removal]:
    """The removals of one form that the record has."""
    return {removal for removal in recorded() if removal.form == form}


# -- what there is -----------------------------------------------------------------


def test_all_that_blocks_synchronises() -> None:
    """Of the machine's functions; only cluster launch control's answer is awaited."""
    for module in UNITS:
        for name, value in vars(module).items():
            mine = getattr(value, "__module__", "") == module.__name__
            if mine and not name.startswith("_") and inspect.isgeneratorfunction(value):
                assert (module.__name__, name) in OPERATIONS, name
    assert (clc.__name__, "griddepcontrol_wait") in OPERATIONS


@pytest.mark.parametrize(
    ("opcode", "synchronises"),
    [
        ("mbarrier.try_wait.parity.shared::cta.b64", True),
        ("mbarrier.arrive.expect_tx.shared::cta.b64", True),
        ("bar.sync", True),
        ("ld.acquire.gpu.global.b32", True),
        ("red.release.gpu.global.add.u32", True),
        ("ld.global.f32", False),
        ("fence.proxy.async.shared::cta", True),
        ("cp.async.bulk.wait_group.read", True),
        ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64", True),
        (
            "cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx",
            False,
        ),
        ("mbarrier.init.shared::cta.b64", False),
        ("elect.sync", False),
        ("bra", False),
    ],
)
def test_what_synchronises(opcode: str, synchronises: bool) -> None:
    assert is_synchronisation(opcode) is synchronises


@pytest.mark.parametrize("form", FORMS)
def test_the_record_has_the_operations_of_today(form: Form) -> None:
    """Run ``python -m fp4ref.evidence.removals --missing`` after a change of them."""
    assert set(sites(form)) == of(form)


def calls(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Line, object and name of each call of an attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            name = owner.id if isinstance(owner, ast.Name) else ""
            yield node.lineno, name, node.func.attr


def test_the_runs_execute_every_operation_in_the_source() -> None:
    """By the syntax tree; what a ring does is of the role that enters or leaves it."""
    every = {where.chain for found in sites("emulator").values() for where in found}
    executed_lines = {(call.file, call.line) for chain in every for call in chain.calls}
    units = {(module.rpartition(".")[2], name) for module, name in OPERATIONS}
    rings = {"peek", "acquire", "wait", "tail"}
    here = set()
    for path in sorted(GEMM.rglob("*.py")):
        if path.name not in ("pipeline.py", "problem.py"):
            for line, owner, name in calls(ast.parse(path.read_text("utf-8"))):
                if (owner, name) in units or name in rings:
                    here.add((path.relative_to(ROOT).as_posix(), line))
    assert len(here) > 35
    assert here <= executed_lines


def test_no_role_takes_an_operation_by_name() -> None:
    """Else it could not be left out."""
    names_of = {name for _, name in OPERATIONS}
    for path in sorted(GEMM.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and "hardware" in (node.module or ""):
                taken = {alias.name for alias in node.names}
                units = node.module != "fp4ref.hardware"
                assert not (units and taken & names_of), path


def test_a_new_line_has_no_row() -> None:
    note = 'warp.note("accumulator.stage", index=number)'
    file = "fp4ref/gemm/epilogue/collective.py"
    change = Change(file, note, "tcgen05.fence_after_thread_sync(warp)")
    chains = {where.chain for found in sites("emulator").values() for where in found}
    with changed_emulator(change), executed(chains):
        CASES["one k-tile"].run("emulator")
    new = set(names(chains).values()) - {removal.name for removal in sites("emulator")}
    role = "epilogue_warp > finish_work > finish_tile > wait_for_accumulator"
    assert new == {f"{role}: tcgen05.fence::after_thread_sync#2"}


def test_names_count_calls_of_one_function() -> None:
    def chain(*lines: int, opcode: str = "bar.sync") -> Chain:
        functions = ("role", "load", "_hidden", "step")
        files = [Call("a.py", f, n) for f, n in zip(functions, lines, strict=False)]
        return Chain(tuple(files), opcode)

    found = names([chain(1, 9, 4, 7), chain(3, 9, 4, 7), chain(3, 9, 4, 8), chain(5)])
    assert list(found.values()).count("role: bar.sync") == 1
    assert found[chain(1, 9, 4, 7)] == "role > load > step: bar.sync"
    assert found[chain(3, 9, 4, 8)] == "role > load#2 > step: bar.sync#2"


def test_names_tell_functions_of_one_name_apart() -> None:
    def chain(file: str, *lines: int) -> Chain:
        calls = (Call("role.py", "role", lines[0]), Call(file, "free", lines[1]))
        return Chain(calls, "bar.sync")

    one, other = chain("a/single.py", 5, 9), chain("b/pair.cuh", 5, 7)
    found = names([one, other])
    assert found[one] == "role > single.free: bar.sync"
    assert found[other] == "role > pair.free: bar.sync"


def test_what_takes_the_place_of_an_instruction() -> None:
    wait = "\tmbarrier.try_wait.parity.shared::cta.b64 p, [%r1], %r2;"
    assert replaced(wait, "left out") == "\tsetp.eq.u32 p, 0, 0;"
    test = "\tmbarrier.test_wait.parity.shared::cta.b64 p, [%r1], %r2;"
    assert replaced(test, "left out") == "\tsetp.ne.u32 p, 0, 0;"
    assert replaced(test, "answers yes") == "\tsetp.eq.u32 p, 0, 0;"
    lock = "\tld.acquire.gpu.global.b32 %r1, [%rd1];"
    assert replaced(lock, "left out", "%r2") == "\tmov.b32 %r1, %r2;"
    assert replaced("\t@elected mbarrier.expect_tx.b64 [%r1], 8;", "left out") == ""


# -- what misses it ----------------------------------------------------------------


def test_every_removal_is_caught_or_has_a_reason() -> None:
    survivors = {row.removal.name for row in recorded().values() if row.survives}
    assert survivors == set(REASONS)
    for row in recorded().values():
        assert row.ptx.by not in ("certificate", "difference"), row
    caught = sum(not row.survives for row in recorded().values())
    assert caught > 100


def test_the_clean_kernel_says_nothing() -> None:
    for case in CASES.values():
        found = case.clean("emulator")
        assert found.verdict == "clean"
        assert not found.advisories


def test_a_sample_of_the_reasons_holds(rotating_seed: int) -> None:
    """Of the emulator; another one each day."""
    survivors = sorted(r for r in of("emulator") if recorded()[r].survives)
    for removal in random.Random(rotating_seed).sample(survivors, 2):
        assert objection(removal) == "", removal


def test_a_reason_can_fail() -> None:
    """Taken for another operation, each test speaks against it."""
    needed = Removal("emulator", "mma_warp > mma_tail: mbarrier.try_wait", "left out")
    name = "producer_warp > signal: mbarrier.try_wait"
    reason = REASONS[name]
    assert reason.check == "certified"
    with pytest.raises(HardwareFault):
        CHECKS["certified"](needed, reason)
    with pytest.raises(HardwareFault):
        CHECKS["in clusters"](needed, reason)
    assert CHECKS["not reached"](needed, reason)
    assert CHECKS["review"](needed, reason)


@pytest.mark.parametrize("form", FORMS)
def test_a_sample_is_as_recorded(form: Form, rotating_seed: int) -> None:
    """Another one each day."""
    rows = sorted(of(form))
    for removal in random.Random(rotating_seed).sample(rows, 1):
        found = computed(removal)
        assert found.same(recorded()[removal]), (found, recorded()[removal])


@pytest.mark.soak
@pytest.mark.parametrize("form", FORMS)
def test_every_removal_is_as_recorded(form: Form) -> None:
    for removal in sites(form):
        found = computed(removal)
        assert found.same(recorded()[removal]), (found, recorded()[removal])


@pytest.mark.soak
def test_every_reason_holds() -> None:
    for removal, row in recorded().items():
        if row.survives:
            assert objection(removal) == "", removal
