"""blackwell_shapes: statements that only Blackwell has, for the compiler to refuse.

They compute nothing that could be compared: they only show that sm_90 lacks the form.
"""

from __future__ import annotations

from collections.abc import Iterator

from probes.forms.shapes import Groups, Shape, Shapes

_REGISTERS = (
    ".reg .b16 %half; .reg .b32 %r; .reg .b64 %d; .reg .pred %p; .reg .b128 %q; "
    "mov.b32 %r, %a; mov.b64 %d, 0; mov.b16 %half, 1; setp.eq.s32 %p, %a, 0; "
    "mov.b128 %q, {%d, %d}; "
)
_PER_REPEAT = {"16x128b": 2, "16x256b": 4}


def _statement(opcode: str, operands: str) -> Shape:
    return Shape(f"{_REGISTERS}{opcode} {operands};", ("b32",), ())


def _fixed(operands: str) -> Shapes:
    def shapes(opcode: str, groups: Groups) -> Iterator[Shape]:
        yield _statement(opcode, operands)

    return shapes


def _first_ctaid(opcode: str, groups: Groups) -> Iterator[Shape]:
    four = groups["axis"] == ".v4"
    yield _statement(opcode, "{%r, %r, %r, _}, %q" if four else "%r, %q")


def _tensor_memory(opcode: str, groups: Groups) -> Iterator[Shape]:
    count = int(groups["repeat"]) * _PER_REPEAT.get(groups["shape"], 1)
    registers = f"{{{', '.join(f'%y{i}' for i in range(count))}}}"
    operands = [registers, "[%r]"] if ".ld." in opcode else ["[%r]", registers]
    if groups["shape"] == "16x32bx2":
        operands.insert(operands.index("[%r]") + 1, "16")
    declare = f".reg .b32 %y<{count}>; "
    declare += "".join(f"mov.b32 %y{i}, %a; " for i in range(count))
    body = f"{_REGISTERS}{declare}{opcode} {', '.join(operands)};"
    yield Shape(body, ("b32",), ())


def _alloc(opcode: str, groups: Groups) -> Iterator[Shape]:
    yield _statement(opcode, f"[{'%r' if groups['space'] else '%d'}], 32")


def _commit(opcode: str, groups: Groups) -> Iterator[Shape]:
    at = "%r" if groups["space"] else "%d"
    yield _statement(opcode, f"[{at}], %half" if groups["multicast"] else f"[{at}]")


def _cancel(opcode: str, groups: Groups) -> Iterator[Shape]:
    at = "%r" if groups["space"] else "%d"
    yield _statement(opcode, f"[{at}], [{at}]")


SHAPES: dict[str, Shapes] = {
    "clc.try_cancel": _cancel,
    "clc.is_canceled": _fixed("%p, %q"),
    "clc.get_first_ctaid": _first_ctaid,
    "mma_unscaled.mma": _fixed("[%r], %d, %d, %r, %p"),
    "tcgen05.mma": _fixed("[%r], %d, %d, %r, [%r], [%r], %p"),
    "tcgen05.alloc": _alloc,
    "tcgen05.dealloc": _fixed("%r, 32"),
    "tcgen05.relinquish": _fixed(""),
    "tcgen05.load": _tensor_memory,
    "tcgen05.store": _tensor_memory,
    "tcgen05.wait_ld": _fixed(""),
    "tcgen05.wait_st": _fixed(""),
    "tcgen05.fence_before": _fixed(""),
    "tcgen05.fence_after": _fixed(""),
    "tcgen05.copy": _fixed("[%r], %d"),
    "tcgen05.commit": _commit,
}
"""By maker."""
