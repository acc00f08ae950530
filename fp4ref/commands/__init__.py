"""commands: the command line, one module a command.

A new command is a new module here with its function, and one line in `COMMANDS`. Exit
status 0 is right, 1 a difference or a fault, 2 bad input; see `exit_status`. Only
`check` has a 3: what it was given is not modelled.
"""

from __future__ import annotations

from collections.abc import Callable

import typer

from fp4ref.commands.attest import attest_command
from fp4ref.commands.bench import bench_command
from fp4ref.commands.certify import certify_command
from fp4ref.commands.check import check_command
from fp4ref.commands.compare import compare_command
from fp4ref.commands.cutlass import cutlass_command
from fp4ref.commands.doctor import doctor_command
from fp4ref.commands.epilogue import epilogue_command
from fp4ref.commands.error import error_command
from fp4ref.commands.faults import faults_command
from fp4ref.commands.fidelity import fidelity_command
from fp4ref.commands.frames import frames_command
from fp4ref.commands.lab import lab_command
from fp4ref.commands.plan import plan_command
from fp4ref.commands.recipes import recipes_command
from fp4ref.commands.sass import sass_command
from fp4ref.commands.smoke import smoke_command
from fp4ref.commands.triage import triage_command
from fp4ref.commands.walk import walk_command
from fp4ref.exit_status import Commands

app = typer.Typer(
    cls=Commands,
    help="A readable, bit-exact reference for the Blackwell NVFP4 block-scaled GEMM. "
    "Exit status: 0 right, 1 a difference or a fault, 2 bad input.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

COMMANDS: dict[str, Callable[..., None]] = {
    "walk": walk_command,
    "smoke": smoke_command,
    "cutlass": cutlass_command,
    "sass": sass_command,
    "check": check_command,
    "compare": compare_command,
    "triage": triage_command,
    "certify": certify_command,
    "doctor": doctor_command,
    "plan": plan_command,
    "epilogue": epilogue_command,
    "frames": frames_command,
    "recipes": recipes_command,
    "error": error_command,
    "bench": bench_command,
    "lab": lab_command,
    "fidelity": fidelity_command,
    "attest": attest_command,
    "faults": faults_command,
}
"""Every command, in the order of the help."""

for _name, _command in COMMANDS.items():
    app.command(_name)(_command)


def main() -> None:
    """Run the command line."""
    app()
