"""compiled: loops in pieces on threads that sleep, and a process that may fork."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
import threading
from itertools import pairwise

import pytest

from fp4ref import numerics
from fp4ref.numerics import compiled


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("count", "least"), [(0, 1), (1, 1), (7, 100), (100, 7)])
def test_pieces_make_up_the_range_in_order(count, least, threads, monkeypatch):
    monkeypatch.setattr(compiled, "THREADS", threads)
    found = compiled.in_pieces(lambda *ends: ends, count, least)
    assert found[0][0] == 0
    assert found[-1][1] == count
    assert all(one[1] == other[0] for one, other in pairwise(found))
    assert len(found) == 1 or min(b - a for a, b in found) >= least


def test_pieces_run_at_once(monkeypatch):
    """Each of two pieces waits for the other."""
    monkeypatch.setattr(compiled, "THREADS", 2)
    both = threading.Barrier(2, timeout=60)
    assert len(compiled.in_pieces(lambda *_: both.wait(), 2, 1)) == 2


def test_loops_over_a_range_of_rows_release_the_lock_of_python():
    """Else pieces on threads would take turns."""
    pytest.importorskip("numba")
    found = {}
    for module in pkgutil.iter_modules(numerics.__path__):
        if module.name.endswith("_jit"):
            loops = vars(importlib.import_module(f"fp4ref.numerics.{module.name}"))
            for name, loop in loops.items():
                function = getattr(loop, "py_func", None)
                if (
                    function
                    and next(iter(inspect.signature(function).parameters)) == "first"
                ):
                    found[module.name, name] = loop.targetoptions.get("nogil", False)
    assert len(found) >= 12
    assert [name for name, released in found.items() if not released] == []


def test_an_error_in_a_piece_is_raised(monkeypatch):
    monkeypatch.setattr(compiled, "THREADS", 2)
    with pytest.raises(ZeroDivisionError):
        compiled.in_pieces(lambda first, _: 1 // first, 4, 1)


SCRIPT = """
import os, numba, numpy as np, fp4ref
from fp4ref.numerics import compiled
compiled.THREADS, compiled.PASS = 2, 1 << 12
x = np.random.default_rng(0).standard_normal((256, 256), np.float32)
before = fp4ref.matmul(*2 * [fp4ref.quantize(x)])
if child := os.fork():
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    try:
        print("layer", numba.threading_layer())
    except ValueError:
        print("no threads of Numba")
else:
    after = fp4ref.matmul(*2 * [fp4ref.quantize(x)])
    os._exit(int(before.tobytes() != after.tobytes()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_that_multiplied_may_fork_and_numba_starts_no_threads():
    pytest.importorskip("numba")
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout == "no threads of Numba\n", done.stderr
