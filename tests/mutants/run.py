"""run: 300 random mutants of four rooms, each against the tests that touch its line.

``make mutants``, or ``python tests/mutants/run.py [--work FOLDER] [--seconds N]``. What
is done is in ``results.jsonl`` beside this file, a line for each mutant, so a run that
is stopped goes on where it was. ``--survivors`` then runs each survivor against the
tests of all other rooms that touch its line, and its result gets ``"rooms": "all"``.
``--draw SEED`` draws others and forgets the results. ``--replace`` draws another mutant
of the same room for each that has lost its lines before it ran. ``--again ID ...
--tests FILE ...`` tries some mutants in files of tests of any room; only what these
kill gets a new result.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from drawn import (
    HERE,
    RESULTS,
    Mutant,
    draw_of_record,
    explained,
    keep,
    mutants,
    results,
)
from one_mutant import Verdict, changed, verdict
from which_tests import Touching

ROOT = HERE.parents[1]
DAY = "20261130"
"""Which cases of rotating tests run: those of one day, for all mutants."""

ROOMS = ["hardware", "layout", "numerics", "ptx"]
COUNT = 300
LIMIT = 300
"""Seconds of CPU time for a file of tests that is named."""
COMPILED = ("compiled", "decoded_operands", "doubts", "factors", "formats", "sides")
"""Modules whose values Numba keeps in what it compiled from other files."""


def head() -> str:
    """Return the commit that is copied."""
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def copied(work: Path) -> Path:
    """Return a copy of the committed tree, made once for a folder."""
    tree = work / "tree"
    if not tree.exists():
        packed = subprocess.run(
            ["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(tree, filter="data")
        # By content: a mutant may have the size and the second of the right file.
        command = [sys.executable, "-m", "compileall", "-q", "fp4ref", "tests"]
        by_content = ["--invalidation-mode", "checked-hash"]
        subprocess.run([*command, *by_content], cwd=tree, check=True)
        # Pytest keeps what it makes of each file of tests, too.
        command = [sys.executable, "-m", "pytest", "-q", "--collect-only"]
        folders = [f"tests/{room}" for room in ROOMS]
        subprocess.run([*command, *folders], cwd=tree, stdout=subprocess.DEVNULL)
    return tree


@cache
def touching(work: Path, room: str) -> Touching:
    """Return which tests of the room touch which line; measured once for a copy."""
    file, tree = work / f"touched-{room}.json", work / "tree"
    if not file.exists():
        print(f"{room}: which tests touch which line", flush=True)
        watched = work / "watched"
        shutil.copytree(tree, watched)
        command = [HERE / "touching.py", room, watched, file]
        subprocess.run(
            [sys.executable, *map(str, command)],
            check=True,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"FP4REF_SEED": DAY, "PYTHONPATH": str(watched)},
        )
        shutil.rmtree(watched)
    return Touching(json.loads(file.read_text("utf-8")))


def tried(mutant: Mutant, tree: Path, measured: Touching) -> Verdict:
    """Run the tests of its room on one mutant."""
    parts = measured.tests(mutant)
    limits = [20 + int(4 * sum(measured.cost[test] for test in part)) for part in parts]
    return in_parts(mutant, tree, parts, limits)


def in_parts(
    mutant: Mutant, tree: Path, parts: list[list[str]], limits: list[int]
) -> Verdict:
    """Run parts of the tests on one mutant, each in its seconds, until one fails."""
    right, total = (tree / mutant.file).read_text("utf-8"), Verdict("survived")
    environment = {"FP4REF_SEED": DAY}
    stem = Path(mutant.file).stem
    with tempfile.TemporaryDirectory() as fresh:
        if stem.endswith("_jit") or stem in COMPILED:
            environment["NUMBA_CACHE_DIR"] = fresh
        for part, limit in zip(parts, limits, strict=True):
            with changed(tree, mutant.file, mutant.changed(right)):
                found = verdict(tree, part, limit, environment)
            total = found.after(total)
            if total.verdict != "survived":
                break
    return total


def others(tree: Path, room: str) -> list[str]:
    """Return the folders of tests beside a room's own."""
    folders = {each.parent.name for each in (tree / "tests").glob("*/test_*.py")}
    return sorted(folders - {room, "mutants"})


def everywhere(mutant: Mutant, work: Path) -> Verdict:
    """Run the tests of all other rooms that execute its statement."""
    tree, total = work / "tree", Verdict("survived")
    for room in others(tree, mutant.room):
        measured = touching(work, room)
        if measured.knows(mutant):
            found = tried(mutant, tree, measured)
            total = found.after(total)
            if total.verdict != "survived":
                break
    return total


def summary(wanted: list[Mutant], done: dict[str, dict[str, Any]]) -> str:
    """Say how many ran, how many were killed, and which were not."""
    rows = [done[each.id] for each in wanted if each.id in done]
    why = explained()
    count = Counter(row["verdict"] for row in rows)
    alive = [
        each for each in wanted if done.get(each.id, {}).get("verdict") == "survived"
    ]
    in_all = sum(done[each.id].get("rooms") == "all" for each in alive)
    gone = sum(not each.is_in(ROOT) for each in wanted if each.id not in done)
    lines = [
        f"{len(rows)} of {len(wanted)} ran: {count['killed']} killed, "
        f"{count['limit']} ended at a limit, {len(alive)} survived, "
        f"{sum(each.id in why for each in alive)} of these explained, "
        f"{in_all} against all rooms; {gone} have lost their lines since"
    ]
    for each in alive:
        if each.id not in why:
            lines.append(f"{each.id} {each.file}:{each.line} {each.operator}")
            lines.append(f"  - {each.old.strip()}\n  + {each.new.strip()}")
    return "\n".join(lines)


def keep_result(row: dict[str, Any]) -> None:
    """Write one line."""
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    print(row, flush=True)


def run(work: Path, seconds: float, rooms: list[str], again: set[str]) -> None:
    """Try what has no result yet, until the time is over."""
    tree, end = copied(work), time.monotonic() + seconds
    done = results()
    for each in mutants():
        finished = each.id in done and each.id not in again
        if finished or each.room not in rooms or time.monotonic() > end:
            continue
        if each.is_in(tree):
            found = tried(each, tree, touching(work, each.room))
            keep_result({"id": each.id} | vars(found))


def run_survivors(work: Path, seconds: float) -> None:
    """Try each survivor without a reason in all other rooms, until the time is over."""
    tree, end = copied(work), time.monotonic() + seconds
    done, why = results(), explained()
    for each in mutants():
        row = done.get(each.id, {})
        alive = row.get("verdict") == "survived" and "rooms" not in row
        if alive and each.id not in why and each.is_in(tree):
            if time.monotonic() > end:
                break
            found = vars(everywhere(each, work))
            keep_result({"id": each.id} | found | {"rooms": "all"})


def run_files(work: Path, ids: set[str], files: list[str]) -> None:
    """Try mutants in files of tests of any room; a survivor keeps its old result."""
    tree = copied(work)
    for each in mutants():
        if each.id in ids:
            found = in_parts(
                each, tree, [[file] for file in files], [LIMIT] * len(files)
            )
            if found.verdict != "survived":
                keep_result({"id": each.id} | vars(found))
            else:
                print(f"{each.id} survived {found.tests} tests", flush=True)


def main() -> None:
    """Draw, run, say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=ROOT / ".mutants")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--rooms", nargs="*", default=ROOMS, metavar="ROOM")
    parser.add_argument("--draw", type=int, metavar="SEED")
    parser.add_argument("--replace", action="store_true")
    parser.add_argument("--again", nargs="*", default=[], metavar="ID")
    parser.add_argument("--tests", nargs="*", default=[], metavar="FILE")
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if given.draw is not None:
        from places import draw  # needs Cosmic Ray; nothing else does

        keep(given.draw, head(), draw(ROOT, given.draw, COUNT))
        RESULTS.write_text("", encoding="utf-8")
    if given.replace:
        from places import draw_instead

        wanted, done = mutants(), results()
        lost = {e.id for e in wanted if e.id not in done and not e.is_in(ROOT)}
        seed, commit = draw_of_record()
        keep(seed, commit, draw_instead(ROOT, seed, wanted, lost))
    if not given.summary:
        given.work.mkdir(parents=True, exist_ok=True)
        work = given.work.resolve()
        if given.tests:
            run_files(work, set(given.again), given.tests)
        elif given.survivors:
            run_survivors(work, given.seconds)
        else:
            run(work, given.seconds, given.rooms, set(given.again))
    print(summary(mutants(), results()))


if __name__ == "__main__":
    main()
