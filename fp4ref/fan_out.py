"""fan_out: one function over many arguments: here, in processes, or on a cluster.

    neither                  one after another, in this process
    workers                  so many processes of this machine, through Dask
    scheduler                the workers of a Dask cluster that runs already

Which worker takes which argument changes no result. An argument whose worker is lost is
given to another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from fp4ref.arguments import require_integer
from fp4ref.errors import Fp4refError, InputError

if TYPE_CHECKING:
    from distributed import Client

Argument = TypeVar("Argument")
Result = TypeVar("Result")

INSTALL: Final = "pip install 'fp4ref[dask]'"
MOST_WORKERS: Final = 256
SECONDS_TO_CONNECT: Final = 10
_CONNECT: Final = "distributed.comm.timeouts.connect"
_NO_PORT: Final = "127.0.0.1:0"
"""Of Dask's own pages; None would ask for one that others may have."""
_QUEUED: Final = "distributed.scheduler.worker-saturation"
_LEAVE_CTRL_C: Final = "import signal; signal.signal(signal.SIGINT, lambda *_: None)"
"""In each worker: a terminal sends it to all, and this process ends them."""


class WorkersLost(Fp4refError):
    """Workers or the scheduler went away, and what they had to do is not done."""


def fan_out(
    function: Callable[[Argument], Result],
    arguments: Sequence[Argument],
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    done: Callable[[int, Result], None] = lambda index, result: None,
) -> list[Result]:
    """Return the function's results, in the order of the arguments.

    Parameters
    ----------
    function
        Of a module, so that another process can import it.
    workers
        Processes of this machine, 1 to 256; one thread each.
    scheduler
        Address of a Dask scheduler, as ``tcp://host:8786``.
    done
        Called in this process with an argument's index and its result as soon as it is
        there, in any order.

    Raises
    ------
    InputError
        Both are given, Dask is not installed, or no scheduler answers.
    WorkersLost
        An argument ended several workers, or the scheduler went away.
    """
    if workers is not None and scheduler is not None:
        raise InputError("give workers for processes here, or a scheduler, not both")
    found: dict[int, Result] = {}

    def take(index: int, result: Result) -> None:
        found[index] = result
        done(index, result)

    if workers is None and scheduler is None:
        for index, argument in enumerate(arguments):
            take(index, function(argument))
    else:
        if workers is not None:
            require_integer(workers, "workers", 1, MOST_WORKERS)
        with _client(workers, scheduler) as client:
            _spread(client, function, arguments, take)
    return [found[index] for index in range(len(arguments))]


@contextmanager
def _client(workers: int | None, scheduler: str | None) -> Iterator[Client]:
    """Start processes or find a cluster; leave nothing running that began here."""
    try:
        from dask import config
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError(
            "workers and a scheduler need Dask, which is not installed; run: "
            f"{INSTALL}. Without them everything runs in this process"
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    patience = f"{SECONDS_TO_CONNECT}s"
    with ExitStack() as open_now:
        # How long a result is asked for of a worker that has ended; and nothing waits
        # at a worker, where it would be blamed for the worker's end.
        open_now.enter_context(config.set({_CONNECT: patience, _QUEUED: 1.0}))
        if scheduler is None:
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address=_NO_PORT,
                silence_logs=logging.CRITICAL,
                preload=_LEAVE_CTRL_C,
            )
            yield open_now.enter_context(Client(open_now.enter_context(cluster)))
            return
        try:
            client = Client(scheduler, timeout=patience)
        except (OSError, ValueError, TypeError):
            raise InputError(
                f"scheduler {scheduler!r:.80}: no Dask scheduler answers there within "
                f"{SECONDS_TO_CONNECT} s; give its address as `dask scheduler` prints "
                "it, tcp://host:8786"
            ) from None
        yield open_now.enter_context(client)


def _spread(
    client: Client,
    function: Callable[[Argument], Result],
    arguments: Sequence[Argument],
    take: Callable[[int, Result], None],
) -> None:
    """Give every argument to some worker, and take what comes back."""
    from distributed import KilledWorker, as_completed

    futures = [client.submit(function, each, pure=False) for each in arguments]
    index_of = {future.key: index for index, future in enumerate(futures)}
    try:
        for future in as_completed(futures):
            take(index_of[future.key], future.result())
            future.release()  # no worker needs to keep it
    except KilledWorker as killed:
        which = arguments[index_of[killed.task]] if killed.task in index_of else "it"
        raise WorkersLost(
            f"{which!s:.120}: several workers ended while they had it; is there memory "
            "enough?"
        ) from None
    except (asyncio.CancelledError, OSError):
        if client.status == "running":
            raise
        raise WorkersLost("the scheduler went away before all was done") from None
    finally:
        client.cancel(futures, force=True)
