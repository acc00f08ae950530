"""show: the emulator's text, its CUDA twin, both, and a row of the frame index."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fp4ref.cuda_kernel.twins import twin
from fp4ref.errors import InputError
from fp4ref.frames import frame as index_entry
from fp4ref.lessons.page import Page, code, columns, table

_PACKAGE_PARENT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a file.

    Attributes
    ----------
    place
        ``file:first-last``, from the repository root.
    """

    place: str
    text: str
    language: str


def source(name: str) -> Page:
    """Show the emulator's text of ``"fp4ref.gemm.mma_warp:multiply_k_tile"``.

    The part after the colon may be missing: then the whole module is shown.

    Raises
    ------
    InputError
        There is no such definition.
    """
    return _page(python_excerpt(name))


def cuda(name: str) -> Page:
    """Show the CUDA text that says what a function of the emulator says.

    Raises
    ------
    InputError
        The function has no twin in the kernel.
    """
    return _page(cuda_excerpt(name))


def beside(name: str) -> Page:
    """Show a function of the emulator beside its CUDA twin.

    Raises
    ------
    InputError
        There is no such definition, or it has no twin.
    """
    pages = [_page(python_excerpt(name)), _page(cuda_excerpt(name))]
    text = "\n\n".join(page.text for page in pages)
    return Page(text, columns(*(page.html for page in pages)))


def frame(id: str) -> Page:
    """Show one row of the frame index: claim, truth and where the truth is written.

    Raises
    ------
    InputError
        There is no such frame.
    """
    entry = index_entry(id)
    rows = {
        "The document says": entry.claim,
        "Verdict": entry.verdict.value,
        "What is so": entry.truth or "As the document says.",
        "Written in": entry.source,
        "Emulator": f"`{entry.emulator}`",
        "Kernel": f"`{entry.kernel}`" if entry.kernel else "no twin",
    }
    caption = f"Frame {entry.id}: {entry.title}"
    lines = [caption, *(f"  {name}: {text}" for name, text in rows.items())]
    return Page("\n".join(lines).replace("`", ""), table(caption, rows))


def _page(found: Excerpt) -> Page:
    plain = f"{found.place}\n{found.text}"
    return Page(plain, code(found.place, found.text, found.language))


def _require_name(name: object) -> str:
    """Return a name such as ``"fp4ref.gemm.mma_warp:multiply_k_tile"``."""
    if not isinstance(name, str) or not re.fullmatch(r"fp4ref[\w.:]{,200}", name):
        shown = f"{name!r}"[:60]
        raise InputError(
            f"{shown} is no name; write it like 'fp4ref.gemm.mma_warp:multiply_k_tile'"
        )
    return name


def cuda_excerpt(name: str) -> Excerpt:
    """Return the CUDA twin of a definition of the emulator."""
    found = twin(_require_name(name))
    if found is None:
        raise InputError(f"{name} has no twin in the kernel")
    return Excerpt(f"{found.file}:{found.first}-{found.last}", found.text, "cuda")


def python_excerpt(name: str) -> Excerpt:
    """Return the text of a definition of the emulator, with the comment above it."""
    module, _, path = _require_name(name).partition(":")
    file, lines, tree = _parsed(module)
    first, last = 1, len(lines)
    body: list[ast.stmt] = tree.body
    parts = path.split(".") if path else []
    for index, part in enumerate(parts):
        node, elsewhere = _find(body, part)
        if elsewhere:
            return python_excerpt(f"{elsewhere}:{'.'.join(parts[index:])}")
        if node is None:
            raise InputError(f"{file} defines no {path}")
        first, last = _span(node, lines)
        body = _members(node, tree)
    text = "\n".join(lines[first - 1 : last])
    return Excerpt(f"{file}:{first}-{last}", text, "python")


@cache
def _parsed(module: str) -> tuple[str, list[str], ast.Module]:
    """Path from the repository root, lines and syntax tree of a module."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.origin or not module.startswith("fp4ref"):
        raise InputError(f"fp4ref has no module {module!r}")
    text = Path(spec.origin).read_text(encoding="utf-8")
    file = Path(spec.origin).relative_to(_PACKAGE_PARENT).as_posix()
    return file, text.splitlines(), ast.parse(text)


def _find(body: list[ast.stmt], name: str) -> tuple[ast.stmt | None, str]:
    """The statement that defines `name`, or the module that it is imported from."""
    for node in body:
        if _is_overload(node):
            continue
        match node:
            case (
                ast.FunctionDef(name=found)
                | ast.ClassDef(name=found)
                | ast.AnnAssign(target=ast.Name(id=found))
                | ast.Assign(targets=[ast.Name(id=found)])
            ) if found == name:
                return node, ""
            case ast.ImportFrom(module=str(module), names=names) if any(
                alias.name == name and alias.asname is None for alias in names
            ):
                return None, module
    return None, ""


def _is_overload(node: ast.stmt) -> bool:
    """Whether it is a signature for the type checker only."""
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(each, ast.Name) and each.id == "overload"
        for each in node.decorator_list
    )


def _members(node: ast.stmt, tree: ast.Module) -> list[ast.stmt]:
    """Statements of a class, then those of its bases in the same module."""
    if not isinstance(node, ast.ClassDef):
        return []
    found = list(node.body)
    for base in node.bases:
        if isinstance(base, ast.Name):
            parent, _ = _find(tree.body, base.id)
            found += _members(parent, tree) if parent else []
    return found


def _span(node: ast.stmt, lines: list[str]) -> tuple[int, int]:
    """First and last line, with decorators, the comment above and the string below."""
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(each.lineno for each in decorators)])
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    last = node.end_lineno or node.lineno
    if isinstance(node, ast.Assign | ast.AnnAssign):
        last += _string_below(lines[last:], node.col_offset)
    return first, last


def _string_below(lines: list[str], indent: int) -> int:
    """Lines of the string that documents the value above it; 0 if there is none."""
    quotes = " " * indent + '"""'
    if not lines or not lines[0].startswith(quotes):
        return 0
    if lines[0].count('"""') == 2:
        return 1
    return 1 + next(i for i, line in enumerate(lines[1:], 1) if '"""' in line)
