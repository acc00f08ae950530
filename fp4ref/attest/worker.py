"""worker: one rung in a process of its own.

``python -m fp4ref.attest.worker NAME BACKEND OUT`` runs it and leaves ``OUT``, a NumPy
archive of its parts' words and of what became of it. Whatever breaks here ends this
process alone.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fp4ref.attest.catalogue import question
from fp4ref.attest.on_card import OnCard
from fp4ref.attest.on_ptx import OnPtx
from fp4ref.errors import DeadlockError, Fp4refError, NotModelled

BACKENDS = ("ptx", "device", "device-soft")

_HEAD, _BARRIERS, _WAITS = 6, 16, 8
"""Words before the barriers of a dump, barriers, and waits it holds."""


def dumped(words: NDArray[np.uint32]) -> list[str]:
    """Say of each wait that gave up where it was and what its barriers hold."""
    if not words.size or not words[0]:
        return []
    said = [f"{words[0]} waits gave up"]
    rows = words[1:].reshape(_WAITS, _HEAD + 2 * _BARRIERS)[: int(words[0])]
    for row in rows:
        line, cta, thread, mbar, parity, _ = (int(each) for each in row[:_HEAD])
        barriers = np.ascontiguousarray(row[_HEAD:]).view(np.uint64)
        held = " ".join(f"{int(each):016x}" for each in barriers)
        said.append(
            f"line {line}: CTA {cta}, thread {thread}, mbarrier {mbar:#x}, parity "
            f"{parity}; the CTA's first {_BARRIERS} words of 64 bits: {held}"
        )
    return said


def run(name: str, backend: str) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Run one rung; return what became of it and the words of its parts."""
    asked = question(name)
    meta: dict[str, Any] = {"state": "ran", "detail": "", "nvrtc": ""}
    arrays: dict[str, Any] = {}
    on: OnPtx | OnCard | None = None
    start = time.perf_counter()
    try:
        if backend == "ptx":
            on = OnPtx(asked)
        else:
            on = OnCard(asked, soft=backend == "device-soft")
        meta["nvrtc"] = on.nvrtc
        start = time.perf_counter()
        buffers = on.run()
        arrays = {part.name: part.of(buffers) for part in asked.parts}
    except NotModelled as error:
        meta |= {"state": "not modelled", "detail": _first(error, 2)}
    except DeadlockError as error:
        meta |= {"state": "hung", "detail": str(error)}
    except Fp4refError as error:
        meta |= {"state": "faulted", "detail": str(error)}
    meta["seconds"] = time.perf_counter() - start
    # After a fault the driver gives nothing back; the emulated machine does.
    lost = meta["state"] == "faulted" and backend != "ptx"
    if on is not None and not lost and (said := dumped(on.dump())):
        meta |= {"state": "gave up", "detail": "\n".join(said)}
    return meta, arrays


def _first(error: Exception, lines: int) -> str:
    return "\n".join(str(error).splitlines()[:lines])


def main() -> int:
    """Run the command line."""
    name, backend, out = sys.argv[1:]
    meta, arrays = run(name, backend)
    with Path(out).open("wb") as file:
        np.savez(file, **arrays, _meta=np.array(json.dumps(meta)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
