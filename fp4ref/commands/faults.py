"""faults: mistakes that kernels make, as riddles with the real output of a run."""

from __future__ import annotations

from typing import Annotated, Any, cast, get_args

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fp4ref.arguments import require_choice
from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json, print_table
from fp4ref.errors import InputError
from fp4ref.evidence.faults import GALLERY, Catch, Fault, fault, run_fault
from fp4ref.evidence.faults.gallery import FormName
from fp4ref.evidence.faults.kinds import KINDS


def faults_command(
    name: Annotated[
        str | None,
        typer.Argument(help="One mistake, for example expect-too-few."),
    ] = None,
    answer: Annotated[
        bool, typer.Option("--answer", help="Show cause, remedy and the changed line.")
    ] = False,
    backend: Annotated[
        str | None,
        typer.Option(help="emulator or ptx; the emulator where it has the mistake."),
    ] = None,
    schedule: Annotated[
        str, typer.Option(help="eager, late, timed or an integer seed.")
    ] = "eager",
    as_json: Json = False,
) -> None:
    """List the gallery of mistakes, or run one and show what catches it.

    Exit status 0 if the run catches it, 1 if it does not.
    """
    if name is None:
        if answer or backend:
            raise InputError("--answer, --backend: name a mistake too")
        _list(as_json)
        return
    found = fault(name)
    backend = next(iter(found.forms)) if backend is None else backend
    require_choice(backend, "--backend", get_args(FormName))
    form = cast("FormName", backend)
    catch = run_fault(found, form, schedule)
    if as_json:
        ran = {"backend": form, "schedule": schedule, "outcome": catch.to_dict()}
        print_json(found.to_dict() | ran)
    else:
        _riddle(found, form, schedule, catch)
        if answer:
            _answer(found, form)
        else:
            print(f"\nWhat is wrong? fp4ref faults {found.name} --answer")
    raise typer.Exit(1 if catch.silent else 0)


def _list(as_json: bool) -> None:
    """Print every mistake, and what it takes to see it."""
    if as_json:
        print_json([each.to_dict() for each in GALLERY.values()])
        return
    rows = []
    for each in GALLERY.values():
        caught = next(iter(each.forms.values())).caught
        what = caught.what if caught.by == "rule" else caught.by
        kinds = ", ".join(map(str, each.kinds))
        rows.append((each.name, kinds, what, ", ".join(each.forms), each.title))
    console = Console()
    headings = ("fault", "kind", "caught by", "forms", "what is wrong")
    print_table(console, headings, rows)
    console.print("\nKinds:")
    used = {kind for each in GALLERY.values() for kind in each.kinds}
    words = [(str(kind), KINDS[kind]) for kind in sorted(used)]
    print_table(console, ("kind", "what"), words)


def _riddle(found: Fault, form: str, schedule: str, catch: Catch) -> None:
    """Print what a user sees, and what the run says."""
    fields = {
        "fault": found.name,
        "symptom": found.symptom,
        "run": f"{found.subject_in_words}, {form}, schedule {schedule}",
    }
    if found.reports:
        fields["seen in"] = "\n".join(map(str, found.reports))
    _print(fields)
    print(f"\n{catch.report()}\n")
    _print({"look at": found.evidence})


def _answer(found: Fault, form: FormName) -> None:
    """Print the cause, and the line that should have been there."""
    caught = found.forms[form]
    change = caught.change
    sufferer = ", the statement that suffers" if caught.suffers else ""
    print()
    _print(
        {
            "what": found.title,
            "cause": found.cause,
            "remedy": found.remedy,
            "line": change.line,
            "wrong": change.wrong.strip("\n") or "(nothing)",
            "right": change.right.strip("\n"),
            "reported": f"{caught.place}{sufferer}",
        }
    )


def _print(fields: dict[str, Any]) -> None:
    """Print names and texts in two columns."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for label, text in fields.items():
        table.add_row(label, Text(text))
    Console().print(table, highlight=False, markup=False)
