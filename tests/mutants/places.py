"""places: where the code of four rooms can be changed, and a seeded draw of mutants.

Cosmic Ray's operators change the text. A place is drawn first, each with the same
chance, then one of the operators that can change it: otherwise the eleven operators of
one plus sign would count for more than a whole loop. Annotations are no places, as
nothing evaluates them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

import parso
from cosmic_ray.ast import ast_nodes
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names
from drawn import Mutant, lines_at
from parso.python.tree import Function, Param

ROOMS = ("hardware", "layout", "numerics", "ptx")
Position = tuple[tuple[int, int], tuple[int, int]]


def _operators() -> dict[str, Operator]:
    """Cosmic Ray's, without those that need an argument or change nothing."""
    found = {name: get_operator(name) for name in sorted(operator_names())}
    return {
        name.partition("/")[2]: each()
        for name, each in found.items()
        if not each.arguments() and not name.endswith("NoOp")
    }


def _annotations(tree: parso.tree.BaseNode) -> Iterator[Position]:
    for node in ast_nodes(tree):
        found = None
        if isinstance(node, Function | Param):
            found = node.annotation
        elif node.type == "annassign":
            found = node.children[1]
        if found is not None:
            yield found.start_pos, found.end_pos


def places(text: str) -> dict[Position, list[tuple[str, int]]]:
    """Return the operators, with their occurrence, that can change each place."""
    tree = parso.parse(text)
    notes = list(_annotations(tree))
    found: dict[Position, list[tuple[str, int]]] = defaultdict(list)
    nodes = list(ast_nodes(tree))
    for name, operator in _operators().items():
        count = 0
        for node in nodes:
            for place in operator.mutation_positions(node):
                if not any(a <= place[0] and place[1] <= z for a, z in notes):
                    found[place].append((name, count))
                count += 1
    return dict(sorted(found.items()))


def mutant(file: str, text: str, operator: str, occurrence: int) -> Mutant | None:
    """Return one change as lines; None where the operator leaves the text alone."""
    other = mutate_code(text, _operators()[operator], occurrence)
    if other is None or other == text:
        return None
    before, after = text.splitlines(True), other.splitlines(True)
    spans = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    differing = [span for span in spans if span[0] != "equal"]
    i, j = differing[0][1], differing[-1][2]
    k, m = differing[0][3], differing[-1][4]
    old, new = "".join(before[i:j]), "".join(after[k:m])
    start = len("".join(before[:i]))
    return Mutant(file, old, new, lines_at(text, old).index(start), i + 1, operator)


def draw(root: Path, seed: int, count: int) -> list[Mutant]:
    """Draw mutants: first a place of the four rooms, then an operator."""
    texts = {
        str(path.relative_to(root)): path.read_text("utf-8")
        for room in ROOMS
        for path in sorted((root / "fp4ref" / room).rglob("*.py"))
    }
    pool = [
        (file, operators)
        for file, text in texts.items()
        for operators in places(text).values()
    ]
    random_of = random.Random(seed)
    drawn: dict[str, Mutant] = {}
    for at in random_of.sample(range(len(pool)), len(pool)):
        if len(drawn) == count:
            break
        file, operators = pool[at]
        found = mutant(file, texts[file], *random_of.choice(operators))
        if found:
            drawn.setdefault(found.id, found)
    return list(drawn.values())
