"""classroom: the command line for a class.

``python -m fp4ref.lessons.classroom student`` writes the student edition, and
``python -m fp4ref.lessons.classroom grade FOLDER`` scores what comes back.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fp4ref.exit_status import Commands
from fp4ref.lessons.edition import NOTEBOOKS, student_edition
from fp4ref.lessons.grader import Graded, grade, submissions

app = typer.Typer(
    cls=Commands,
    help="The student edition of the notebooks, and the grader.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command("student")
def student_command(
    folder: Annotated[Path, typer.Argument(help="Where to write.")] = Path(
        "class/student"
    ),
    notebooks: Annotated[Path, typer.Option(help="The notebooks.")] = NOTEBOOKS,
    force: Annotated[bool, typer.Option(help="Overwrite changed files.")] = False,
    keep: Annotated[bool, typer.Option(help="Leave changed files.")] = False,
) -> None:
    """Write the notebooks without their solutions."""
    made = student_edition(notebooks, folder, force=force, keep=keep and not force)
    count = sum(path.suffix == ".ipynb" for path in made)
    kept = sum(path.suffix == ".ipynb" for path in folder.iterdir()) - count
    also = f"; {kept} kept as you left them (make class FORCE=1 renews them)"
    print(f"{count} notebooks without solutions in {folder}{also if kept else ''}")


@app.command("grade")
def grade_command(
    paths: Annotated[list[Path], typer.Argument(help="Notebooks, or folders of them.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    timeout: Annotated[int, typer.Option(help="Seconds for each cell.", min=1)] = 60,
) -> None:
    """Run submitted notebooks and score them.

    Exit status: 0 if each was graded, whatever its score; 1 if one could not be; 2 for
    bad input.
    """
    graded = []
    for name, path in list(submissions(paths)):
        graded.append(grade(name, path, timeout))
        if not as_json:
            print(_in_words(graded[-1]), flush=True)
    broken = sum(bool(each.broken) for each in graded)
    if as_json:
        report = {
            "submissions": [each.to_dict() for each in graded],
            "graded": len(graded) - broken,
            "broken": broken,
        }
        print(json.dumps(report, indent=2))
    raise typer.Exit(1 if broken else 0)


def _in_words(graded: Graded) -> str:
    score = f"{graded.passed} of {len(graded.exercises)}"
    lines = [f"{graded.file}: {graded.broken or score}"]
    for id, each in graded.exercises.items():
        lines.append(f"  {id} {'passed' if each.passed else f'not passed: {each.why}'}")
    return "\n".join(lines)


if __name__ == "__main__":
    app()
