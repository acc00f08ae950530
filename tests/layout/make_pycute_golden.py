"""Make pycute_golden.json: random cases of the layout algebra, answered by pycute.

Run it where `pip install --no-deps nvidia-cutlass==4.2.0.0` has put pycute:

    python tests/layout/make_pycute_golden.py

A case is kept as "answer" when pycute's result obeys the law of the operation, and as
"refuse" when pycute returns a layout that does not: there fp4ref raises LayoutError or
finds a layout that does. Where pycute itself raises, there is nothing to record.
"""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).with_name("pycute_golden.json")
CASES_PER_OPERATION = 120
REFUSALS_PER_OPERATION = 15


def random_layout(rng: random.Random, max_leaves: int = 4) -> tuple[Any, Any]:
    """Draw (shape, stride): dense in random order, padded, broadcast or wild."""
    leaves = rng.randint(1, max_leaves)
    shape = [rng.choice([1, 2, 2, 3, 4, 4, 6, 8]) for _ in range(leaves)]
    kind = rng.choice(["dense", "dense", "dense", "padded", "broadcast", "wild"])
    stride, reach = [0] * leaves, 1
    for leaf in rng.sample(range(leaves), leaves):
        stride[leaf] = reach
        reach *= shape[leaf]
        if kind == "padded" and rng.random() < 0.5:
            reach *= rng.choice([2, 3])
    if kind == "broadcast":
        stride[rng.randrange(leaves)] = 0
    if kind == "wild":
        stride = [rng.randint(0, 9) for _ in shape]
    if leaves == 1:
        return shape[0], stride[0]
    if leaves > 2 and rng.random() < 0.5:
        cut = rng.randint(1, leaves - 1)
        return _nest(shape, cut), _nest(stride, cut)
    return tuple(shape), tuple(stride)


def _nest(t: list[int], cut: int) -> Any:
    left, right = t[:cut], t[cut:]
    return (
        tuple(left) if len(left) > 1 else left[0],
        tuple(right) if len(right) > 1 else right[0],
    )


def offsets(layout: Any) -> list[int]:
    return [layout(i) for i in range(layout.size())]


def make_cases(seed: int, per_operation: int, refusals: int) -> list[dict[str, Any]]:
    import pycute

    rng = random.Random(seed)
    binary = ["composition", "logical_divide", "zipped_divide", "tiled_divide"]
    unary = ["coalesce", "right_inverse", "left_inverse"]
    cases: list[dict[str, Any]] = []
    for op in [*unary, "complement", *binary]:
        left = {"answer": per_operation, "refuse": refusals}
        for _ in range(200 * per_operation):
            if not any(left.values()):
                break
            a = random_layout(rng)
            arguments: list[Any] = [a]
            operands = [pycute.Layout(*a)]
            if op == "complement":
                arguments.append(rng.choice([1, 24, 48, 64, 96]))
                operands.append(arguments[1])
            elif op in binary:
                b = random_layout(rng, 2)
                arguments.append(b)
                operands.append(pycute.Layout(*b))
                if operands[1].cosize() > operands[0].size():
                    continue
            try:
                result = getattr(pycute, op)(*operands)
            except (AssertionError, ZeroDivisionError, TypeError, IndexError):
                continue
            kind = "answer" if obeys(op, operands, result) else "refuse"
            if left[kind]:
                left[kind] -= 1
                cases.append(
                    {
                        "op": op,
                        "arguments": arguments,
                        kind: [result.shape, result.stride],
                    }
                )
    return cases


def obeys(op: str, operands: list[Any], result: Any) -> bool:
    """Check pycute's result against the law of the operation."""
    a, image = operands[0], offsets(result)
    if op == "coalesce":
        return image == offsets(a)
    if op == "right_inverse":
        return [a(r) for r in image] == list(range(len(image)))
    if op == "left_inverse":
        return [result(a(i)) for i in range(a.size())] == list(range(a.size()))
    if op == "composition":
        return image == [a(b) for b in offsets(operands[1])]
    if op == "complement":
        ascending = all(x < y for x, y in pairwise(image))
        sums = [x + y for x in image for y in set(offsets(a))]
        covers = set(range(max(operands[1], a.cosize()))) <= set(sums)
        return ascending and covers and len(sums) == len(set(sums))
    return sorted(image) == sorted(offsets(a))


def main() -> None:
    from importlib.metadata import version

    cases = make_cases(20, CASES_PER_OPERATION, REFUSALS_PER_OPERATION)
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    source = json.dumps(f"pycute of nvidia-cutlass {version('nvidia-cutlass')}")
    GOLDEN.write_text(f'{{"source": {source}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
