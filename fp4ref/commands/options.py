"""options: options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program.")]
Sms = Annotated[int, typer.Option(help="SMs of the emulated GPU, 1 to 160.")]
Force = Annotated[bool, typer.Option(help="Overwrite files.")]
