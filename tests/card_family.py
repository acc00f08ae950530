"""card_family: every tree, and every kind that a Hopper card's TMA can bring.

``python tests/card_family.py OUT`` runs them on a card and writes
``OUT/card_family.json``.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from narrow_operands import narrow
from tree_cases import TREES, TreeCase

import fp4ref
from fp4ref import GemmConfig
from fp4ref.device import find_gpu
from fp4ref.evidence import oracle

RECORD = Path(__file__).parent / "data" / "card_family.json"
M, N, K = 130, 72, 192
KINDS = (
    ("mxfp4", "mxfp4"),
    ("mxfp8_e4m3", "mxfp8_e4m3"),
    ("mxfp8_e5m2", "mxfp8_e4m3"),
    ("e4m3", "e5m2"),
    ("e5m2", "e5m2"),
    ("f16", "f16"),
    ("bf16", "bf16"),
)


def _of_tree(case: TreeCase) -> dict[str, Any]:
    rng = np.random.default_rng(9)
    a, b = (fp4ref.quantize(rng.standard_normal((x, K), np.float32)) for x in (M, N))
    config, source = case.config(), None
    if config.epilogue.c_format is not None:
        named = fp4ref.numerics.elements.ELEMENTS[config.epilogue.c_format]
        source = rng.standard_normal((M, N), np.float32).astype(named.dtype)
    passed = case.arguments(rng, (M, N))
    given = {"a": a, "b": b, "c": source, "arguments": passed, "alpha": 0.625}
    return given | {"config": config}


def _of_kind(a: str, b: str) -> dict[str, Any]:
    config = GemmConfig.nvfp4(operand_format=a, b_format=None if a == b else b)
    return {"a": narrow(3, (M, 256), a), "b": narrow(4, (N, 256), b), "config": config}


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    **{str(case): lambda case=case: _of_tree(case) for case in TREES},  # type: ignore[misc]
    **{f"{a} by {b}": lambda a=a, b=b: _of_kind(a, b) for a, b in KINDS},  # type: ignore[misc]
}


def digest(found: fp4ref.Run | oracle.Expected) -> str:
    """Sixteen digits over D, SFD and all that a tree leaves."""
    parts: dict[str, Any] = {"-d": found.d, **found.aux, **found.reductions}
    if found.sfd is not None:
        parts["-sfd"] = found.sfd
    whole = hashlib.sha256()
    for name in sorted(parts):
        whole.update(name.encode() + np.ascontiguousarray(parts[name]).tobytes())
    return whole.hexdigest()[:16]


def on_card(name: str) -> str:
    return digest(fp4ref.run(**CASES[name](), backend="device"))


def by_oracle(name: str) -> str:
    return digest(oracle.expected(**CASES[name]()))


def main() -> None:
    gpu = find_gpu()
    found: dict[str, str] = {}
    for name in CASES:
        try:
            found[name] = on_card(name)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {str(error)[:300]}"
        print(name, found[name], flush=True)
    facts = {"card": gpu.card, "driver": gpu.driver}
    facts["date"] = datetime.date.today().isoformat()
    text = json.dumps({**facts, "cases": found}, indent=1)
    (Path(sys.argv[1]) / RECORD.name).write_text(text + "\n")


if __name__ == "__main__":
    main()
