"""process: run a CUDA program's executable with the stand-in runtime.

The program is an ordinary child process. The loader path puts the stand-in before any
real CUDA runtime; two pipes carry requests and answers; what it prints goes to a file.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fp4ref.cutlass.cudart import HEADER, Op, Runtime
from fp4ref.errors import InputError, NotModelled

PIPE_NBYTES = 1 << 20
"""Copies of megabytes go through a pipe; its usual 64 KiB make them a third slower."""

_CUDA_SYMBOL = re.compile(r"_*cu(?:da)?[A-Z]\w*$")


@dataclass(frozen=True)
class Ended:
    """How a program ended.

    Attributes
    ----------
    output
        What it printed, errors included.
    status
        Exit status; minus the signal's number if one killed it.
    reason
        Empty for exit status 0; else what happened, in words.
    seconds
        From start to end.
    """

    output: str
    status: int
    reason: str
    seconds: float


def cuda_symbols(file: Path, which: str) -> set[str]:
    """Return the CUDA functions that an ELF file defines or leaves undefined.

    Parameters
    ----------
    which
        ``"defined"`` or ``"undefined"``.

    Raises
    ------
    InputError
        nm, which comes with every compiler, is missing or does not know the file.
    """
    try:
        said = subprocess.run(
            ["nm", "-D", "--format=posix", f"--{which}-only", str(file)],
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise InputError("nm is not on the path; it comes with binutils") from None
    if said.returncode:
        raise InputError(said.stderr.strip())
    names = (line.split()[0].partition("@")[0] for line in said.stdout.splitlines())
    return {name for name in names if _CUDA_SYMBOL.match(name)}


def check_symbols(program: Path, library: Path) -> None:
    """Raise `NotModelled` if `program` calls CUDA functions that `library` lacks."""
    missing = cuda_symbols(program, "undefined") - cuda_symbols(library, "defined")
    if missing:
        raise NotModelled(
            f"the program calls {', '.join(sorted(missing))}",
            who=program.name,
            rule="the stand-in CUDA runtime has the calls that the known examples make",
            remedy="use another program",
            gap="cuda-runtime",
        )


def run_program(
    program: Path,
    arguments: Sequence[str],
    library: Path,
    runtime: Runtime,
    timeout: float = 600,
) -> Ended:
    """Run `program` to its end and answer its CUDA calls.

    Parameters
    ----------
    library
        The stand-in runtime, from `build_stand_in`.
    timeout
        Seconds that the program may compute between two CUDA calls; the time that
        kernels take here does not count.

    Raises
    ------
    NotModelled
        It calls CUDA functions that the stand-in lacks; it is not started.
    InputError
        A hook of the caller cannot be used.
    """
    check_symbols(program, library)
    start = time.monotonic()
    with tempfile.TemporaryFile() as output:
        child, requests, answers = _start(
            [program, *arguments], library, runtime.multiprocessors, output
        )
        reason = ""
        try:
            _serve(requests, answers, runtime, timeout)
            child.wait(timeout)
        except (TimeoutError, subprocess.TimeoutExpired):
            reason = f"the program made no CUDA call for {timeout:g} s, and was ended"
        finally:
            os.close(requests)
            os.close(answers)
            if child.poll() is None:
                child.kill()
                child.wait()
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Ended(
        text,
        child.returncode,
        reason or _in_words(child.returncode),
        time.monotonic() - start,
    )


def _start(
    command: Sequence[Path | str],
    library: Path,
    multiprocessors: int,
    output: IO[bytes],
) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start a program; return it, the pipe of its requests, and that of the answers."""
    import fcntl  # absent on Windows, where nothing of this can be built

    from_child, child_out = os.pipe()
    child_in, to_child = os.pipe()
    for end in (from_child, to_child):
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, PIPE_NBYTES)
    paths = [str(library.parent), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    environment = os.environ | {
        "LD_LIBRARY_PATH": ":".join(paths),
        "FP4REF_CUDART": f"{child_in},{child_out},{multiprocessors}",
    }
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            pass_fds=(child_in, child_out),
        )
    except BaseException:
        os.close(from_child)
        os.close(to_child)
        raise
    finally:
        os.close(child_in)
        os.close(child_out)
    return child, from_child, to_child


def _in_words(status: int) -> str:
    if status < 0:
        return f"the program was killed by {signal.Signals(-status).name}"
    return f"the program ended with exit status {status}" if status else ""


def _serve(requests: int, answers: int, runtime: Runtime, timeout: float) -> None:
    """Answer requests until the program closes its end.

    Raises
    ------
    TimeoutError
        No request came in time.
    """
    while header := _receive(requests, HEADER.size, timeout):
        op, _, nbytes = HEADER.unpack(header)
        body = _receive(requests, nbytes, timeout)
        if body is None:
            return
        status, answer = runtime.answer(Op(op), body)
        try:
            _send(answers, HEADER.pack(0, status, len(answer)) + answer)
        except BrokenPipeError:
            return


def _receive(requests: int, nbytes: int, timeout: float) -> bytes | None:
    """Return `nbytes` bytes, or None if the program has ended before them."""
    data = bytearray()
    while len(data) < nbytes:
        if not select.select([requests], [], [], timeout)[0]:
            raise TimeoutError
        part = os.read(requests, min(nbytes - len(data), PIPE_NBYTES))
        if not part:
            return None
        data += part
    return bytes(data)


def _send(answers: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(answers, view) :]
