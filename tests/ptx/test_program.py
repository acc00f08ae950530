"""Where the lanes of a branch meet again, on hand-made control-flow graphs."""

from __future__ import annotations

import numpy as np
import pytest
from on_lanes import kernel

from fp4ref.errors import InputError
from fp4ref.ptx import Program, parse
from fp4ref.ptx.text.program import immediate_post_dominators


def by_removal(edges: list[list[int]]) -> list[int | None]:
    """Post-dominators by their definition: without it, the end is out of reach."""
    end = len(edges) - 1

    def reaches(start: int, without: int) -> bool:
        seen, stack = {without}, [start]
        while stack:
            b = stack.pop()
            if b == end:
                return True
            if b not in seen:
                seen.add(b)
                stack.extend(s for s in edges[b] if s not in seen)
        return False

    found: list[int | None] = []
    for b in range(len(edges)):
        if not reaches(b, -1):
            found.append(None)
            continue
        later = [
            p for p in range(len(edges))
            if p != b and reaches(b, -1) and (p == end or not reaches(b, p))
        ]  # fmt: skip
        # The nearest one is post-dominated by all the others.
        nearest = [
            p for p in later if all(q in (p, end) or not reaches(p, q) for q in later)
        ]
        found.append(nearest[0] if nearest else end)
    return found


GRAPHS = {
    "diamond": ([[1, 2], [3], [3], [4], []], [3, 3, 3, 4, 4]),
    "if": ([[1, 2], [2], [3], []], [2, 2, 3, 3]),
    "loop": ([[1], [1, 2], [3], []], [1, 2, 3, 3]),
    "loop with break": ([[1, 3], [2, 3], [0], [4], []], [3, 3, 0, 4, 4]),
    "no way out": ([[1, 2], [1], [3], []], [2, None, 3, 3]),
    "two loops": ([[1], [2], [1, 3], [0, 4], [5], []], [1, 2, 3, 4, 5, 5]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_post_dominators_of_small_graphs(name: str) -> None:
    edges, want = GRAPHS[name]
    assert immediate_post_dominators(edges) == want


def test_post_dominators_of_random_graphs_follow_the_definition() -> None:
    rng = np.random.default_rng(1)
    for _ in range(150):
        count = int(rng.integers(2, 10))
        edges = [
            sorted({int(x) for x in rng.integers(0, count, rng.integers(1, 3))})
            for _ in range(count - 1)
        ]
        edges.append([])
        assert immediate_post_dominators(edges) == by_removal(edges), edges


def meets(body: str) -> dict[int, int]:
    return Program.of(parse(kernel(body))).reconvergence


def test_if_else_meets_behind_both_sides() -> None:
    assert meets("@%p1 bra A; nanosleep.u32 1; bra B; A: nanosleep.u32 2; B:") == {0: 4}


def test_a_loop_meets_behind_its_backward_branch() -> None:
    assert meets("L: nanosleep.u32 1; @%p1 bra L; nanosleep.u32 2;") == {1: 2}


@pytest.mark.parametrize("way_out", ["@%p2 ret;", "@%p2 exit;", "@%p2 bra OUT;"])
def test_an_early_exit_does_not_move_the_meeting_point(way_out: str) -> None:
    found = meets(
        f"@%p1 bra A; {way_out} bra B; A: nanosleep.u32 2; B: nanosleep.u32 3; OUT:"
    )
    assert found[0] == 4


def test_code_with_its_own_exit_still_meets_inside() -> None:
    found = meets(
        "@%p1 bra A; @%p2 bra X; nanosleep.u32 1; X: nanosleep.u32 2; ret;"
        "A: nanosleep.u32 3;"
    )
    assert found[1] == 3
    assert found[0] == 5


def test_parameters_are_laid_out_by_their_alignment() -> None:
    text = kernel("").replace(
        "k()", "k(.param .u32 a, .param .u64 .ptr .global .align 1 b, .param .u8 c,"
        ".param .align 64 .b8 d[128], .param .f32 e)",
    )  # fmt: skip
    program = Program.of(parse(text))
    assert program.param_offsets == {"a": 0, "b": 8, "c": 16, "d": 64, "e": 192}
    assert program.param_nbytes == 196


def test_entries_are_found_by_name() -> None:
    module = parse(kernel("") + kernel("").split("\n", 3)[3].replace(" k(", " other("))
    assert Program.of(module, "other").entry.name == "other"
    with pytest.raises(InputError, match="this module has k, other"):
        Program.of(module)
    with pytest.raises(InputError, match="entry 'x'"):
        Program.of(module, "x")


def test_source_lines_come_from_loc() -> None:
    text = kernel(".loc 1 42 3, function_name $L__info+4, inlined_at 1 7 2\n ret;")
    program = Program.of(parse(text + '.file 1 "/home/me/gemm.cu", 1, 2\n'))
    assert program.source(0) == "gemm.cu:42"
