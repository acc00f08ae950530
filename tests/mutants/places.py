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
from dataclasses import replace
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


class Pool:
    """Every place of the four rooms in a tree, with the operators that change it."""

    def __init__(self, root: Path) -> None:
        self.texts = {
            str(path.relative_to(root)): path.read_text("utf-8")
            for room in ROOMS
            for path in sorted((root / "fp4ref" / room).rglob("*.py"))
        }
        self.places = [
            (file, operators)
            for file, text in self.texts.items()
            for operators in places(text).values()
        ]

    def drawn(self, seed: int | str) -> Iterator[Mutant]:
        """Yield mutants in a random order: first a place, then an operator."""
        random_of = random.Random(seed)
        for at in random_of.sample(range(len(self.places)), len(self.places)):
            file, operators = self.places[at]
            found = mutant(file, self.texts[file], *random_of.choice(operators))
            if found:
                yield found


def draw(root: Path, seed: int, count: int) -> list[Mutant]:
    """Draw mutants of the four rooms."""
    drawn: dict[str, Mutant] = {}
    for each in Pool(root).drawn(seed):
        drawn.setdefault(each.id, each)
        if len(drawn) == count:
            break
    return list(drawn.values())


def draw_instead(
    root: Path, seed: int, drawn: list[Mutant], lost: set[str]
) -> list[Mutant]:
    """Return the draw with another mutant of the same room for each lost one.

    Its seed is the draw's with the lost one's id, so the choice is nobody's.
    """
    pool, known = Pool(root), {each.id for each in drawn}
    found = []
    for each in drawn:
        if each.id in lost:
            others = pool.drawn(f"{seed} {each.id}")
            other = next(o for o in others if o.room == each.room and o.id not in known)
            known.add(other.id)
            each = replace(other, replaces=each.id)
        found.append(each)
    return found
