"""fan_out: here, in processes or on a cluster the results are the same."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from fp4ref import fan_out as module
from fp4ref.errors import InputError
from fp4ref.fan_out import WorkersLost, fan_out


def squared(n: int) -> tuple[int, int]:
    """The square, and who computed it."""
    return n * n, os.getpid()


def ends_its_worker(n: int) -> int:
    """What a shortage of memory does."""
    if n == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers on a cluster that runs already."""
    dask = pytest.importorskip("distributed", reason=module.INSTALL)
    with dask.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as running:
        yield running


def test_without_workers_it_is_a_loop_here() -> None:
    told: list[int] = []
    found = fan_out(squared, range(5), done=lambda index, result: told.append(index))
    assert found == [(n * n, os.getpid()) for n in range(5)]
    assert told == list(range(5))


def test_an_ended_worker_loses_nothing(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SECONDS_TO_CONNECT", 2)
    ended: list[int] = []

    def end_the_first(index: int, result: tuple[int, int]) -> None:
        if not ended:
            ended.append(result[1])
            os.kill(result[1], signal.SIGKILL)

    address = cluster.scheduler_address
    found = fan_out(squared, range(40), scheduler=address, done=end_the_first)
    assert [square for square, _ in found] == [n * n for n in range(40)]
    assert len({who for _, who in found} - {os.getpid()}) > 1
    assert ended


def test_an_argument_that_ends_every_worker_is_named(cluster: Any) -> None:
    with pytest.raises(WorkersLost, match=r"^3: several workers ended"):
        fan_out(ends_its_worker, [3], scheduler=cluster.scheduler_address)


def test_among_others_it_or_one_beside_it_is_named(cluster: Any) -> None:
    """One that waited at the same worker: Dask does not know which it was."""
    with pytest.raises(WorkersLost, match=r"^[0-4]: several workers ended"):
        fan_out(ends_its_worker, range(5), scheduler=cluster.scheduler_address)


def test_an_error_is_the_functions_own(cluster: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        fan_out(divided, [1, 0], scheduler=cluster.scheduler_address)


def divided(n: int) -> float:
    return 1 / n


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"workers": 2, "scheduler": "tcp://127.0.0.1:1"}, "not both"),
        ({"workers": 0}, "workers: 0; need a whole number of at least 1"),
        ({"scheduler": "tcp://127.0.0.1:1"}, "no Dask scheduler answers there"),
        ({"scheduler": "no such"}, "no Dask scheduler answers there"),
    ],
)
def test_what_cannot_be_used_is_refused(
    options: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed", reason=module.INSTALL)
    monkeypatch.setattr(module, "SECONDS_TO_CONNECT", 0.2)
    with pytest.raises(InputError, match=why):
        fan_out(squared, [1], **options)


def test_without_dask_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"run: pip install 'fp4ref\[dask\]'"):
        fan_out(squared, [1], workers=2)
