"""code_page: the function of each frame, in Python and in CUDA, with line numbers."""

from __future__ import annotations

from itertools import groupby

from wording import FILTER, code_anchor, frame_link, plain

from fp4ref.cuda_kernel.twins import twin
from fp4ref.frames import FRAMES
from fp4ref.lessons.show import Excerpt, cuda_excerpt, python_excerpt


def page() -> str:
    """Return every function once, by module, in the order of the frames."""
    names = dict.fromkeys(frame.emulator for frame in FRAMES.values())
    modules = list(dict.fromkeys(_module(name) for name in names))
    blocks = [FILTER]
    in_order = sorted(names, key=lambda name: modules.index(_module(name)))
    for module, group in groupby(in_order, key=_module):
        blocks.append(f"## {plain(module.removeprefix('fp4ref.'))}")
        blocks += [_section(name) for name in group]
    return "\n\n".join(blocks) + "\n"


def _module(name: str) -> str:
    return name.partition(":")[0]


def _section(name: str) -> str:
    frames = [frame_link(f) for f in FRAMES.values() if f.emulator == name]
    plural = "s" if len(frames) > 1 else ""
    lines = [
        f"({code_anchor(name)})=",
        f"### {plain(name.partition(':')[2])}",
        "",
        f"Frame{plural} {', '.join(frames)}.",
        "",
        _listing(python_excerpt(name)),
        "",
    ]
    if twin(name) is None:
        lines.append("The host does this; the kernel has no twin of it.")
    else:
        lines.append(_listing(cuda_excerpt(name)))
    return "\n".join(lines)


def _listing(found: Excerpt) -> str:
    first = found.place.rpartition(":")[2].partition("-")[0]
    options = f":linenos:\n:lineno-start: {first}\n:caption: {found.place}\n"
    return f"````{{code-block}} {found.language}\n{options}\n{found.text}\n````"
