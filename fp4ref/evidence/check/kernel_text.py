"""kernel_text: the PTX of a kernel, from a file, a text or what a compiler returns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from fp4ref.errors import InputError
from fp4ref.files.array_file import open_regular
from fp4ref.ptx import Program, parse
from fp4ref.ptx.text.syntax import Module

LARGEST: Final = 32 << 20
"""Bytes; the largest of the known kernels is 3 MB."""

_TARGET = re.compile(r"\s*\.target\s+(\w+)", re.MULTILINE)
_BELOW = re.compile(r"sm_(\d+)")
_OURS = ("sm_100a", "sm_100f")


@dataclass(frozen=True)
class KernelText:
    """PTX that has been read.

    Attributes
    ----------
    name
        The file, or what the text is of.
    """

    name: str
    text: str

    @cached_property
    def module(self) -> Module:
        """The parsed text.

        Raises
        ------
        InputError
            It is no PTX, or is compiled for another GPU.
        NotModelled
            It has syntax that is not read here.
        """
        self._check_target()
        try:
            return parse(self.text)
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None

    def program(self, entry: str | None) -> Program:
        """Return an entry, ready to run."""
        module = self.module
        try:
            return Program.of(module, entry)
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None

    def line(self, number: int) -> str:
        """Text of a line, from 1."""
        lines = self._lines
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.split("\n")

    def _check_target(self) -> None:
        """Refuse code that a B200 would not load."""
        found = _TARGET.search(self.text)
        if found is None:
            raise InputError(
                f"{self.name}: no .target; this is no PTX. Compile with nvcc -ptx "
                "-arch=sm_100a, or keep what Triton or CuTe DSL compiled"
            )
        target = found[1]
        below = _BELOW.fullmatch(target)
        if target in _OURS or (below and int(below[1]) <= 100):
            return
        line = self.text[: found.start(1)].count("\n") + 1
        raise InputError(
            f"{self.name}, line {line}: .target {target} does not run on sm_100; "
            "compile for sm_100a"
        )


def read_kernel(kernel: Any) -> KernelText:
    """Return the PTX of a kernel.

    Parameters
    ----------
    kernel
        Path of a ``.ptx`` file, the text itself, or an object with the text: a compiled
        Triton kernel (``asm["ptx"]``) or a compiled function of CuTe DSL
        (``__ptx__``).

    Raises
    ------
    InputError
        It is none of these, or too large.
    """
    if isinstance(kernel, KernelText):
        return kernel
    if isinstance(kernel, str) and "\n" in kernel:
        return _kept("the PTX text", kernel)
    if isinstance(kernel, str | Path):
        return _read(Path(kernel))
    asm = getattr(kernel, "asm", None)
    by_triton = isinstance(asm, dict)
    text = asm.get("ptx") if by_triton else getattr(kernel, "__ptx__", None)  # type: ignore[union-attr]
    if not isinstance(text, str):
        raise InputError(
            f"kernel is {type(kernel).__name__}; need a path, PTX text, a compiled "
            "Triton kernel, or a compiled CuTe DSL function that kept its PTX "
            "(CUTE_DSL_KEEP_PTX=1)"
        )
    return _kept("Triton's PTX" if by_triton else "CuTe DSL's PTX", text)


def _kept(name: str, text: str) -> KernelText:
    if len(text) > LARGEST:
        raise InputError(f"{name}: {len(text):,} bytes; at most {LARGEST:,}")
    return KernelText(name, text)


def _read(path: Path) -> KernelText:
    with open_regular(path) as opened:
        raw = opened.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise InputError(
            f"{path}: more than {LARGEST:,} bytes of PTX; check one kernel at a time, "
            "not a library"
        )
    if raw.startswith((b"\x7fELF", b"\x50\xed\x55\xba")):
        raise InputError(f"{path} is compiled machine code; give its PTX")
    try:
        return KernelText(str(path), raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise InputError(f"{path}: not in UTF-8; this is no PTX") from None
