"""change: one line of the emulator, the kernel or a program, made wrong.

A change replaces a text that its file has once by one of as many lines, so that every
place of the changed code has the line number that it has in the file.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import CodeType, FunctionType
from typing import Any
from unittest.mock import patch

from fp4ref.cuda_kernel import KernelCode, headers, on_sm
from fp4ref.cuda_kernel.build import ARCH, normalised
from fp4ref.cuda_kernel.sources import MAIN, expand, kernel_root
from fp4ref.device.compile import compile_cuda
from fp4ref.errors import InputError
from fp4ref.gemm.config import GemmConfig

PACKAGE_PARENT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Change:
    """`right` becomes `wrong` in `file`.

    Parameters
    ----------
    file
        ``fp4ref/...`` or ``kernel/...``.
    """

    file: str
    right: str
    wrong: str

    @property
    def line(self) -> str:
        """``file:line`` of the first line that differs."""
        pairs = zip(self.right.split("\n"), self.wrong.split("\n"), strict=True)
        first = next(i for i, (one, other) in enumerate(pairs) if one != other)
        lines = self.right.split("\n")
        return line_of(self.file, self.right, sum(len(x) + 1 for x in lines[:first]))

    def applied(self, text: str) -> str:
        """Return the text of the file with its mistake.

        Raises
        ------
        InputError
            `right` is not there exactly once, or the lines would move.
        """
        if (times := text.count(self.right)) != 1:
            raise InputError(
                f"{self.file} has {self.right!r} {times} times; give a text that is "
                "there once"
            )
        if self.right.count("\n") != self.wrong.count("\n"):
            raise InputError(
                f"{self.file}: {self.wrong!r} has another number of lines than what "
                "it replaces; every later line would move"
            )
        return text.replace(self.right, self.wrong)


def read(file: str) -> str:
    """Return the text of a file of the package or of the kernel."""
    root = kernel_root() if file.startswith("kernel/") else PACKAGE_PARENT
    return (root / file).read_text(encoding="utf-8")


def line_of(file: str, text: str, offset: int = 0) -> str:
    """``file:line`` of a text that a file has once, or of a place in it.

    Raises
    ------
    InputError
        It is not there exactly once.
    """
    whole = read(file)
    if (times := whole.count(text)) != 1:
        raise InputError(f"{file} has {text!r} {times} times; it must be there once")
    at = whole.index(text) + offset
    at += len(whole[at:]) - len(whole[at:].lstrip())
    return f"{file}:{whole.count(chr(10), 0, at) + 1}"


# -- the emulator ------------------------------------------------------------------


@contextlib.contextmanager
def changed_emulator(change: Change) -> Iterator[None]:
    """Make one function of the emulator wrong for the length of a ``with`` block.

    The function object stays and only its code changes, so every module that imported
    it is changed too.
    """
    whole = read(change.file)
    names = _enclosing(ast.parse(whole), whole[: whole.index(change.right)].count("\n"))
    function = _function(change.file, names)
    code = _code(change.applied(whole), change.file, names)
    forget = getattr(function, "cache_clear", lambda: None)
    plain = inspect.unwrap(function)
    right, plain.__code__ = plain.__code__, code
    forget()
    try:
        yield
    finally:
        plain.__code__ = right
        forget()


def _enclosing(tree: ast.Module, line: int) -> list[str]:
    """Names of the class, if any, and the function that hold a line, from 0."""
    names: list[str] = []
    body: list[ast.stmt] = tree.body
    while not names or body:
        for node in body:
            first = getattr(node, "lineno", 0)
            first = min(
                [first, *(d.lineno for d in getattr(node, "decorator_list", []))]
            )
            if first <= line + 1 <= (node.end_lineno or 0):
                break
        else:
            raise InputError(f"line {line + 1} is in no function")
        if isinstance(node, ast.FunctionDef):
            return [*names, node.name]
        if not isinstance(node, ast.ClassDef):
            raise InputError(f"line {line + 1} is in no function")
        names.append(node.name)
        body = node.body
    raise InputError(f"line {line + 1} is in no function")


def _function(file: str, names: list[str]) -> FunctionType:
    """Return the function, or that of a property, with its wrappers."""
    module = ".".join(PurePosixPath(file).with_suffix("").parts)
    owner: Any = importlib.import_module(module)
    for each in names[:-1]:
        owner = getattr(owner, each)
    found: Any = inspect.getattr_static(owner, names[-1])
    for behind in ("fget", "func", "__func__"):
        found = getattr(found, behind, found)
    function: FunctionType = found
    return function


def _code(text: str, file: str, names: list[str]) -> CodeType:
    """Compile a file and return the code of one of its functions."""
    code: CodeType = compile(
        text,
        str(PACKAGE_PARENT / file),
        "exec",
        __future__.annotations.compiler_flag,
        dont_inherit=True,
    )
    for name in names:
        code = next(
            each
            for each in code.co_consts
            if isinstance(each, CodeType) and each.co_name == name
        )
    return code


# -- the kernel --------------------------------------------------------------------


@contextlib.contextmanager
def changed_kernel(change: Change, config: GemmConfig) -> Iterator[None]:
    """Let the backend ``"ptx"`` run a kernel with the change.

    Raises
    ------
    CompileError
        NVRTC is not installed, or refused the source.
    """
    root = kernel_root()
    texts = headers(config)
    text = texts.get(change.file) or read(change.file)
    source = expand(texts | {change.file: change.applied(text)}, root)
    compiled = compile_cuda(source, ARCH, name=MAIN)
    code = KernelCode(normalised(compiled.ptx), f"NVRTC {compiled.nvrtc}, changed")
    with patch.object(on_sm, "kernel_code", lambda _: code):
        yield
