"""doctor: what this machine can run."""

from __future__ import annotations

from fp4ref.commands.options import Json
from fp4ref.commands.printing import print_json
from fp4ref.device.diagnosis import doctor


def doctor_command(as_json: Json = False) -> None:
    """Say what this machine can run."""
    diagnosis = doctor()
    if as_json:
        print_json(diagnosis.to_dict())
    else:
        print(diagnosis)
