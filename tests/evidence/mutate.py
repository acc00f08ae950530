"""mutate: break one rule of the fidelity table, and run the test that should see it.

``python tests/evidence/mutate.py id ...`` says of each row what its test did; without
ids of all rows; with ``-`` of the rows that it reads, as JSON, from its input.

A mutation replaces text inside one function. The function object stays, only its
compiled code changes, so every module that imported it is changed too.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import importlib
import inspect
import json
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import _lru_cache_wrapper, cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from numba.core.dispatcher import Dispatcher

from fp4ref.errors import Fp4refError
from fp4ref.evidence.fidelity import RULES, Mutation, Rule

ROOT = Path(__file__).parents[2]
SEEN = (AssertionError, Fp4refError, pytest.fail.Exception)
"""What shows a wrong rule; any other exception is a slip of the mutation itself."""

KEPT = (
    *("fp4ref.cutlass", "fp4ref.ptx.instructions.approximate"),
    "fp4ref.numerics.reciprocal",
)
"""Modules whose caches hold parsed programs and the card's tables, and no result."""

# -- the code ----------------------------------------------------------------------


def _function(code: str) -> tuple[ModuleType, Any]:
    """Return the module and the plain function behind decorators."""
    module_name, _, path = code.partition(":")
    module = importlib.import_module(module_name)
    *owners, name = path.split(".")
    owner: Any = module
    for each in owners:
        owner = getattr(owner, each)
    found = inspect.getattr_static(owner, name)
    for wrapped in ("fget", "func", "__func__", "py_func", "__wrapped__"):
        found = getattr(found, wrapped, found)
    return module, found


@cache
def _source(function: Any) -> str:
    return textwrap.dedent(inspect.getsource(function))


def changed_source(mutation: Mutation) -> str:
    """Return the text of the function with its rule made wrong.

    Raises
    ------
    ValueError
        The text to replace is not there exactly once.
    """
    _, function = _function(mutation.code)
    source = _source(function)
    if (times := source.count(mutation.right)) != 1:
        raise ValueError(
            f"{mutation.code} has {mutation.right!r} {times} times; give a text that "
            "is there once"
        )
    return source.replace(mutation.right, mutation.wrong)


def _compiled(source: str, function: Any) -> CodeType:
    """Compile one function and return its code, without running a decorator."""
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.FunctionDef)
    tree.decorator_list = []
    file, flags = function.__code__.co_filename, __future__.annotations.compiler_flag
    whole = compile(ast.Module([tree], []), file, "exec", flags)
    (code,) = (each for each in whole.co_consts if isinstance(each, CodeType))
    return code


def _interpreted(module: ModuleType, name: str, changed: str) -> dict[str, Any]:
    """Functions of a Numba module as plain Python, with one of them changed."""
    names = dict(vars(module)) | {"prange": range}
    found = {}
    for each, value in vars(module).items():
        if isinstance(value, Dispatcher):
            right = value.py_func
            code = _compiled(changed, right) if each == name else right.__code__
            found[each] = FunctionType(code, names, each)
    names.update(found)
    return found


def _caches(names: Mapping[str, object], module: str) -> Iterator[Any]:
    """Every cache of a module, or of one of its classes."""
    for each in list(names.values()):
        plain = getattr(each, "__func__", each)
        if isinstance(plain, _lru_cache_wrapper):
            yield plain
        elif isinstance(plain, type) and plain.__module__ == module:
            yield from _caches(vars(plain), module)


def _forget() -> None:
    """Clear every cache of a result; it may come from the other rule."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        ours = file.startswith(str(ROOT)) and "site-packages" not in file
        if ours and not name.startswith((*KEPT, "__main__")):
            for each in _caches(vars(module), name):
                each.cache_clear()


@contextlib.contextmanager
def applied(mutation: Mutation) -> Iterator[None]:
    """Break one rule for the length of a ``with`` block.

    Raises
    ------
    ValueError
        As `changed_source`.
    """
    try:
        module, function = _function(mutation.code)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{mutation.code} is not there any more: {error}") from error
    changed = changed_source(mutation)
    name = mutation.code.partition(":")[2]
    with pytest.MonkeyPatch.context() as patch:
        if isinstance(getattr(module, name, None), Dispatcher):
            for each, plain in _interpreted(module, name, changed).items():
                patch.setattr(module, each, plain)
        else:
            patch.setattr(function, "__code__", _compiled(changed, function))
        _forget()
        yield
    _forget()


# -- the tests ---------------------------------------------------------------------


@dataclass
class Outcome:
    """What the tests of one row did under its mutation, up to the first failure.

    Attributes
    ----------
    seen
        How a test failed, if one did.
    slip
        An exception that says nothing about the rule.
    """

    seen: str = ""
    slip: str = ""
    passed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


class Mutant:
    """A pytest plugin: runs the tests of each row with that row's rule broken."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules
        self.found = {rule.id: Outcome() for rule in rules}
        self.rows: dict[str, list[Rule]] = defaultdict(list)
        self.now = Outcome()

    def pytest_sessionstart(self) -> None:
        """Keep Hypothesis from storing the counterexamples of a wrong rule."""
        # Imported before pytest starts, its asserts could not be rewritten.
        from hypothesis import settings

        settings.register_profile("wrong rules", database=None)
        settings.load_profile("wrong rules")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the tests that rows name, whole or by one parameter."""
        for item in items:
            name = item.nodeid.partition("[")[0]
            for rule in self.rules:
                if rule.checked_by in (item.nodeid, name):
                    self.rows[item.nodeid].append(rule)
        items[:] = [item for item in items if item.nodeid in self.rows]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that cannot be tested here, with its reason."""
        if report.skipped:
            for rule in self.rules:
                if rule.checked_by.startswith(report.nodeid):
                    reason = str(report.longrepr[-1])  # type: ignore[index]
                    self.found[rule.id].skipped.append(reason)

    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        """Run one test once for every row that names it."""
        for rule in self.rows[item.nodeid]:
            self.now = self.found[rule.id]
            if self.now.seen or self.now.slip:
                continue
            try:
                with applied(rule.mutation):
                    # Without a next item every fixture is made anew.
                    runtestprotocol(item, log=False, nextitem=None)
            except ValueError as error:
                self.now.slip = str(error)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        """Note how one test ended."""
        report = yield
        if report.skipped:
            self.now.skipped.append(str(call.excinfo.value) if call.excinfo else "")
        elif call.excinfo is not None:
            kind = "seen" if issubclass(call.excinfo.type, SEEN) else "slip"
            setattr(self.now, kind, f"{item.name}: {call.excinfo.exconly()}")
        elif call.when == "call":
            self.now.passed.append(item.name)
        return report


def outcomes(rules: Sequence[Rule]) -> dict[str, Outcome]:
    """Break each rule in turn and run its tests; results by id."""
    plugin = Mutant(rules)
    files = sorted({str(ROOT / rule.checked_by.partition("::")[0]) for rule in rules})
    options = ["-q", "--no-header", "-n", "0", "-p", "no:cacheprovider"]
    options += ["--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")]
    with contextlib.redirect_stdout(sys.stderr):
        pytest.main([*options, *files], plugins=[plugin])
    return plugin.found


if __name__ == "__main__":
    if sys.argv[1:] == ["-"]:
        given = [
            row | {"mutation": Mutation(**row["mutation"])}
            for row in json.load(sys.stdin)
        ]
        wanted = [replace(RULES[0], **row) for row in given]
    else:
        wanted = [rule for rule in RULES if not sys.argv[1:] or rule.id in sys.argv[1:]]
    print(json.dumps({id: asdict(each) for id, each in outcomes(wanted).items()}))
