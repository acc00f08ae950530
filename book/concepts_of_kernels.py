"""concepts_of_kernels: the sketches of notebooks 07 to 09 and from 12 on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from concept_drawing import Sketch

import fp4ref
from fp4ref import GemmConfig
from fp4ref.lab.bounds import bound
from fp4ref.lab.workload import workloads
from fp4ref.lessons.silicon import PARTS
from fp4ref.numerics.elements import element
from fp4ref.parameters import Corner, published
from fp4ref.trace import Trace

PLAN = fp4ref.plan(GemmConfig.nvfp4())
K_TILES = 6


def overlap() -> Sketch:
    """07: when each k-tile is loaded and multiplied, in a run on the model's clock."""
    trace = _timed()
    found = Sketch(f"{K_TILES} k-tiles in a run: loaded, then multiplied, in clocks")
    loads, mmas = _spans(trace, "load"), _spans(trace, "mma")
    begin = min(start for start, _ in loads)
    rows = []
    for i, (load, mma) in enumerate(zip(loads, mmas, strict=True)):
        for name, (start, end) in (("load", load), ("MMA", mma)):
            at = (start - begin, end - begin)
            rows.append((f"{name} {i}", *at, f"{at[0]:,.0f} to {at[1]:,.0f}"))
    found.bars(rows)
    return found


def _timed() -> Trace:
    ones = np.ones((128, K_TILES * PLAN.tile_k), np.float32)
    q = fp4ref.quantize(ones)
    trace = fp4ref.run(q, q, sms=1, schedule="timed").trace
    assert trace is not None
    return trace


def _spans(trace: Trace, what: str) -> list[tuple[float, float]]:
    """First start and last end of each k-tile's work."""
    works = [
        event
        for event in trace
        if event.kind == "land" and what in event.operation.rpartition(".")[2]
    ]
    each = len(works) // K_TILES
    groups = [works[i * each : (i + 1) * each] for i in range(K_TILES)]
    return [
        (min(e.start or 0 for e in group), max(e.end or 0 for e in group))
        for group in groups
    ]


def epilogue() -> Sketch:
    """08: the way of a sub-tile."""
    found = Sketch(f"A tile is stored in {PLAN.subtiles} sub-tiles, each on this way")
    found.flow(
        ("accumulator in tensor memory", "memory"),
        "tcgen05.ld",
        ("registers: alpha, beta x C, bias", "unit"),
        "st.shared",
        ("shared memory", "memory"),
        "TMA, after all four warps",
        ("D in global memory", "memory"),
    )
    return found


def scheduler() -> Sketch:
    """09: where the next tile comes from."""
    found = Sketch("Where the next tile comes from")
    found.flow(
        ("scheduler warp", "unit"),
        "try_cancel asks for a tile",
        ("launch control", "memory"),
        "16 bytes in shared memory",
        ("an mbarrier flips: all warps read", "unit"),
        "a tile, or none",
        ("go on, or end", "box"),
    )
    return found


def real_kernel() -> Sketch:
    """12: the warps of the kernel and their work."""
    count = sum(each.count for each in PLAN.warps)
    found = Sketch(f"{count} warps of a CTA, by their role")
    for each in PLAN.warps:
        numbers = range(each.first, each.first + each.count)
        cells = [str(number) for number in numbers]
        role = each.role.name.lower().replace("_", " ")
        idle = "" if each.works else ", idle here"
        found.row([f"{role}{idle}", *cells], marked=range(1, len(cells) + 1))
    return found


def proofs() -> Sketch:
    """13: what agrees with what."""
    found = Sketch("What speaks for the machine that is emulated here")
    found.row(["our CUDA", "CUTLASS", "Triton"], kind="unit")
    found.flow(
        "NVIDIA's compilers",
        ("PTX, ours and others'", "box"),
        "executed",
        ("this machine", "memory"),
        "compared bit by bit",
        ("published models, a card's results", "box"),
    )
    return found


def riddles() -> Sketch:
    """14: from a symptom to the line."""
    found = Sketch("How a riddle is solved")
    found.flow(
        ("the symptom: a hang, wrong bits", "box"),
        "who waits for whom",
        ("the first barrier or byte that is wrong", "unit"),
        "who should have come",
        ("the line, and the rule it breaks", "box"),
    )
    return found


def pair() -> Sketch:
    """15: what two SMs hold of one MMA."""
    config = GemmConfig.nvfp4(cta_group=2, tile_m=256, cluster_m=2)
    m, n = config.tile.m, config.tile.n
    found = Sketch(f"One MMA of {m} x {n}, two SMs")
    found.row(["SM 0", "SM 1"], kind="unit")
    for name, size in (("A: m", m), ("B: n", n), ("D: m", m)):
        found.row([f"{name} 0-{size // 2 - 1}", f"{name} {size // 2}-{size - 1}"])
    found.line("each loads half of B, and reads both halves")
    return found


def cluster() -> Sketch:
    """16: what a cluster of 2 x 2 loads once."""
    found = Sketch("A cluster of 2 x 2: each part is loaded once for two")
    found.row(["", "B for n 0", "B for n 1"], kind="memory")
    found.row(["A for m 0", "CTA (0, 0)", "CTA (0, 1)"], marked=[1, 2])
    found.row(["A for m 1", "CTA (1, 0)", "CTA (1, 1)"], marked=[1, 2])
    found.line("A goes along its row, B down its column")
    return found


def k_groups() -> Sketch:
    """17: one barrier for two k-tiles."""
    plan = fp4ref.plan(GemmConfig.nvfp4(k_group=2))
    found = Sketch(f"A group of {plan.k_group} k-tiles fills one stage")
    found.row([f"k-tile {i}" for i in range(4)])
    found.row(["full 0, empty 0", "full 1, empty 1"], kind="memory")
    found.line(f"{plan.stage_tx_bytes:,} bytes and one wait for each group")
    return found


def split_k() -> Sketch:
    """18: K is cut, and the parts are added."""
    found = Sketch("Split-K: three CTAs share one tile of D")
    found.row(["K, first part", "second", "third"])
    found.row(["CTA 0", "CTA 1", "CTA 2"], kind="unit")
    found.flow(
        "sums in a workspace",
        ("added in the order of K, by a lock", "unit"),
        "",
        ("the tile of D", "memory"),
    )
    return found


def formats() -> Sketch:
    """19: the bits of an element."""
    found = Sketch("Bits of an element: s sign, e exponent, m mantissa")
    for name in ("e2m1", "e2m3", "e3m2", "e4m3", "e5m2"):
        each = element(name)
        bits = ["s", *"e" * each.exponent_bits, *"m" * each.mantissa_bits]
        found.row([name, *bits], marked=[1])
    return found


def tree() -> Sketch:
    """20: an epilogue as a tree."""
    found = Sketch("An epilogue as a tree, read from its leaves")
    found.row(["accumulator", "alpha", "C", "beta"], kind="memory")
    found.row(["multiply", "multiply"], kind="unit")
    found.flow("both", ("add", "unit"), "", ("activation", "unit"), "", ("D", "memory"))
    return found


def silicon() -> Sketch:
    """21: what an H200 can say."""
    found = Sketch("What an H200 can say of a Blackwell kernel")
    for real, line in ((True, "the card's own"), (False, "soft: Hopper lacks it")):
        found.line(line)
        names = [each.name for each in PARTS if each.real == real]
        for at in range(0, len(names), 2):
            found.row(names[at : at + 2], kind="unit" if real else "memory")
    return found


def your_kernel() -> Sketch:
    """22: what happens to a kernel of yours."""
    found = Sketch("What happens to a kernel of yours")
    found.flow(
        ("PTX and a launch", "memory"),
        "fp4ref check",
        ("executed; each rule is watched", "unit"),
        "findings, or a trace",
        ("the line, the rule, the remedy", "box"),
    )
    return found


def speed() -> Sketch:
    """23: what each resource needs alone, of one product at the published figures."""
    work = workloads()["nvfp4-4096"]
    found = Sketch(
        f"Microseconds that each resource needs alone: {work.m:,} cubed in NVFP4"
    )
    needs = bound(work, published().machine(Corner.PUBLISHED))
    rows = []
    for name, seconds in needs.seconds.items():
        binds = " (binds)" if name == needs.binding else ""
        rows.append((name, 0.0, 1e6 * seconds, f"{1e6 * seconds:.1f}{binds}"))
    found.bars(rows)
    return found


MAKERS: dict[str, Callable[[], Sketch]] = {
    "07": overlap,
    "08": epilogue,
    "09": scheduler,
    "12": real_kernel,
    "13": proofs,
    "14": riddles,
    "15": pair,
    "16": cluster,
    "17": k_groups,
    "18": split_k,
    "19": formats,
    "20": tree,
    "21": silicon,
    "22": your_kernel,
    "23": speed,
}
