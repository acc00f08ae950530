"""record: ask a card about every form and write what it gave.

``python -m probes.forms.record lacking FILE`` asks ptxas, which needs no card,
what sm_90 lacks. ``... record card FILE OUT`` runs the other forms on a card and writes
``OUT/forms.npz``; it runs the executor beside it and writes ``OUT/differences.txt``.
With ``--only NAMES`` it asks about the forms of that file, one a line, and keeps what
is recorded of the others.
``... record list`` prints what is recorded, and what sm_90 lacks; ``... record relist
FILE OUT`` writes the recording of the repository with the lists of FILE.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from fp4ref.device import DeviceError
from fp4ref.device.launch import Module
from fp4ref.errors import Fp4refError, InputError
from fp4ref.trace import Bytes
from probes.forms import emulated
from probes.forms.catalogue import Form, forms
from probes.forms.compiler import find_ptxas, refusals
from probes.forms.faults import faults
from probes.forms.inputs import COUNT, make
from probes.forms.recording import digest, hashes, head, pack, recording
from probes.record import facts

CHUNK = 24
SHOWN = 12
"""Differing elements that are written out for each output."""

Folded = tuple[int, list[tuple[bytes, bytes]]]


def accepted() -> list[Form]:
    """Return the forms that the executor accepts."""
    found = []
    for form in forms().values():
        try:
            if emulated.accepts(form):
                found.append(form)
        except InputError:
            continue  # operands that do not fit: refused as well
    return found


def lacking() -> dict[str, dict[str, str]]:
    """Return what ptxas says of accepted forms that sm_90a and sm_100a refuse.

    Raises
    ------
    DeviceError
        There is no ptxas.
    """
    ptxas = find_ptxas()
    if ptxas is None:
        raise DeviceError("no ptxas: pip install 'fp4ref[cutlass]'")
    every = accepted()
    there = refusals(ptxas, every, "sm_90a")
    missing = [form for form in every if form.name in there]
    return {"lacking": there, "nowhere": refusals(ptxas, missing, "sm_100a")}


def ask(form: Form) -> dict[str, Bytes]:
    """Run a form on the card, compiled by its driver; return its outputs."""
    found = Module(form.text().encode() + b"\0").run(form.call())
    return {name: found[name] for name in form.buffers}


def _compare(form: Form, card: dict[str, Bytes]) -> Iterator[str]:
    """Yield what the executor does differently, element by element."""
    try:
        mine = emulated.run(form)
    except Fp4refError as error:
        yield f"{form.name}: {type(error).__name__}: {str(error).splitlines()[0]}"
        return
    kinds = form.shape.inputs
    for name, stream in card.items():
        width = stream.size // COUNT
        rows = (stream != mine[name]).reshape(COUNT, width).any(axis=1)
        if not rows.any():
            continue
        bad = np.flatnonzero(rows)
        yield f"{form.name}, {name}: {bad.size} of {COUNT} differ; first {bad[0]}"
        for at in bad[:: max(1, bad.size // SHOWN)][:SHOWN]:
            given = [
                hex(int(a[at]))
                for a, kind in zip(make(kinds), kinds, strict=True)
                if kind != "x128"
            ]
            values = (
                each[at * width : (at + 1) * width][::-1].tobytes().hex()
                for each in (stream, mine[name])
            )
            yield "    ({}) card {} executor {}".format(", ".join(given), *values)


def chunk(names: list[str]) -> tuple[dict[str, Folded], list[str], list[str]]:
    """Ask about some forms: what was folded, lines of differences, forms left over."""
    outputs: dict[str, Folded] = {}
    lines: list[str] = []
    for done, name in enumerate(names):
        form = forms()[name]
        try:
            card = ask(form)
        except DeviceError as error:
            # The error may have ended the context: a new process takes the rest.
            lines.append(f"{name}: the card: {error}")
            return outputs, lines, names[done + 1 :]
        folded = [(head(s).tobytes(), hashes(s).tobytes()) for s in card.values()]
        outputs[name] = digest(form), folded
        lines += _compare(form, card)
    return outputs, lines, []


def fault(name: str) -> str:
    """Return the error with which a forbidden kernel ends; '' if it does not."""
    try:
        ask(faults()[name])
    except DeviceError as error:
        return str(error)
    return ""


def _kept(asked: set[str]) -> dict[str, Folded]:
    """Return what the repository has of other forms, if their kernels are the same."""
    try:
        found = recording()
    except FileNotFoundError:
        return {}
    kept = {}
    for name, (crc, *places) in found.streams.items():
        if name not in asked and name in forms() and digest(forms()[name]) == crc:
            kept[name] = crc, [found.folded(place) for place in places]
    return kept


def write(every: dict[str, Folded], meta: dict[str, Any], out: Path) -> int:
    """Write a recording, its forms in the order of the registry."""
    ordered = {name: every[name] for name in forms() if name in every}
    np.savez_compressed(out / "forms.npz", **pack(ordered, meta), allow_pickle=False)
    print(f"{len(ordered)} forms in {out / 'forms.npz'}")
    return 0


def card(
    facts_of_compiler: dict[str, Any], out: Path, workers: int, wanted: set[str]
) -> int:
    """Ask a card about forms that it has; keep what was recorded of the others."""
    missing = facts_of_compiler["lacking"]
    names = [
        form.name
        for form in accepted()
        if form.name not in missing and (not wanted or form.name in wanted)
    ]
    # Slow neighbours, such as atomics, are spread over the chunks.
    size = -(-len(names) // CHUNK)
    work = [names[i::size] for i in range(size)]
    outputs: dict[str, Folded] = {}
    lines: list[str] = []
    while work:
        with ProcessPoolExecutor(
            workers, get_context("spawn"), max_tasks_per_child=1
        ) as pool:
            done = list(pool.map(chunk, work))
        work = []
        for folded, said, left in done:
            outputs |= folded
            lines += said
            work += [left] if left else []
    with ProcessPoolExecutor(
        workers, get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        ended = dict(zip(faults(), pool.map(fault, faults()), strict=True))
    every = _kept(set(outputs)) | outputs
    meta = facts() | {"probe": "forms", "faults": ended, **facts_of_compiler}
    write(every, meta, out)
    (out / "differences.txt").write_text("\n".join(lines) + "\n")
    differing = [line for line in lines if not line.startswith(" ")]
    print(f"{len(outputs)} of {len(names)} forms answered; {len(differing)} differ")
    print(f"forbidden kernels: {ended}")
    print("\n".join(differing))
    return 0


def show() -> int:
    """Print how many forms are recorded, by maker, and every form that sm_90 lacks."""
    found = recording()
    meta = found.meta
    print(f"{len(found.streams)} forms x {COUNT} inputs, recorded on", end=" ")
    print("{card}, driver {driver}, {date}".format(**meta))
    makers = Counter(forms()[name].maker for name in found.streams)
    for maker, count in sorted(makers.items()):
        print(f"    {maker:<32}{count:>5}")
    for title, there in (("sm_90 lacks, sm_100a has", False), ("no target has", True)):
        listed = {n: w for n, w in meta["lacking"].items()
                  if (n in meta["nowhere"]) == there}  # fmt: skip
        print(f"{title}: {len(listed)}")
        for name, words in listed.items():
            print(f"    {name}: {words}")
    return 0


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="probes.forms.record")
    parser.add_argument("what", choices=("lacking", "card", "list", "relist"))
    parser.add_argument("file", type=Path, nargs="?", default=Path("lacking.json"))
    parser.add_argument("out", type=Path, nargs="?", default=Path("."))
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--only", type=Path, help="a file of names, one a line")
    given = parser.parse_args()
    if given.what == "list":
        return show()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.what == "relist":
        meta = recording().meta | json.loads(given.file.read_text())
        return write(_kept(set()), meta, given.out)
    if given.what == "lacking":
        found = lacking()
        given.file.write_text(json.dumps(found, indent=1))
        print({name: len(listed) for name, listed in found.items()})
        return 0
    known = json.loads(given.file.read_text())
    wanted = set(given.only.read_text().splitlines()) if given.only else set()
    return card(known, given.out, given.workers, wanted)


if __name__ == "__main__":
    raise SystemExit(main())
