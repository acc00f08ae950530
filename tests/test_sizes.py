"""Sizes: files that can be read in one sitting, functions that fit on one screen."""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from brace_functions import functions_in_braces

ROOT = Path(__file__).parents[1]
FILE, TEST_FILE, FUNCTION = 400, 500, 60
BRACES = {".js", ".cu", ".cuh", ".c"}
CODE = {".py", ".css", *BRACES}
"""Tables and other data, such as TOML and JSON, may be as long as they are."""


@pytest.fixture(scope="module")
def code() -> dict[str, str]:
    """Every tracked file of code, by its path, with its text."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs the Git checkout: it says which files are tracked")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {
        path: (ROOT / path).read_text("utf-8")
        for path in listed
        if Path(path).suffix in CODE and (ROOT / path).is_file()
    }


def long_file(path: str, text: str) -> str:
    """Say how long a file is that has too many lines."""
    limit = TEST_FILE if path.startswith("tests/") else FILE
    count = len(text.splitlines())
    return f"{path}: {count} lines, at most {limit}" if count > limit else ""


def functions(path: str, text: str) -> Iterator[tuple[str, int]]:
    """Each function of a file with its lines; of Python, from ``def``, no docstring."""
    suffix = Path(path).suffix
    if suffix in BRACES:
        yield from functions_in_braces(text, javascript=suffix == ".js")
    if suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                lines = node.end_lineno - node.lineno + 1
                if ast.get_docstring(node) is not None:
                    said = node.body[0]
                    assert said.end_lineno is not None
                    lines -= said.end_lineno - said.lineno + 1
                yield node.name, lines


def long_functions(path: str, text: str) -> list[str]:
    """Say which functions of a file have too many lines."""
    return [
        f"{path}: {name} has {count} lines, at most {FUNCTION}"
        for name, count in functions(path, text)
        if count > FUNCTION
    ]


def test_no_file_is_too_long(code: dict[str, str]) -> None:
    assert len(code) > 400
    found = [said for item in code.items() if (said := long_file(*item))]
    assert not found, "\n" + "\n".join(found)


def test_no_function_is_too_long(code: dict[str, str]) -> None:
    found = [said for item in code.items() for said in long_functions(*item)]
    assert not found, "\n" + "\n".join(found)


def test_functions_are_seen_in_every_language(code: dict[str, str]) -> None:
    """A counter that sees nothing would find nothing too long."""
    seen = Counter(
        Path(path).suffix for path, text in code.items() for _ in functions(path, text)
    )
    least = {".py": 4000, ".js": 120, ".cu": 40, ".cuh": 150, ".c": 40}
    assert all(seen[suffix] >= count for suffix, count in least.items()), seen


@pytest.mark.parametrize(
    ("path", "limit"),
    [("fp4ref/x.py", FILE), ("fp4ref/x.css", FILE), ("tests/x.py", TEST_FILE)],
)
def test_a_long_file_is_found(path: str, limit: int) -> None:
    assert long_file(path, "\n" * limit) == ""
    assert long_file(path, "\n" * (limit + 1)).startswith(path)


LONG = {
    "a function": ("x.py", "", "def f(a):\n", "    a += 1\n", ""),
    "a method": ("x.py", "class A:\n", "    async def f(a):\n", "        a += 1\n", ""),
    "function": ("x.js", "a = 1;\n", "export function f(a) {\n", "  a++;\n", "}\n"),
    "arrow": ("x.js", "", "const f = (a) =>\n {\n", "  a(`${b({c: `}`})}{`);\n", "}\n"),
    "method": ("x.js", "class A {", "f(a = {}) {\n", "  if (a) b(/[{]/);\n", "}}\n"),
    "kernel": ("x.cu", "#undef A\n", "void f(int *a)\n{\n", 'a("{"); //{\n', "}\n"),
    "member": ("x.cuh", "class A {\n", "int f() const {\n", "for (;;) {} //{\n", "}};"),
    "constructor": ("x.cuh", "", "A(int b) : f(b) {\n", "  b = 1'000 + '{';\n", "}\n"),
    "C": ("x.c", "int a[] = {1};\n", "int\nf(void) {\n", "do g(); while (0);\n", "}\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_a_long_function_is_found_and_one_that_fits_is_not(name: str) -> None:
    path, before, head, line, end = LONG[name]
    lines = FUNCTION - head.count("\n") - bool(end)
    assert long_functions(path, before + head + line * lines + end) == []
    (said,) = long_functions(path, before + head + line * (lines + 1) + end)
    assert f"f has {FUNCTION + 1} lines" in said


def test_a_docstring_is_not_counted() -> None:
    text = "def f(a):\n    '''Says.\n" + "\n" * 100 + "    '''\n    a += 1\n"
    assert list(functions("x.py", text)) == [("f", 2)]


def test_braces_that_do_not_match_are_refused() -> None:
    for text in ("void f() {", "void f() {}}"):
        with pytest.raises(ValueError, match="close"):
            list(functions_in_braces(text, javascript=False))
