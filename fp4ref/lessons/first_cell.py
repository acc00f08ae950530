"""first_cell: the first cell of a notebook, which says what can run here."""

from __future__ import annotations

from fp4ref.device.compile import HOPPER, has_tcgen05, nvrtc_version
from fp4ref.device.diagnosis import doctor
from fp4ref.device.driver import find_gpu
from fp4ref.lessons.outline import LESSONS


def start(name: str) -> None:
    """Print what this notebook takes and what this machine can run; never fails.

    Parameters
    ----------
    name
        The notebook's file name without its suffix.
    """
    for line in (_about(name), *_facts()):
        print(line)


def _about(name: str) -> str:
    lesson = LESSONS.get(name)
    if lesson is None:
        return f"{name}: not one of the notebooks of fp4ref."
    needs = f"after {lesson.needs_in_words}" if lesson.needs else "needs no other"
    return f"{lesson.number}. {lesson.title}: {lesson.minutes} minutes, {needs}."


def _facts() -> list[str]:
    """Four lines at most, whatever this machine lacks."""
    try:
        found = doctor()
        gpu, nvrtc = find_gpu(), nvrtc_version()
    except Exception as error:  # a broken CUDA installation must not stop a reader
        return [f"This machine could not be looked at ({type(error).__name__})."]
    lines = [f"Python {found.python}; everything here runs on the CPU."]
    if nvrtc is None:
        lines.append("Kernel: packaged PTX on the emulated SM (NVRTC is missing).")
    else:
        lines.append(f"Kernel: compiled here by NVRTC {nvrtc}, or the packaged PTX.")
    if not gpu:
        lines.append(f"GPU: none is used; {_short(str(gpu))}.")
    elif has_tcgen05(gpu.capability):
        lines.append(f"GPU: {gpu}; the kernel can run on it too.")
    elif gpu.capability == HOPPER:
        lines.append(f"GPU: {gpu}; the kernel runs on it with a soft tensor core.")
    else:
        lines.append(f"GPU: {gpu}; it has no tcgen05, so the SM is emulated.")
    return lines


def _short(reason: str) -> str:
    """The first words of a driver's explanation."""
    return reason.partition(" (")[0]
