"""touching: which tests of a room execute which mutant's statement, and their costs.

``python touching.py ROOM TREE FILE`` runs a folder of tests once in a copy of the
tree, where a call then stands before the statement of each mutant. It writes the
``cost`` of each test, in seconds of CPU time, and the tests that have ``touched`` each
mutant. To watch every line of four rooms instead takes many times as long.

What only an import executes, constants and decorators, has the call in every function
of its file. What Numba compiles can have none: then every test of the room may see it.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drawn import Mutant, mutants

CALL = "_touched"


def _is_compiled(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any("njit" in ast.unparse(each) for each in decorators)


def _first(node: ast.FunctionDef) -> ast.stmt:
    """The first statement after the docstring."""
    body = node.body
    if ast.get_docstring(node) is not None and len(body) > 1:
        return body[1]
    return body[0]


def _top(node: ast.stmt) -> int:
    """Its first line, decorators too."""
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _around(
    node: ast.AST, line: int, function: ast.FunctionDef | None = None
) -> Iterator[tuple[ast.stmt, ast.FunctionDef | None]]:
    """Statements that contain a line, outermost first, each with its function."""
    for child in ast.iter_child_nodes(node):
        inside = function
        if isinstance(child, ast.stmt):
            if not _top(child) <= line <= (child.end_lineno or 0):
                continue
            yield child, function
            if isinstance(child, ast.FunctionDef) and line >= _first(child).lineno:
                inside = child
        yield from _around(child, line, inside)


def spots(text: str, line: int) -> list[ast.stmt]:
    """Return the statements before which a call shows that a line is executed."""
    tree, lines = ast.parse(text), text.splitlines()
    for statement, function in reversed(list(_around(tree, line))):
        if function is None:
            break
        if _is_compiled(function):
            return []
        begun = lines[_top(statement) - 1][: statement.col_offset].strip()
        if not begun and not lines[statement.lineno - 1].lstrip().startswith("elif"):
            return [statement]
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and not _is_compiled(node)
    ]
    heads = [f for f in functions if _top(f) <= line < _first(f).lineno]
    return [_first(f) for f in heads or functions]


def watched(text: str, of_file: list[Mutant]) -> str:
    """Return a file's text with a call for each mutant."""
    calls: dict[int, set[str]] = defaultdict(set)
    for each in of_file:
        first = each.first_line(text)
        # A change may begin with the empty line before a decorator.
        blank = len(each.old) - len(each.old.lstrip("\n"))
        for statement in spots(text, first + blank):
            indent = " " * statement.col_offset
            calls[_top(statement)].add(f"{indent}{CALL}({each.id!r})\n")
    lines = text.splitlines(True)
    for line in sorted(calls, reverse=True):
        lines[line - 1 : line - 1] = sorted(calls[line])
    return "".join(lines)


class Touches:
    """A pytest plugin: what each test that passes touches, and its seconds."""

    def __init__(self) -> None:
        self.cost: dict[str, float] = {}
        self.touched: dict[str, list[str]] = defaultdict(list)
        self.now: set[str] = set()
        self.failed: set[str] = set()
        setattr(builtins, CALL, self.now.add)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Count the test with its fixtures."""
        self.now.clear()
        before = time.process_time()
        result = yield
        if item.nodeid not in self.failed:
            self.cost[item.nodeid] = round(time.process_time() - before, 3)
            for each in self.now:
                self.touched[each].append(item.nodeid)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out what does not pass here: it shows nothing of a mutant."""
        if not report.passed:
            self.failed.add(report.nodeid)


def touched(room: str, tree: Path) -> dict[str, Any]:
    """Write the calls into a copy of the tree, and run a room's tests there."""
    by_file: dict[str, list[Mutant]] = defaultdict(list)
    for each in mutants():
        if each.is_in(tree):
            by_file[each.file].append(each)
    for file, of_file in by_file.items():
        text = watched((tree / file).read_text("utf-8"), of_file)
        (tree / file).write_text(text, encoding="utf-8")
    # For the processes that tests start.
    start = f"import builtins\nbuiltins.{CALL} = lambda _: None\n"
    (tree / "sitecustomize.py").write_text(start, encoding="utf-8")
    plugin = Touches()
    options = ["-q", "-n", "0", "-p", "no:cacheprovider"]
    pytest.main([*options, str(tree / "tests" / room)], plugins=[plugin])
    return {"cost": plugin.cost, "touched": plugin.touched}


if __name__ == "__main__":
    room, where, file = sys.argv[1:]
    tree = Path(where).resolve()
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    sys.dont_write_bytecode = True
    Path(file).write_text(json.dumps(touched(room, tree)), encoding="utf-8")
