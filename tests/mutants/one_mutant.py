"""one_mutant: tests on one mutant, in a process of its own, up to the first failure.

The changed file is written to a copy of the tree, never to the tree itself. The process
is forked from one that has the large libraries loaded; it has a limit of CPU time, of
waiting time and of memory, since a wrong rule may loop, hang or ask for anything.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

MEMORY = 8 << 30
FORK = multiprocessing.get_context("forkserver")
# Hypothesis too: as a plugin of pytest its 120 files would be rewritten each time.
FORK.set_forkserver_preload(["numpy", "numba", "pytest", "hypothesis"])


@dataclass
class Verdict:
    """What the tests said of a mutant.

    Attributes
    ----------
    verdict
        ``killed``, ``survived``, or ``limit`` for time or memory, which kills too.
    by
        The test that failed, or what happened when the tests were read.
    how
        The exception.
    seconds
        CPU time of all that ran.
    """

    verdict: str
    by: str = ""
    how: str = ""
    seconds: float = 0.0
    tests: int = 0

    def after(self, earlier: Verdict) -> Verdict:
        """Return this verdict with what the earlier ones took beside its own."""
        seconds = round(self.seconds + earlier.seconds, 1)
        return replace(self, seconds=seconds, tests=self.tests + earlier.tests)


class First:
    """A pytest plugin: keep the wanted tests, in their order, and note a failure."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self.order = {test: i for i, test in enumerate(wanted)}
        self.by = self.how = ""
        self.ran = 0

    def pytest_configure(self, config: pytest.Config) -> None:
        """Give Hypothesis the same examples for each mutant, and no store."""
        config.addinivalue_line("markers", "xdist_group(name): together")
        from hypothesis import settings

        settings.register_profile("mutants", database=None, derandomize=True)
        settings.load_profile("mutants")

    def _place(self, test: str) -> int:
        """Where a test stands, by itself or with all of its file; -1: not wanted."""
        return self.order.get(test, self.order.get(test.partition("::")[0], -1))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave what touches the line, file by file, cheapest first."""
        items[:] = [item for item in items if self._place(item.nodeid) >= 0]
        items.sort(key=lambda item: self._place(item.nodeid))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that cannot be imported any more is a failure."""
        if report.failed and not self.by:
            last = str(report.longrepr).strip().splitlines()[-1]
            self.by, self.how = f"reading {report.nodeid}", last[:120]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        """Note the first test that fails."""
        report = yield
        self.ran += call.when == "call"
        if report.failed and not self.by:  # type: ignore[attr-defined]
            self.by = item.nodeid
            said = call.excinfo.exconly() if call.excinfo else ""
            self.how = said.strip().partition("\n")[0][:120]
        return report


def _child(
    tree: str,
    tests: list[str],
    limit: int,
    environment: dict[str, str],
    answer: Connection,
) -> None:
    """Run the tests; in the new process."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 2))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.environ.update(environment, PYTHONPATH=tree, PYTHONDONTWRITEBYTECODE="1")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.chdir(tree)
    sys.dont_write_bytecode = True
    sys.path.insert(0, tree)
    plugin = First(tests)
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=short"]
    status = pytest.main([*options, *files], plugins=[plugin])
    if status and not plugin.by:
        plugin.by, plugin.how = "pytest itself", f"status {int(status)}"
    own, below = (os.times().user + os.times().system, os.times().children_user)
    answer.send((plugin.by, plugin.how, plugin.ran, round(own + below, 1)))


@contextmanager
def changed(tree: Path, file: str, text: str) -> Iterator[None]:
    """Write one file of the copy and put the right one back, with its time."""
    path = tree / file
    right, times = path.read_bytes(), path.stat()
    path.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        path.write_bytes(right)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def verdict(
    tree: Path, tests: list[str], limit: int, environment: dict[str, str]
) -> Verdict:
    """Run tests in the tree as it is, in a process that is ended at the limit."""
    answer, theirs = FORK.Pipe(duplex=False)
    arguments = (str(tree), tests, limit, environment, theirs)
    process = FORK.Process(target=_child, args=arguments)
    process.start()
    theirs.close()
    said = None
    # Other processes share the cores: waiting is not work, so more of it is allowed.
    with suppress(EOFError):
        if answer.poll(6 * limit + 60):
            said = answer.recv()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # what its tests started, too
    process.join()
    if said is None:
        return Verdict("limit", "the limit of time or memory", "", limit, len(tests))
    by, how, ran, seconds = said
    return Verdict("killed" if by else "survived", by, how, seconds, ran)
