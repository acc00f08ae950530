"""lane_shapes: instructions by which lanes see each other, and 8 x 8 matrices."""

from __future__ import annotations

from collections.abc import Iterator

from probes.forms.shapes import Groups, Shape, Shapes

_ALL = "0xffffffff"
_BRANCH = (
    ".reg .pred %inside; .reg .b32 %lane; mov.u32 %lane, %laneid; "
    "setp.lt.u32 %inside, %lane, 13; mov.b32 %d0, 77; mov.b32 %d1, 77; "
    "@!%inside bra SKIP; "
)
_MEMBERS = "0x1fff"
_EVEN = (
    ".reg .pred %inside; .reg .b32 %lane; mov.u32 %lane, %laneid; "
    "and.b32 %lane, %lane, 1; setp.eq.u32 %inside, %lane, 0; mov.b32 %d0, 77; "
    "mov.b32 %d1, 77; @!%inside bra SKIP; "
)


def _shuffle(opcode: str, groups: Groups) -> Iterator[Shape]:
    valid = "selp.b32 %d1, 1, 0, %p;"
    body = f".reg .pred %p; {opcode} %d0|%p, %a, %b, %c, {_ALL}; {valid}"
    yield Shape(body, ("b32", "by", "control"), (32, 32))
    last = "0" if groups["mode"] == "up" else "0x1f"
    body = f"{opcode} %d0, %a, 5, {last}, {_ALL};"
    yield Shape(body, ("b32",), (32,), suffix="immediates")
    # Lane i and lane i +- 2 are both even: no value comes from outside the mask.
    offset = "%lane" if groups["mode"] == "idx" else "2"
    body = f".reg .pred %p; {_EVEN}{opcode} %d0|%p, %a, {offset}, {last}, 0x55555555; "
    yield Shape(body + f"{valid} SKIP:", ("b32",), (32, 32), suffix="in a branch")


def _vote(opcode: str, groups: Groups) -> Iterator[Shape]:
    # The threshold belongs to the warp: some have no vote, some all.
    vote = (
        ".reg .pred %p, %q; .reg .b32 %x, %y; and.b32 %x, %a, 31; shr.u32 %y, %b, 26; "
        "sub.u32 %y, %y, 16; setp.lt.s32 %p, %x, %y; "
    )
    take = f"{opcode} %q, %p, {{}}; selp.b32 %d0, 1, 0, %q;"
    if groups["mode"] == "ballot":
        take = f"{opcode} %d0, %p, {{}};"
    yield Shape(vote + take.format(_ALL), ("b32", "warp"), (32,))
    body = f"{vote}{_BRANCH}{take.format(_MEMBERS)} SKIP:"
    yield Shape(body, ("b32", "warp"), (32, 32), suffix="in a branch")


def _barrier(opcode: str, groups: Groups) -> Iterator[Shape]:
    # The threshold belongs to the CTA: some have no vote, some all.
    vote = (
        ".reg .pred %p, %q; .reg .b32 %x, %y, %bar; and.b32 %x, %a, 31; "
        "rem.u32 %y, %cta, 40; sub.u32 %y, %y, 4; setp.lt.s32 %p, %x, %y; "
    )
    target, result = "%q", "selp.b32 %d0, 1, 0, %q;"
    if "popc" in opcode:
        target, result = "%d0", ""
    yield Shape(f"{vote}{opcode} {target}, 0, %p; {result}", ("b32",), (32,))
    halves = "shr.u32 %bar, %thread, 9; add.u32 %bar, %bar, 3; "
    body = f"{vote}{halves}{opcode} {target}, %bar, 512, !%p; {result}"
    yield Shape(body, ("b32",), (32,), suffix="of half the CTA")


def _match(opcode: str, groups: Groups) -> Iterator[Shape]:
    kind = groups["kind"]
    inputs = (f"few{kind[1:]}", "warp")
    # In half of the warps all lanes agree.
    body = f".reg .b{kind[1:]} %x; .reg .pred %p, %q; setp.lt.s32 %q, %b, 0; "
    body += f"selp.b{kind[1:]} %x, %a, 7, %q; mov.b32 %d1, 0; "
    take = f"{opcode} %d0, %x, {{}};"
    if "all" in opcode:
        take = f"{opcode} %d0|%p, %x, {{}}; selp.b32 %d1, 1, 0, %p;"
    yield Shape(body + take.format(_ALL), inputs, (32, 32))
    branch = f"{body}{_BRANCH}{take.format(_MEMBERS)} SKIP:"
    yield Shape(branch, inputs, (32, 32), suffix="in a branch")


def _reduce(opcode: str, groups: Groups) -> Iterator[Shape]:
    yield Shape(f"{opcode} %d0, %a, {_ALL};", ("b32",), (32,))
    body = f"{_BRANCH}{opcode} %d0, %a, {_MEMBERS}; SKIP:"
    yield Shape(body, ("b32",), (32, 32), suffix="in a branch")


def _elect(opcode: str, groups: Groups) -> Iterator[Shape]:
    elected = "selp.b32 %d1, 1, 0, %p;"
    body = f".reg .pred %p; {opcode} %d0|%p, {_ALL}; {elected}"
    yield Shape(body, ("b32",), (32, 32))
    body = f".reg .pred %p; {_EVEN}{opcode} %d0|%p, 0x55555555; {elected} SKIP:"
    yield Shape(body, ("b32",), (32, 32), suffix="in a branch")


def _active(opcode: str, groups: Groups) -> Iterator[Shape]:
    yield Shape(f"{opcode} %d0;", ("b32",), (32,))
    yield Shape(
        f"{_BRANCH}{opcode} %d0; SKIP:", ("b32",), (32, 32), suffix="in a branch"
    )


_ROWS = (
    ".shared .align 128 .b8 rows[16384]; .reg .b32 %w, %y<4>; mov.u32 %w, rows; "
    "mad.lo.u32 %w, %thread, 16, %w; "
)
"""Each lane has 16 bytes: row `lane % 8` of matrix `lane / 8`."""
_FOUR = "{%y0, %y1, %y2, %y3}"


def _matrix(opcode: str, groups: Groups) -> Iterator[Shape]:
    count = int(groups["count"])
    registers = f"{{{', '.join(f'%y{i}' for i in range(count))}}}"
    at, convert = "%w", ""
    if not groups["space"]:
        at = "%g"
        convert = ".reg .b64 %g; cvt.u64.u32 %g, %w; cvta.shared.u64 %g, %g; "
    lines = f"ld.global.v4.b32 {_FOUR}, [%from]; "
    out = "".join(f"mov.b32 %d{i}, %y{i}; " for i in range(count))
    if opcode.startswith("ld"):
        body = f"{_ROWS}{convert}{lines}st.shared.v4.b32 [%w], {_FOUR}; "
        body += f"bar.warp.sync {_ALL}; {opcode} {registers}, [{at}]; {out}"
        yield Shape(body, ("x128",), (32,) * count)
        return
    body = f"{_ROWS}{convert}{lines}st.shared.v4.b32 [%w], {{0, 0, 0, 0}}; "
    body += f"bar.warp.sync {_ALL}; {opcode} [{at}], {registers}; "
    body += f"bar.warp.sync {_ALL}; ld.shared.v4.b32 {_FOUR}, [%w]; "
    yield Shape(f"{body}st.global.v4.b32 [%to], {_FOUR};", ("x128",), (), memory=16)


SHAPES: dict[str, Shapes] = {
    "lanes.shuffle": _shuffle,
    "lanes.vote": _vote,
    "barriers.reduce": _barrier,
    "lanes.match": _match,
    "lanes.reduce": _reduce,
    "lanes.elect": _elect,
    "lanes.activemask": _active,
    "matrices.load_matrix": _matrix,
    "matrices.store_matrix": _matrix,
}
"""By maker."""
