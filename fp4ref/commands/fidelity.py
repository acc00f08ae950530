"""fidelity: on what each modelled rule rests, and what is not modelled."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json, print_table
from fp4ref.evidence import fidelity
from fp4ref.gaps import GAPS


def fidelity_command(
    gaps: Annotated[
        bool, typer.Option("--gaps", help="Only the list of what is not modelled.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say on what each modelled rule rests, and what is not modelled."""
    rules = fidelity.RULES
    if as_json:
        print_json([r.to_dict() for r in (GAPS if gaps else rules)])
        return
    console = Console()
    if not gaps:
        rows = [(r.operation, r.rule, _why(r), r.source) for r in rules]
        print_table(console, ("operation", "rule", "evidence", "source"), rows)
        for evidence, share in fidelity.shares().items():
            console.print(f"{share:6.1%}  {evidence.value}", highlight=False)
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


def _why(rule: fidelity.Rule) -> str:
    """Say on what a rule rests."""
    if not rule.killed_by:
        return rule.evidence.value
    return f"{rule.evidence.value}; without it, {rule.killed_by}"
