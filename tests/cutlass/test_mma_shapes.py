"""A CuTe kernel for pairs with M=128 and for M=64: D is where CuTe looks for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fp4ref.cutlass.cudart import Launch, Runtime
from fp4ref.cutlass.entries import read_entries
from fp4ref.cutlass.process import run_program
from fp4ref.cutlass.toolchain import Build, Toolchain, build
from fp4ref.hardware import mma_operands
from fp4ref.hardware.data_path import DataPath
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.ptx import Program, launch, parse
from fp4ref.trace import Recorder

SOURCE = Path(__file__).with_name("mma_shapes.cu")
SHAPES = [(2, 128, n) for n in (16, 64, 256)] + [(1, 64, n) for n in (16, 64, 256)]
SHAPES += [(2, 256, 32)]
RIGHT = "".join(
    f"{sms} SM {m}x{n}: 0 wrong, {m * n} cells written\n" for sms, m, n in SHAPES
)


@pytest.fixture(scope="module")
def built(tools: Toolchain) -> Build:
    return build(tools, SOURCE, progress=print)


@pytest.fixture
def say(built: Build, stand_in: Path) -> Callable[..., str]:
    """Run the program on two SMs, each launch traced; return what it prints."""
    text = built.ptx.read_text()
    module = parse(text)

    def run(schedule: str | int = "eager") -> str:
        def run_kernel(machine: Machine, found: Launch) -> list[str]:
            machine.recorder = Recorder()
            return launch(
                machine,
                Program.of(module, found.name),
                found.grid,
                found.block,
                found.params,
                cluster=found.cluster,
                smem_nbytes=found.smem_nbytes,
            )

        machine = Machine(2, make_schedule(schedule), recorder=Recorder())
        runtime = Runtime(machine, read_entries(text), run_kernel)
        ended = run_program(built.program, [], stand_in, runtime, 600)
        assert not runtime.fault, str(runtime.fault)
        assert not ended.reason
        return ended.output

    return run


@pytest.mark.parametrize(
    "schedule",
    [
        "eager",
        pytest.param("late", marks=pytest.mark.soak),
        pytest.param(3, marks=pytest.mark.soak),
    ],
)
def test_d_is_where_cute_looks_for_it(say, schedule):
    """In the PTX order, with every access watched: no race, no fault."""
    assert say(schedule) == RIGHT


def _wrong(change: Callable[[pytest.MonkeyPatch], None]) -> object:
    return pytest.param(change, id=change.__name__.strip("_").replace("_", " "))


def _halves_of_b_swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    right = mma_operands.join_rows
    monkeypatch.setattr(
        "fp4ref.hardware.mma_elements.join_rows", lambda parts: right(parts[::-1])
    )


def _halves_of_n_swapped(monkeypatch: pytest.MonkeyPatch) -> None:
    right = DataPath.split
    monkeypatch.setattr(DataPath, "split", lambda path, d: right(path, d)[::-1])


def _lanes_of_m64(monkeypatch: pytest.MonkeyPatch) -> None:
    right = DataPath.blocks

    def wrong(path: DataPath, tmem: object, lane: int, *more: int) -> object:
        return right(path, tmem, lane + 16 * (path.name == "F"), *more)

    monkeypatch.setattr(DataPath, "blocks", wrong)


def _odd_cta_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    from fp4ref.hardware import mma_unscaled

    right = mma_unscaled.participants
    monkeypatch.setattr(
        mma_unscaled, "participants", lambda *given: right(*given)[::-1]
    )


def _rows_of_d_rolled(monkeypatch: pytest.MonkeyPatch) -> None:
    right = DataPath.split
    monkeypatch.setattr(
        DataPath, "split", lambda path, d: right(path, np.roll(d, 1, axis=0))
    )


WRONG = (
    _halves_of_b_swapped,
    _halves_of_n_swapped,
    _lanes_of_m64,
    _odd_cta_leads,
    _rows_of_d_rolled,
)


@pytest.mark.soak
@pytest.mark.parametrize("change", [_wrong(change) for change in WRONG])
def test_a_wrong_rule_is_seen(say, monkeypatch, change):
    change(monkeypatch)
    assert say() != RIGHT


def test_one_wrong_rule_a_day_is_seen(say, monkeypatch, rotating_seed):
    WRONG[rotating_seed % len(WRONG)](monkeypatch)
    assert say() != RIGHT
