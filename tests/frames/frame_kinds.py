"""frame_kinds: the frames of each kind, and their ids."""

from __future__ import annotations

from fp4ref.frames import FRAMES, Frame, FrameKind

KINDS = {kind: [f for f in FRAMES.values() if f.kind is kind] for kind in FrameKind}


def ids(entries: list[Frame]) -> list[str]:
    return [entry.id for entry in entries]
