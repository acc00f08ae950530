"""kernels: run notebooks in kernels that talk through files, with no network at all."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from uuid import uuid4

import jupyter_client
from traitlets import default

_SOCKETS = tempfile.mkdtemp(prefix="fp4ref-")
atexit.register(shutil.rmtree, _SOCKETS, ignore_errors=True)


class FileKernelManager(jupyter_client.AsyncKernelManager):
    """Starts a kernel on sockets in the file system; not even a loopback is used."""

    @default("transport")
    def _through_files(self) -> str:
        return "ipc"

    @default("ip")
    def _socket_path(self) -> str:
        return str(Path(_SOCKETS) / uuid4().hex)


def use_files() -> None:
    """Make nbclient start such kernels, where there are such sockets."""
    if os.name == "posix":
        jupyter_client.AsyncKernelManager = FileKernelManager  # type: ignore[misc]
