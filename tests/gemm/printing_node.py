"""printing_node: nodes of our trees that print their callbacks, in both languages.

The twin of ``Printing`` in conformance/record/callback_order.cu: its trees, and what
it prints of what a callback is told here too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

import fp4ref
from fp4ref import GemmConfig, plan
from fp4ref.cuda_kernel import on_sm
from fp4ref.gemm.fusion.expression import Value, acc, branch, build, c, operation
from fp4ref.gemm.fusion.node import F32, Region, Unary, Visit
from fp4ref.trace import Trace

Row = tuple[str, int, int, int, int]
"""Callback, node, subtile, stage of the load or store, and whether the warp issues
it; -1 for what the callback is not told."""
Rows = dict[int, list[Row]]
"""What each warp printed."""

M, K = 128, 256
CALLS: Rows = defaultdict(list)


def _say(e: Any, callback: str, node: int, *told: int) -> None:
    subtile, stage, issues = (*told, -1, -1, -1)[:3]
    CALLS[e.warp.index].append((callback, node, subtile, stage, issues))


@dataclass(frozen=True, repr=False)
class Printing(Unary):
    """Hands its value on, and says which of its callbacks is called.

    Parameters
    ----------
    number
        Of the node in its tree.
    """

    number: int = 0

    struct = """\
template <class A, u32 NUMBER>
struct Printing : Unary<A> {
    u32 subtile;

    template <class... Told>
    __device__ static void say(const char* callback, Told... told) {
        const int values[] = {static_cast<int>(told)..., -1, -1, -1};
        if (lane_index() == 0)
            printf("%d %s %d %d %d %d\\n", threadIdx.x / 32, callback, NUMBER,
                   values[0], values[1], values[2]);
    }
    __device__ float visit(const Visit& v) {
        const float x = this->a.visit(v);
        if (v.column == 0) say("visit", subtile);
        return x;
    }
    __device__ void begin(Epilogue&, WorkTile) { say("begin"); }
    __device__ void begin_loop(Epilogue&, WorkTile, u32 i) { say("begin_loop", i); }
    __device__ void previsit(Epilogue&, WorkTile, u32 i) {
        say("previsit", subtile = i);
    }
    __device__ void reduce(Epilogue&, WorkTile, u32 i) { say("reduce", i); }
    __device__ void postreduce(Epilogue& e, WorkTile, u32 i) {
        say("postreduce", i, e.store.index);
    }
    __device__ void tma_store(Epilogue& e, WorkTile, u32 i) {
        say("tma_store", i, e.store.index, e.issues_stores);
    }
    __device__ void end_loop(Epilogue&, WorkTile, u32 i) { say("end_loop", i); }
    __device__ void end(Epilogue&, WorkTile) { say("end"); }
    __device__ void load_begin(const SharedStorage&, WorkTile) { say("load_begin"); }
    __device__ void load_step(const SharedStorage&, WorkTile, u32 i, Stage stage) {
        say("load_step", i, stage.index);
    }
    __device__ void load_end(const SharedStorage&, WorkTile) { say("load_end"); }
};
"""

    @property
    def template(self) -> tuple[str, ...]:
        return (str(self.number),)

    def previsit(self, e: Any, at: Region) -> Any:
        _say(e, "previsit", self.number, at.subtile)
        yield from ()
        return np.float32([e.warp.index, at.subtile])

    def visit(self, v: Visit, *inputs: F32) -> F32:
        warp, subtile = map(int, v.loaded[self])
        CALLS[warp].append(("visit", self.number, subtile, -1, -1))
        return inputs[0]


def _callback(name: str, told: Callable[..., tuple[int, ...]]) -> None:
    def called(self: Printing, e: Any, *where: Any) -> Any:
        _say(e, name, self.number, *told(e, *where))
        yield from ()

    setattr(Printing, name, called)


for _name in ("begin", "end", "load_begin", "load_end"):
    _callback(_name, lambda e, work: ())
for _name in ("begin_loop", "reduce", "end_loop"):
    _callback(_name, lambda e, at, *_: (at.subtile,))
_callback("postreduce", lambda e, at, v: (at.subtile, e.store.index))
_callback("tma_store", lambda e, at: (at.subtile, e.store.index, int(e.issues_stores)))
_callback("load_step", lambda p, work, subtile, stage: (subtile, stage.index))


def printed(number: int, value: Value) -> Value:
    """The value, through a node of this number."""
    return operation(Printing)(value, number=number)


def tree(name: str, *, reads_c: bool) -> Value:
    """The tree of a run in conformance/record/callback_order.cu."""
    if name == "a branch":
        return printed(2, printed(0, acc) | branch(lambda z: printed(1, z)))
    return printed(2, printed(0, acc) + printed(1, c if reads_c else acc))


def configured(name: str, run: dict[str, Any]) -> GemmConfig:
    """Our kernel with the storage that a run of CUTLASS had."""
    policy = run["policy"]
    built = build(
        tree(name, reads_c=bool(run["load"])),
        c_stages=policy["stages_c"],
        d_stages=policy["stages_d"],
        reuse_smem_c=bool(policy["reuse_smem_c"]),
        delay_tma_store=bool(policy["delay_tma_store"]),
    )
    return GemmConfig(epilogue=built).replace(tile_n=policy["tile_n"], stages=2)


def emulated(config: GemmConfig) -> tuple[Rows, Trace]:
    """What the emulator calls, and its trace."""
    CALLS.clear()
    run = _run(config, "emulator")
    assert run.trace is not None
    return dict(CALLS), run.trace


def compiled(config: GemmConfig) -> Rows:
    """What the compiled kernel prints."""
    said: list[str] = []
    launch = on_sm.launch

    def listening(*given: Any, **more: Any) -> list[str]:
        said.extend(launch(*given, **more))
        return said

    with patch.object(on_sm, "launch", listening):
        _run(config, "ptx")
    found: Rows = defaultdict(list)
    for line in "".join(said).splitlines():
        warp, callback, *told = line.split()
        node, subtile, stage, issues = map(int, told)
        found[int(warp)].append((callback, node, subtile, stage, issues))
    return dict(found)


def _run(config: GemmConfig, backend: Any) -> fp4ref.Run:
    """Two tiles on one SM."""
    n = 2 * config.tile.n
    a, b = (fp4ref.quantize(np.zeros((x, K), np.float32)) for x in (M, n))
    source = np.zeros((M, n), np.float32) if plan(config).loads_c else None
    return fp4ref.run(
        a, b, source, config=config, backend=backend, sms=1, trace=backend != "ptx"
    )


__all__ = ["Row", "Rows", "compiled", "configured", "emulated"]
