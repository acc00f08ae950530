"""fidelity: on what each modelled rule rests, and what is not modelled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fp4ref.attest.verdict import judge
from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json, print_table
from fp4ref.evidence import fidelity
from fp4ref.evidence.attested import Move
from fp4ref.evidence.transcript import read
from fp4ref.gaps import GAPS


def fidelity_command(
    gaps: Annotated[
        bool, typer.Option("--gaps", help="Only the list of what is not modelled.")
    ] = False,
    transcript: Annotated[
        Path | None,
        typer.Option(
            help="Apply what fp4ref attest wrote on a card.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say on what each modelled rule rests, and what is not modelled."""
    rules = fidelity.RULES
    moves = _moves(transcript) if transcript else {}
    if as_json:
        rows_of = GAPS if gaps else rules
        moved = {row: {"transcript": str(move)} for row, move in moves.items()}
        print_json([r.to_dict() | moved.get(r.id, {}) for r in rows_of])
        return
    console = Console()
    if not gaps:
        why = {r.id: _why(r) for r in rules} | moves
        rows = [(r.operation, r.rule, str(why[r.id]), r.source) for r in rules]
        print_table(console, ("operation", "rule", "evidence", "source"), rows)
        for words, share in _shares(moves).items():
            console.print(f"{share:6.1%}  {words}", highlight=False)
        _print_default_gemm(console)
        console.print(
            "--json also gives each row's test, and the change of the code that it sees"
        )
        console.print("\nNot modelled:")
    use = {True: "refused by name", False: "goes unseen"}
    rows = [(g.id, g.operation, g.what, use[g.refused]) for g in GAPS]
    print_table(console, ("gap", "operation", "what", "its use"), rows)


def _print_default_gemm(console: Console) -> None:
    """Print what is known of the rules that the default GEMM needs."""
    rules = fidelity.of_default_gemm()
    console.print(
        f"\nThe default GEMM needs {len(rules)} of the {len(fidelity.RULES)} rules: "
        "with one of them made wrong it ends otherwise.",
        highlight=False,
    )
    for each, found in fidelity.standings(rules).items():
        console.print(f"{len(found):4}  {each.value}", highlight=False)
    console.print(
        f"{fidelity.known_share(rules):6.1%}  measured on sm_90, or an outside kernel "
        "fails",
        highlight=False,
    )


def _moves(path: Path) -> dict[str, Move]:
    """Return the rows that a transcript measures or contradicts."""
    judged = judge(read(path))
    firm = ("measured", "contradicted")
    return {row: m for row, m in judged.moves.items() if m.verdict in firm}


def _shares(moves: Mapping[str, Move]) -> dict[str, float]:
    """Fraction of the rules in each class, with a transcript applied."""
    counts = dict.fromkeys((each.value for each in fidelity.Evidence), 0)
    for rule in fidelity.RULES:
        words = rule.evidence.value
        if move := moves.get(rule.id):
            contradicted = move.verdict == "contradicted"
            words = (
                "contradicted by the transcript"
                if contradicted
                else f"measured on {move.target}"
            )
        counts[words] = counts.get(words, 0) + 1
    return {words: count / len(fidelity.RULES) for words, count in counts.items()}


def _why(rule: fidelity.Rule) -> str:
    """Say on what a rule rests."""
    if not rule.killed_by:
        return rule.evidence.value
    return f"{rule.evidence.value}; without it, {rule.killed_by}"
