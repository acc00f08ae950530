"""The constants of this one GEMM are named in its own rooms; others ask the plan."""

from __future__ import annotations

import ast
from pathlib import Path

import fp4ref

PACKAGE = Path(fp4ref.__file__).parent
OWN_ROOMS = {"gemm", "frames", "lessons"}
MODULES = ("config", "descriptors", "problem", "plan.warps", "plan.values")


def constants_of(path: Path) -> set[str]:
    """Names in capitals that a module assigns."""
    return {
        target.id
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id.isupper()
    }


def imported(text: str) -> set[str]:
    """Names that a module takes from the room of the GEMM."""
    return {
        alias.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("fp4ref.gemm")
        for alias in node.names
    }


def test_no_constant_of_the_gemm_is_named_outside() -> None:
    known = {
        name
        for module in MODULES
        for name in constants_of(PACKAGE / "gemm" / f"{module.replace('.', '/')}.py")
    }
    assert {"TILE_M", "K_BLOCKS", "WARP_THREADS", "K_MULTIPLE"} <= known
    found = {
        str(path.relative_to(PACKAGE)): taken
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in OWN_ROOMS
        if (taken := imported(path.read_text()) & known)
    }
    assert not found


def test_an_import_of_one_is_seen() -> None:
    text = "from fp4ref.gemm.config import TILE_M, GemmConfig"
    assert imported(text) == {"TILE_M", "GemmConfig"}
