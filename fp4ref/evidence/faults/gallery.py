"""gallery: mistakes in kernels, each with what a user sees and what catches it.

A row of the files in ``rows`` is one mistake. It changes one place of
the emulator and one of the CUDA kernel; where these have no such line, of a small
program in ``programs``. Without the change the same code is the row's clean twin.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal, get_args

from fp4ref.errors import InputError
from fp4ref.evidence.faults.change import Change, line_of
from fp4ref.evidence.faults.place import EXIT
from fp4ref.evidence.faults.reports import REPORTS, Report

FormName = Literal["emulator", "ptx"]
By = Literal["rule", "compare", "advisory", "review"]
GEMM = "gemm"


@dataclass(frozen=True, slots=True)
class Caught:
    """What catches a mistake.

    Attributes
    ----------
    by
        ``"rule"``: the machine refuses it. ``"compare"``: the kernel only computes
        something else, which `fp4ref.compare` sees. ``"advisory"``: it is counted.
        ``"review"``: the text does not say whether it may happen.
    what
        Class of the fault; the first wrong hardware event; the advisory; or the failure
        class of what is to be reviewed.
    says
        Words that the report has.
    """

    by: By
    what: str
    says: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """A mistake in one of its two forms.

    Attributes
    ----------
    suffers
        Text of the statement that the report names, where that is not the changed line
        but one that suffers from it; or `EXIT`.
    suffers_in
        Its file.
    """

    change: Change
    caught: Caught
    suffers: str = ""
    suffers_in: str = ""

    @property
    def place(self) -> str:
        """``file:line`` of the statement that the report names, or `EXIT`."""
        if self.suffers in ("", EXIT):
            return self.suffers or self.change.line
        return line_of(self.suffers_in, self.suffers)


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake of the gallery.

    Attributes
    ----------
    kinds
        Numbers of the kinds of mistakes in the gallery's index.
    symptom, evidence, cause, remedy
        What a user sees; which output shows it; why; and the line that should have
        been there.
    subject
        ``"gemm"``, or the name of a program.
    shape, config, sms
        Of a GEMM: (M, N, K), what its configuration changes, and the machine.
    forms
        ``"emulator"`` and ``"ptx"``, or only the second.
    field
        Ids of the public reports that it stands for.
    """

    name: str
    title: str
    kinds: tuple[int, ...]
    symptom: str
    evidence: str
    cause: str
    remedy: str
    subject: str
    shape: tuple[int, int, int]
    config: Mapping[str, Any]
    sms: int
    forms: Mapping[FormName, Form]
    field: tuple[str, ...] = ()

    @property
    def reports(self) -> tuple[Report, ...]:
        """Public reports that it stands for."""
        return tuple(REPORTS[id] for id in self.field)

    @property
    def subject_in_words(self) -> str:
        """Which kernel has the mistake."""
        if self.subject != GEMM:
            return f"program {self.subject}"
        sizes = "x".join(map(str, self.shape))
        asked = ", ".join(f"{key}={value}" for key, value in self.config.items())
        return f"GEMM {sizes} with {asked}" if asked else f"GEMM {sizes}"

    def form(self, backend: FormName) -> Form:
        """Return a form.

        Raises
        ------
        InputError
            The mistake has only the other one.
        """
        if backend not in self.forms:
            raise InputError(
                f"{self.name} lives on single lanes, which the emulator's warps do not "
                "have; run it with --backend ptx"
            )
        return self.forms[backend]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        plain = {
            name: getattr(self, name)
            for name in self.__slots__
            if name not in ("forms", "config")
        }
        forms = {
            name: {
                "file": form.change.file,
                "right": form.change.right,
                "wrong": form.change.wrong,
                "changed": form.change.line,
                "place": form.place,
                "suffers": bool(form.suffers),
                "caught_by": form.caught.by,
                "caught": form.caught.what,
                "says": form.caught.says,
            }
            for name, form in self.forms.items()
        }
        reports = [each.to_dict() for each in self.reports]
        config = dict(self.config)
        return plain | {"config": config, "reports": reports, "forms": forms}


def _fault(name: str, row: dict[str, Any]) -> Fault:
    """Read one row."""
    run = row.pop("run", {})
    caught = row.pop("caught")
    forms = {
        form: _form(row.pop(form), caught) for form in get_args(FormName) if form in row
    }
    words = {key: value.strip() for key, value in row.items() if isinstance(value, str)}
    lists: dict[str, Any] = {k: tuple(v) for k, v in row.items() if k not in words}
    return Fault(
        name,
        **{"subject": GEMM} | words | lists,
        shape=tuple(run.get("shape", (128, 128, 512))),
        config=MappingProxyType(run.get("config", {})),
        sms=run.get("sms", 1),
        forms=MappingProxyType(forms),
    )


def _form(row: dict[str, Any], caught: dict[str, str]) -> Form:
    """Read one form: the text of the change, and where it shows."""
    change = Change(row["file"], row["right"], row["wrong"])
    caught = row.get("caught", caught)
    by, what = next((by, caught[by]) for by in get_args(By) if by in caught)
    kind = Caught(by, what, caught.get("says", ""))
    return Form(change, kind, row.get("at", ""), row.get("at_file", change.file))


def _read() -> dict[str, Fault]:
    folder = resources.files("fp4ref.evidence.faults") / "rows"
    found: dict[str, Fault] = {}
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        for name, row in tomllib.loads(file.read_text(encoding="utf-8")).items():
            found[name] = _fault(name, row)
    return found


GALLERY: Mapping[str, Fault] = MappingProxyType(_read())
"""Every mistake, by name."""


def fault(name: object) -> Fault:
    """Return a mistake of the gallery.

    Raises
    ------
    InputError
        There is none of that name; the message has the nearest one.
    """
    if found := GALLERY.get(str(name)):
        return found
    near = difflib.get_close_matches(str(name), GALLERY, n=1, cutoff=0.0)
    raise InputError(
        f"no fault {str(name)[:60]!r} in the gallery of {len(GALLERY)}; the nearest "
        f"name is {near[0]}"
    )
