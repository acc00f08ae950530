"""frames: the index of the 91 frames, from each claim to the code and the truth.

The source document follows one GEMM, `GemmConfig.example_72b` at 2048 x 2048 x 2048,
through eight Parts; each numbered section is a frame. The index also holds the entries
of the three warp loops, "5 ctx", "6 ctx" and "7 ctx". A frame is a Python function of
the emulator. What it leaves behind depends on its kind::

    frames.frame("6.7").truth               # what the document got wrong
    frames.events_of(run.trace, "6.7")      # EVENT: what a run did
    frames.show("3.7")                      # CONSTRUCTED, COND: values
    frames.derive("6.11", run.trace)        # DERIVED: computed from a trace
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Self

from fp4ref.errors import Fp4refError, InputError

if TYPE_CHECKING:
    from fp4ref.gemm.config import GemmConfig
    from fp4ref.trace import Event, Trace

Values = dict[str, Any]
"""JSON values: numbers, strings, lists and dicts of them."""


class FrameError(Fp4refError):
    """The index names a function that the code does not have."""


class FrameKind(Enum):
    """How a frame can be seen."""

    EVENT = "event"
    """A run emits it."""
    CONSTRUCTED = "constructed"
    """Set-up objects, shown by their values."""
    DERIVED = "derived"
    """A summary of a trace."""
    COND = "cond"
    """Only in some configurations."""


class Verdict(Enum):
    """Whether what the document says in a frame is so.

    A verdict is about the `claim` of the entry. It is measured on example 72b as
    CUTLASS 4.2.0 compiles it, and on the PTX text. A listing is taken by what it does,
    not by its lines. A value that the document takes over from another frame counts
    again. A frame that is right has no entry in the errata; every other frame has one.

    Attributes
    ----------
    meaning
        When a frame has this verdict.
    """

    RIGHT = ("right", "Everything in the claim is so.")
    NEARLY = (
        "nearly",
        "The same operation, by the same agent, on the same data; more than half of "
        "the claim is so, but a figure, a name or an order in it is not.",
    )
    WRONG = (
        "wrong",
        "The operation, the agent or the data are others, or half of the claim or more "
        "is not so.",
    )

    _value_: str
    meaning: str

    def __new__(cls, value: str, meaning: str = "") -> Self:
        """Make a member whose value is one word."""
        member = object.__new__(cls)
        member._value_ = value
        member.meaning = meaning
        return member


@dataclass(frozen=True, slots=True)
class Frame:
    """One entry of the index.

    Attributes
    ----------
    claim
        What the document says, in our words.
    truth
        What is so; a note, if any, where the document is right.
    source
        Where the truth is written: a part of the PTX ISA, or a CUTLASS file.
    emulator
        ``module:name`` of the Python function or class that is the frame.
    kernel
        Path of the CUDA twin; empty where there is none.
    cutlass
        File of CUTLASS in which the frame happens.
    operations
        Operations of the events that an EVENT frame emits.
    notebook
        Where it is taught.
    asks
        Fields of a configuration whose runs emit a frame that the default's do not:
        ``GemmConfig.nvfp4(**frame.asks)``. Empty for every other frame.
    """

    id: str
    part: int
    title: str
    kind: FrameKind
    verdict: Verdict
    claim: str
    source: str
    emulator: str
    cutlass: str
    notebook: str
    truth: str = ""
    kernel: str = ""
    operations: tuple[str, ...] = ()
    asks: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> Values:
        """Return the entry as JSON values."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return values | {
            "asks": dict(self.asks),
            "kind": self.kind.value,
            "verdict": self.verdict.value,
            "operations": list(self.operations),
        }


class _Index(Mapping[str, Frame]):
    """The frames by id, in the document's order; read from the file at first use."""

    @cached_property
    def _frames(self) -> dict[str, Frame]:
        text = files("fp4ref").joinpath("data", "frames.toml").read_text("utf-8")
        found = {}
        for entry in tomllib.loads(text)["frame"]:
            entry["kind"] = FrameKind(entry["kind"])
            entry["verdict"] = Verdict(entry["verdict"])
            entry["operations"] = tuple(entry.get("operations", ()))
            entry["asks"] = dict(entry.get("asks", {}))
            found[entry["id"]] = Frame(**entry)
        return found

    def __getitem__(self, id: str) -> Frame:
        return self._frames[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)


FRAMES: Mapping[str, Frame] = _Index()
"""All frames by id, in the document's order."""


def frame(id: str) -> Frame:
    """Return one frame.

    Raises
    ------
    InputError
        There is no such frame; the message names near ids.
    """
    found = FRAMES.get(id)
    if found is None:
        near = difflib.get_close_matches(str(id), FRAMES, n=4, cutoff=0.5)
        hint = f"near it: {', '.join(near)}" if near else "ids run from 1.1 to 8.10"
        raise InputError(f"no frame {id!r}; {hint}")
    return found


def resolve(which: Frame | str) -> Any:
    """Return the function, class or property of the emulator that is the frame.

    Raises
    ------
    FrameError
        The code does not have it any more.
    """
    entry = frame(which) if isinstance(which, str) else which
    module, _, names = entry.emulator.partition(":")
    try:
        found: Any = import_module(module)
        for name in names.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise FrameError(
            f"frame {entry.id} is {entry.emulator}, which does not exist: {error}"
        ) from None
    return found


def events_of(trace: Trace, id: str) -> list[Event]:
    """Events of `trace` that belong to an EVENT frame, in order.

    Other frames are emitted too if a configuration `asks` for them; a run of another
    one has none of theirs.

    Raises
    ------
    InputError
        No run emits the frame.
    """
    if not frame(id).asks:
        _require(frame(id), FrameKind.EVENT)
    return trace.select(frame=id)


def show(
    id: str,
    config: GemmConfig | None = None,
    m: int = 2048,
    n: int = 2048,
    k: int = 2048,
) -> Values:
    """Values of a CONSTRUCTED or COND frame, computed from the configuration.

    Parameters
    ----------
    config
        `GemmConfig.example_72b()` by default.
    m, n, k
        The problem. Values of one tile are those of tile (5, 0), or of the last tile
        of column 0 if there are fewer.

    Raises
    ------
    InputError
        The frame is of another kind.
    """
    _require(frame(id), FrameKind.CONSTRUCTED, FrameKind.COND)
    from fp4ref.frames.warp_frames import values_of

    return values_of(id, config, m, n, k)


def derive(id: str, trace: Trace) -> Values:
    """Counts and bytes of a DERIVED frame, computed from `trace`.

    Raises
    ------
    InputError
        The frame is of another kind.
    """
    entry = frame(id)
    _require(entry, FrameKind.DERIVED)
    found: Values = resolve(entry)(trace)
    return found


_USE = {
    FrameKind.EVENT: "events_of(trace, id)",
    FrameKind.CONSTRUCTED: "show(id)",
    FrameKind.COND: "show(id)",
    FrameKind.DERIVED: "derive(id, trace)",
}


def _require(entry: Frame, *kinds: FrameKind) -> None:
    if entry.kind not in kinds:
        raise InputError(
            f"frame {entry.id} ({entry.title}) is of kind {entry.kind.value}; use "
            f"{_USE[entry.kind]}"
        )
