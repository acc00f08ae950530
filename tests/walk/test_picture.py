"""The default walk as it is shown: overlap, bars that hide nothing, whole words."""

from __future__ import annotations

import ast
import io
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

import fp4ref
from fp4ref.errors import TraceError
from fp4ref.evidence.statement import line
from fp4ref.trace import Event, Trace
from fp4ref.trace.timeline import in_flight, is_load, is_mma, overlap, rows
from fp4ref.walk import Walk, load_problem, walk
from fp4ref.walk import picture as walk_timeline
from fp4ref.walk import report as walk_report
from fp4ref.walk.counts import machine_counts

PACKAGE = Path(fp4ref.__file__).parent


@pytest.fixture(scope="module")
def shown() -> Walk:
    return walk(load_problem())


def trace_of(run: fp4ref.Run | None) -> Trace:
    assert run is not None
    assert run.trace is not None
    return run.trace


def open_work(trace: Trace) -> list[set[tuple[int, str]]]:
    """SM and operation of what is in flight at each step, from issues and landings."""
    landing = {e.issued: e.step for e in trace if e.kind == "land"}
    found, now = [], {}
    for event in trace:
        if event.kind == "issue" and event.step in landing:
            now[landing[event.step]] = (event.sm, event.operation)
        found.append(set(now.values()))
        now.pop(event.step, None)
    return found


def test_the_tensor_core_works_while_tma_loads(shown: Walk) -> None:
    """Counted anew: from issue to landing, both included."""
    trace = trace_of(shown.run)
    steps = open_work(trace)
    both = [
        {op for _, op in now if op.startswith("cp.async.bulk")}
        and {op for _, op in now if op.startswith("tcgen05")}
        for now in steps
    ]
    assert sum(map(bool, both)) >= 0.3 * len(trace)
    one_sm = [
        any((sm, "tcgen05.mma") in now for sm, op in now if op.endswith(".load"))
        for now in steps
    ]
    assert overlap(trace) == sum(one_sm) >= 0.3 * len(trace)


def test_both_sms_work(shown: Walk) -> None:
    mmas = Counter(e.sm for e in trace_of(shown.run) if is_mma(e))
    assert set(mmas) == {0, 1}
    assert sum(mmas.values()) == 144
    assert all(60 <= count <= 84 for count in mmas.values())


def test_the_kernel_runs_beside_it_under_the_same_schedule(shown: Walk) -> None:
    theirs = trace_of(shown.kernel)
    assert theirs.meta["schedule"] == trace_of(shown.run).meta["schedule"] == "timed"
    assert shown.report.config["schedule"] == "timed"
    assert fp4ref.compare(trace_of(shown.run), theirs).ok
    assert overlap(theirs) >= 0.3 * len(theirs)


def test_nothing_overlaps_when_work_lands_at_issue() -> None:
    q = fp4ref.quantize(np.ones((128, 512), np.float32))
    assert overlap(trace_of(fp4ref.run(q, q, schedule="eager"))) == 0


def test_bars_of_one_row_never_meet(shown: Walk) -> None:
    for run in (shown.run, shown.kernel):
        trace = trace_of(run)
        row = rows(trace)
        taken: dict[tuple[object, ...], list[Any]] = {}
        for event in trace:
            if event.issued < 0:
                assert row[event.step] == 0
                continue
            own = event.operation in ("tcgen05.mma", "tcgen05.commit")
            band = event.operation if own else ""
            lane = (event.sm, event.agent, band, row[event.step])
            # A landing is in flight from its issue on; a wait is drawn where it waits.
            lands = event.kind == "land"
            since = trace.events[event.issued].end if lands else event.start
            for begin, end in taken.setdefault(lane, []):
                assert min(end, event.end) <= max(begin, since)
            taken[lane].append((since, event.end))


def bar(step: int, issued: int, operation: str) -> Event:
    kind = "land" if issued >= 0 else "issue"
    agent = "tcgen05" if issued >= 0 else "warp0"
    return Event(step, 0, (0, 0, 0), agent, operation, kind, {}, issued=issued)


def test_rows_of_a_few_bars() -> None:
    """Two MMAs in flight at once, a third after the first, a commit over all."""
    mma, commit = "tcgen05.mma", "tcgen05.commit"
    trace = Trace(
        [
            bar(0, -1, mma),
            bar(1, -1, mma),
            bar(2, -1, commit),
            bar(3, 0, mma),
            bar(4, -1, mma),
            bar(5, 1, mma),
            bar(6, 4, mma),
            bar(7, 2, commit),
        ]
    )
    assert rows(trace) == [0, 0, 0, 0, 0, 1, 0, 0]
    counts = in_flight(trace, 0, is_mma)
    assert counts == {0: 1, 1: 2, 2: 2, 3: 2, 4: 2, 5: 2, 6: 1}
    assert in_flight(trace, 1, is_mma) == {}
    assert overlap(trace) == 0


def open_brackets(text: str) -> int:
    bare = re.sub(r'"(?:\\.|[^"\\])*"', "", text).removesuffix("{")
    return sum((c in "([{") - (c in ")]}") for c in bare)


def test_every_statement_is_whole(shown: Walk) -> None:
    """Python lines of the emulator's events, CUDA lines of the kernel's."""
    for run, name in ((shown.run, "source"), (shown.kernel, "kernel_source")):
        places = {getattr(event, name) for event in trace_of(run)} - {""}
        assert len(places) > 60
        for place in places:
            text = line(place).text
            assert text, place
            assert text[-1] not in "([{,", (place, text)
            assert open_brackets(text) == 0, (place, text)
            if name == "source":
                ast.parse(text + " pass" * text.endswith(":"))


def test_statements_of_many_lines_are_joined() -> None:
    """Every simple statement of the kernel means the same when it is joined."""
    joined = 0
    for path in (PACKAGE / "gemm").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            compound = hasattr(node, "body") or isinstance(node, ast.Match)
            simple = isinstance(node, ast.stmt) and not compound
            if isinstance(node, ast.Match):
                place = f"{path.relative_to(PACKAGE.parent)}:{node.lineno}"
                assert line(place).text == f"match {ast.unparse(node.subject)}:"
            if not simple or node.lineno == node.end_lineno:
                continue
            for number in (node.lineno, node.end_lineno):
                text = line(f"{path.relative_to(PACKAGE.parent)}:{number}").text
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    continue  # a docstring
                assert ast.dump(ast.parse(text).body[0]) == ast.dump(node), text
                joined += 1
    assert joined > 100


@pytest.mark.parametrize(
    ("name", "line_with", "text"),
    [
        ("mma_warp.cuh", "accumulate || i > 0 || k_block > 0);", "for (u32 k_block"),
        ("epilogue_start.cuh", "smem_ld(storage.tmem_pointer()),", "return {storage,"),
        ("mma_warp.cuh", "if (peeks)", "if (peeks) mma."),
    ],
)
def test_a_cuda_statement_is_found_from_any_of_its_lines(
    name: str, line_with: str, text: str
) -> None:
    source = (PACKAGE.parent / "kernel" / "gemm" / name).read_text("utf-8")
    (number,) = [i for i, s in enumerate(source.splitlines(), 1) if line_with in s]
    found = line(f"{name}:{number}").text
    assert found.startswith(text)
    assert found.endswith(";")
    assert "//" not in found


def test_a_place_that_is_nowhere_has_no_text() -> None:
    assert line("fp4ref/no_such.py:3").text == ""
    assert line("cleanup.cuh:9999").text == ""
    assert line("").text == ""


@pytest.mark.parametrize("width", [80, 100])
def test_the_report_shows_it(shown: Walk, width: int) -> None:
    trace = trace_of(shown.run)
    out = io.StringIO()
    walk_report.render(shown.report, trace, Console(file=out, width=width))
    words = " ".join(out.getvalue().split())
    both = f"{both_of(trace):.0%} of the time"
    assert f"both loads and MMAs are in flight {both}" in words
    assert "schedule timed: when asynchronous work lands" in words
    lines = out.getvalue().splitlines()
    assert [row.strip() for row in lines if row.startswith("SM ")] == ["SM 0", "SM 1"]
    for sm in (0, 1):
        first = lines.index(next(row for row in lines if row.strip() == f"SM {sm}"))
        picture = {row[:25].rstrip(): row[27:] for row in lines[first + 1 : first + 16]}
        landed = sum(e.sm == sm and is_mma(e) for e in trace)
        assert picture["tensor core, MMAs"].endswith(f"{landed} landed")
        assert set(picture["tensor core, commits"][:36]) == {" ", "_"}
        assert "_" not in picture["tensor core, MMAs"]
        loads = picture["TMA loads"][:36]
        both = [
            a != " " != b
            for a, b in zip(loads, picture["tensor core, MMAs"], strict=False)
        ]
        assert sum(both) > 10
    assert shown.report.kernel is not None
    assert len(shown.report.kernel.pairs) == 8
    for pair in shown.report.kernel.pairs:
        for statement in pair.splitlines()[1:]:
            assert " ".join(statement.split()) in words


def test_more_sms_than_fit_are_said_to_be_left_out() -> None:
    q = fp4ref.quantize(np.ones((384, 256), np.float32))
    trace = trace_of(fp4ref.run(q, q, sms=3, schedule=0))
    out = io.StringIO()
    Console(file=out, width=200).print(walk_timeline.timeline(trace, 200))
    assert "SMs 0 and 1 of 3." in out.getvalue()
    assert "SM 2" not in out.getvalue()


Box = tuple[float, float, float, float]
SVG = "{http://www.w3.org/2000/svg}"


def bars_of(svg: str) -> dict[str, list[Box]]:
    """Left, top, right and bottom of each bar, by the row that its group names."""
    found: dict[str, list[Box]] = {}
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        if title is None or group.get("fill") is None:
            continue
        boxes = []
        for rect in group.iter(f"{SVG}rect"):
            x, y, w, h = (float(rect.get(k, "")) for k in ("x", "y", "width", "height"))
            boxes.append((x, y, x + w, y + h))
        found[str(title.text).partition(":")[0]] = boxes
    return found


def meet(a: Box, b: Box) -> bool:
    """Whether two boxes share more than the rounding of their numbers."""
    across = min(a[2], b[2]) - max(a[0], b[0])
    return across > 0.02 and min(a[3], b[3]) - max(a[1], b[1]) > 0.02


def hidden(bars: dict[str, list[Box]]) -> list[tuple[Box, Box]]:
    """MMAs, and the commits that meet them."""
    rows = {
        what: [box for name, row in bars.items() if name.endswith(what) for box in row]
        for what in ("MMAs", "commits")
    }
    assert (len(rows["MMAs"]), len(rows["commits"])) == (144, 42)
    return [(m, c) for m in rows["MMAs"] for c in rows["commits"] if meet(m, c)]


def test_no_mma_of_the_picture_is_under_a_commit(shown: Walk) -> None:
    svg = walk_report.to_svg(shown.report, trace_of(shown.run))
    bars = bars_of(svg)
    assert hidden(bars) == []
    for name, boxes in bars.items():
        if "warp" in name:
            continue
        for i, box in enumerate(boxes):
            assert not any(meet(box, other) for other in boxes[:i]), name
        if name.endswith("commits"):
            assert {round(b[3] - b[1], 1) for b in boxes} == {
                walk_timeline.COMMIT_HEIGHT
            }
    for sm in (0, 1):
        left = min(box[0] for box in bars[f"SM {sm} tensor core, MMAs"])
        assert any(box[2] > left for box in bars[f"SM {sm} TMA loads"])


def test_a_commit_over_an_mma_is_noticed(
    shown: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all bars of a unit in one row and one height, as it was."""
    monkeypatch.setattr(walk_timeline, "LINE_HEIGHT", 0.0)
    svg = walk_report.to_svg(shown.report, trace_of(shown.run))
    assert hidden(bars_of(svg))


def test_the_picture_of_the_readme_is_this_walk(shown: Walk) -> None:
    """If not: fp4ref walk --svg docs/walk.svg --force, then README's words on it."""
    root = Path(__file__).parents[2]
    svg = (root / "docs" / "walk.svg").read_text("utf-8")
    readme = " ".join((root / "README.md").read_text("utf-8").split())
    trace = trace_of(shown.run)
    both = f"both loads and MMAs are in flight {both_of(trace):.0%} of the time"
    words = " ".join("".join(ElementTree.fromstring(svg).itertext()).split())
    assert both in words
    assert both.replace(" are", "") in readme
    assert bars_of(svg) == bars_of(walk_report.to_svg(shown.report, trace))


def both_of(trace: Trace) -> float:
    """Count clock by clock, in tenths, how long both are in flight: the mean of SMs."""
    found = []
    for sm in (0, 1):
        mine = [e for e in trace if e.sm == sm and e.issued >= 0]
        last = int(10 * max(e.end or 0 for e in mine)) + 1
        flying = np.zeros((2, last), bool)
        for which, chosen in enumerate((is_load, is_mma)):
            for event in filter(chosen, mine):
                begin = trace.events[event.issued].end or 0
                flying[which, int(10 * begin) : int(10 * (event.end or 0))] = True
        mmas = [e for e in mine if is_mma(e)]
        first = int(10 * min(e.start or 0 for e in mmas))
        final = int(10 * max(e.end or 0 for e in mmas))
        found.append(flying[:, first:final].all(axis=0).mean())
    return float(np.mean(found))


def test_without_a_plan_a_warp_has_no_role(shown: Walk) -> None:
    """Nobody knows what the warps of another's kernel do; their bars are the same."""
    trace = trace_of(shown.run)
    bare = replace(trace, meta={})
    rows = list(walk_timeline.rows_of(trace, 0))
    assert [r.name for r in rows[:2]] == ["warp0 MMA", "warp1 tile scheduler"]
    others = list(walk_timeline.rows_of(bare, 0))
    assert [r.name for r in others[:2]] == ["warp0", "warp1"]
    assert [r.events for r in others] == [r.events for r in rows]
    with pytest.raises(TraceError, match="does not hold its kernel's plan"):
        machine_counts(bare)
