"""mbarrier_shapes: one barrier for each warp, used by its first lane.

%d0 holds answers of tests as bits; %d1 is the raw word, which can be seen after
``mbarrier.inval``, or phase and pending count of a returned state: PTX leaves the other
bits open, and on the card they differ between forms and runs. Forms of
``.shared::cluster`` also act on the other CTA of a pair.
"""

from __future__ import annotations

from collections.abc import Iterator

from probes.forms.shapes import Groups, Shape, Shapes

_BEGIN = (
    ".shared .align 8 .b64 bars[32]; .reg .b32 %w, %one, %n, %s; .reg .b64 %g, %state; "
    ".reg .pred %first, %p; shr.u32 %w, %thread, 5; mov.u32 %one, bars; "
    "mad.lo.u32 %w, %w, 8, %one; cvt.u64.u32 %g, %w; cvta.shared.u64 %g, %g; "
    "mov.u32 %one, %laneid; setp.eq.u32 %first, %one, 0; and.b32 %n, %a, 0xfffff; "
    "mov.b32 %d0, 0; mov.b64 %d1, 0; "
)
_INIT = "mbarrier.init.shared.b64 [%w], 2; "
_ARRIVE = "mbarrier.arrive.shared.b64 %state, [%w]; "
_EXPECT = "shr.u32 %n, %n, 1; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%w], %n; "
_SHOWN = "shr.u64 %d1, %state, 43; "
_WORD = "mbarrier.inval.shared.b64 [%w]; ld.shared.b64 %d1, [%w]; "
_SYNC = "barrier.cluster.arrive; barrier.cluster.wait; "


def _test(bit: int, parity: int) -> str:
    test = f"mbarrier.test_wait.parity.shared.b64 %p, [%w], {parity}; "
    return f"{test}selp.b32 %s, {bit}, 0, %p; or.b32 %d0, %d0, %s; "


_TESTS = _test(1, 0) + _test(2, 1)
_TESTS_LATER = _test(4, 0) + _test(8, 1)


def _at(groups: Groups) -> str:
    return "%w" if groups.get("space") else "%g"


def _alone(body: str, suffix: str = "") -> Shape:
    whole = f"{_BEGIN}@!%first bra SKIP; {body}SKIP:"
    return Shape(whole, ("warp",), (32, 64), suffix=suffix)


def _paired(operation: str, rest: str) -> Shape:
    """`operation` acts on the other CTA's barrier at %other, `rest` on one's own."""
    there = (
        ".reg .b32 %other; mov.u32 %other, %cluster_ctarank; "
        "xor.b32 %other, %other, 1; "
        f"mapa.shared::cluster.u32 %other, %w, %other; @%first {_INIT}"
        f"fence.mbarrier_init.release.cluster; {_SYNC}"
    )
    body = f"{_BEGIN}{there}@%first {operation}{_SYNC}@!%first bra SKIP; {rest}SKIP:"
    return Shape(body, ("warp",), (32, 64), suffix="remote", cluster=2)


def _together(operation: str) -> Shape:
    """All lanes of a warp at once: %d1 is from each lane's state, %d2 the word."""
    body = (
        f"{_BEGIN}mov.b64 %d2, 0; @%first mbarrier.init.shared.b64 [%w], 33; "
        f"bar.warp.sync 0xffffffff; {operation}{_SHOWN}bar.warp.sync 0xffffffff; "
        f"@!%first bra SKIP; {_TESTS}mbarrier.inval.shared.b64 [%w]; "
        "ld.shared.b64 %d2, [%w]; SKIP:"
    )
    return Shape(body, ("warp",), (32, 64, 64), suffix="by all lanes")


def _init(opcode: str, groups: Groups) -> Iterator[Shape]:
    # Counts from 1 to 2^20 - 1.
    count = "max.u32 %n, %n, 1; "
    yield _alone(f"{count}{opcode} [{_at(groups)}], %n; {_TESTS}{_ARRIVE}{_WORD}")


def _invalidate(opcode: str, groups: Groups) -> Iterator[Shape]:
    word = f"{opcode} [{_at(groups)}]; ld.shared.b64 %d1, [%w]; "
    yield _alone(f"{_INIT}{_ARRIVE}{word}")


def _arrive(opcode: str, groups: Groups) -> Iterator[Shape]:
    at = _at(groups)
    rest = f"{_TESTS}{_ARRIVE}{_TESTS_LATER}{_WORD}"
    if groups["expects"]:
        yield _alone(f"{_INIT}{opcode} _, [{at}], %n; {rest}")
    else:
        yield _alone(f"{_INIT}{opcode} _, [{at}]; {rest}")
        whole = f"{opcode} _, [{at}], 2; {_TESTS}{_WORD}"
        yield _alone(f"{_INIT}{whole}", "with a count")
    if "cluster" not in groups["space"]:
        last = ", %n" if groups["expects"] else ""
        body = f"{_INIT}{_EXPECT}{opcode} %state, [{at}]{last}; {_SHOWN}{_TESTS}"
        yield _alone(f"{body}mbarrier.inval.shared.b64 [%w]; ", "the state")
        yield _together(
            f"{opcode} %state, [{at}]{', %one' if groups['expects'] else ''}; "
        )
    else:
        last = ", %n" if groups["expects"] else ""
        yield _paired(f"{opcode} _, [%other]{last}; ", rest)


def _transaction(opcode: str, groups: Groups) -> Iterator[Shape]:
    """Bytes that are pending keep the phase from its end."""
    rest = f"{_ARRIVE}{_ARRIVE}{_TESTS}{_WORD}"
    yield _alone(f"{_INIT}{opcode} [{_at(groups)}], %n; {rest}")
    if "cluster" in groups["space"]:
        yield _paired(f"{opcode} [%other], %n; ", rest)


def _wait(opcode: str, groups: Groups) -> Iterator[Shape]:
    """Ask about the phase that has ended, and with ``test_wait`` about the next."""
    operand = "0" if groups["parity"] else "%state"
    ask = f"{opcode} %p, [{_at(groups)}], {{}}; selp.b32 %s, {{}}, 0, %p; "
    ask += "or.b32 %d0, %d0, %s; "
    body = f"{_INIT}{_ARRIVE}{_ARRIVE}{ask.format(operand, 1)}"
    if "test" in opcode:
        body += f"{_ARRIVE}{ask.format('1' if groups['parity'] else operand, 2)}"
    yield _alone(body + _WORD)
    if "try" in opcode:
        timed = ask.format(f"{operand}, 1000", 1)
        yield _alone(f"{_INIT}{_ARRIVE}{_ARRIVE}{timed}{_WORD}", "with a time")


def _pending(opcode: str, groups: Groups) -> Iterator[Shape]:
    count = "max.u32 %n, %n, 2; mbarrier.init.shared.b64 [%w], %n; "
    yield _alone(f"{count}{_ARRIVE}{_ARRIVE}{opcode} %d0, %state; {_WORD}")


SHAPES: dict[str, Shapes] = {
    "mbarriers.init": _init,
    "mbarriers.inval": _invalidate,
    "mbarriers.arrive": _arrive,
    "mbarriers.transaction": _transaction,
    "mbarriers.wait": _wait,
    "mbarriers.pending_count": _pending,
}
"""By maker."""
