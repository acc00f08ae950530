"""attest: ask a card, rung by rung, what the fidelity table claims."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fp4ref.attest.keep import keep
from fp4ref.attest.ladder import Ladder, rungs
from fp4ref.attest.verdict import Judged, judge
from fp4ref.commands.options import Force, Json
from fp4ref.commands.printing import print_json, print_table
from fp4ref.errors import InputError
from fp4ref.evidence.attested import Facts, facts
from fp4ref.evidence.transcript import RungAnswer, Transcript, read
from fp4ref.files.whole_file import check_target

GOOD = ("agrees", "recorded", "not modelled", "cannot")
"""States of a rung that are no difference and no fault."""


def attest_command(
    backend: Annotated[
        str,
        typer.Option(help="device: the first GPU; ptx: the emulated machine, no GPU."),
    ] = "device",
    out: Annotated[
        Path | None,
        typer.Option(
            help="The transcript; attest-CARD.json by default.", show_default=False
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="One rung; may be given again.", show_default=False),
    ] = None,
    seeded: Annotated[
        str,
        typer.Option(help="Rungs that break on purpose too: stuck,fault,hang."),
    ] = "",
    limit: Annotated[
        float | None,
        typer.Option(min=1, help="Seconds for each rung.", show_default=False),
    ] = None,
    show: Annotated[
        bool, typer.Option("--list", help="Say what each rung proves; run nothing.")
    ] = False,
    read_file: Annotated[
        Path | None,
        typer.Option(
            "--read", help="Check a transcript and say what moves.", show_default=False
        ),
    ] = None,
    keep_file: Annotated[
        Path | None,
        typer.Option(
            "--keep",
            help="Put a transcript into this checkout's table.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Climb a ladder of small kernels on a GPU, and compare every word.

    Exit status 0 if every word is as predicted, 1 if a rung differs, hangs or faults.
    """
    if show:
        _list(as_json)
        return
    if read_file or keep_file:
        judged = judge(read(read_file or keep_file or Path()))
        if keep_file:
            print(f"kept as {keep(judged)}")
        _report(judged, as_json)
        differs = any(m.verdict == "contradicted" for m in judged.moves.values())
        raise typer.Exit(1 if differs else 0)
    chosen = rungs(only or (), [name for name in seeded.split(",") if name])
    found = _climb(Ladder(backend, limit), chosen, out, force, as_json)
    raise typer.Exit(0 if all(r.state in GOOD for r in found.rungs) else 1)


def _climb(
    ladder: Ladder, chosen: list[Facts], out: Path | None, force: bool, as_json: bool
) -> Transcript:
    """Climb, print each rung, and write the transcript."""
    path = out or Path(_file_name(ladder.facts))
    if path.exists() and not force:
        raise InputError(f"{path} is there already; name another --out, or use --force")
    check_target(path)
    if as_json:
        found = ladder.climb(chosen, path, lambda _: None)
        print_json(_summary(found))
        return found
    console = Console()
    console.print(_head(ladder.facts), highlight=False, markup=False)
    found = ladder.climb(chosen, path, lambda rung: _say(console, rung))
    console.print(f"\n{_sum_up(found)}\nwritten: {path}", highlight=False)
    return found


def _file_name(known: dict[str, Any]) -> str:
    card = str(known["card"] or known["backend"]).lower()
    return f"attest-{re.sub('[^a-z0-9]+', '-', card)}.json"


def _head(known: dict[str, Any]) -> str:
    if not known["card"]:
        return f"the emulated machine, NVRTC {known['nvrtc']}"
    return (
        f"{known['card']}, compute capability {known['compute_capability']}, driver "
        f"{known['driver']}, NVRTC {known['nvrtc']}"
    )


def _list(as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "name": each.name,
                    "proves": each.proves,
                    "on_hopper": each.on_hopper,
                    "why": each.why,
                    "limit_s": each.limit_s,
                    "seeded": each.seeded,
                    "parts": {name: list(rows) for name, rows in each.parts.items()},
                }
                for each in facts().values()
            ]
        )
        return
    rows = [(each.name, each.proves, _hopper(each)) for each in facts().values()]
    print_table(Console(), ("rung", "what it proves", "on Hopper"), rows)


def _hopper(each: Facts) -> str:
    return f"{each.on_hopper}: {each.why}" if each.why else each.on_hopper


def _say(console: Console, rung: RungAnswer) -> None:
    """Print one rung, and where it differs."""
    how = f" ({rung.how})" if rung.how else ""
    line = f"{rung.name:14} {rung.state}{how}, {rung.seconds:.1f} s"
    console.print(line, highlight=False, markup=False)
    if rung.detail:
        first = rung.detail.splitlines()[0]
        console.print(f"{'':14} {first}", highlight=False, markup=False)
    for part in rung.parts:
        if part.different:
            first = str(part.differences[0])
            count = f"{part.different} of {part.words.size} words differ"
            words = f"{'':14} {part.name}: {count}, first {first}"
            console.print(words, highlight=False, markup=False)


def _sum_up(found: Transcript) -> str:
    count: dict[str, int] = {}
    for rung in found.rungs:
        count[rung.state] = count.get(rung.state, 0) + 1
    return ", ".join(f"{number} {state}" for state, number in count.items())


def _summary(found: Transcript) -> dict[str, Any]:
    """Facts and states, without the words."""
    rungs_of = [rung.to_dict() for rung in found.rungs]
    for rung in rungs_of:
        for part in rung["parts"]:
            del part["words"]
    return {**found.facts, "complete": found.complete, "rungs": rungs_of}


def _report(judged: Judged, as_json: bool) -> None:
    """Print what a transcript says of the rungs and of the rows."""
    moves = judged.moves
    if as_json:
        rows = {
            row: {
                "verdict": move.verdict,
                "rung": move.rung,
                "part": move.part,
                "says": str(move),
            }
            for row, move in moves.items()
        }
        found = _summary(judged.transcript)
        print_json(found | {"stale": list(judged.stale), "rows": rows})
        return
    console = Console()
    found_in = judged.transcript
    console.print(_head(dict(found_in.facts)), highlight=False, markup=False)
    for rung in found_in.rungs:
        _say(console, rung)
    for name in judged.stale:
        console.print(
            f"{name}: asked otherwise today, so it says nothing; climb again",
            highlight=False,
        )
    if not found_in.complete:
        console.print("the ladder was not climbed to its end", highlight=False)
    console.print()
    table = [(row, str(move)) for row, move in moves.items()]
    print_table(console, ("row of the fidelity table", "what it says"), table)
