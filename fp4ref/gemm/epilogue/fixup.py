"""Part 7. fixup: how the splits of an output tile come together.

The first split with k-tiles stores its accumulators to the tile's place in the
workspace. Each one after it waits until the tile's lock says that all k-tiles before
its own are in, and adds: ``workspace + accumulator``. The last one keeps the sum and
computes the epilogue. So the sum is ``((s0 + s1) + s2) + ...`` in float32, whatever the
schedule.

CUTLASS adds in the workspace by ``red.global.add.f32``, which flushes subnormals; here
registers are added, which does not. Its waits and arrivals are those of
``cutlass/barrier.h``.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from fp4ref.gemm.epilogue.epilogue_state import Epilogue
from fp4ref.gemm.fusion.node import F32
from fp4ref.gemm.plan.warps import EPILOGUE_THREADS, WARP_THREADS, NamedBarrierId
from fp4ref.gemm.tile_grid import WorkTile
from fp4ref.hardware import gmem, named_barrier
from fp4ref.hardware.sm import Blocked
from fp4ref.numerics import add_f32

CHUNK = 4
"""Elements of an access of 16 bytes."""


class NoFixup:
    """Every work unit has all k-tiles of its output tile."""

    @staticmethod
    def computes_epilogue(e: Epilogue, work: WorkTile) -> bool:
        """Each one stores its tile."""
        return True

    @staticmethod
    def wait(e: Epilogue, work: WorkTile) -> Generator[Blocked, None, None]:
        """Wait for nobody."""
        yield from ()

    @staticmethod
    def load_add(e: Epilogue, work: WorkTile, subtile: int, acc: F32) -> F32:
        """Return the accumulators."""
        return acc

    @staticmethod
    def store(e: Epilogue, work: WorkTile, subtile: int, acc: F32) -> None:
        """Leave nothing."""

    @staticmethod
    def arrive(e: Epilogue, work: WorkTile) -> Generator[Blocked, None, None]:
        """Tell nobody."""
        yield from ()


class SplitKFixup:
    """A place in the workspace and a lock for each output tile."""

    @staticmethod
    def computes_epilogue(e: Epilogue, work: WorkTile) -> bool:
        """Whether this split has the tile's last k-tile."""
        return e.params.split_k.is_final_split(work.split)

    @staticmethod
    def wait(e: Epilogue, work: WorkTile) -> Generator[Blocked, None, None]:
        """Wait until the lock is this split's first k-tile: ``wait_eq``.

        One thread looks; the barrier passes on to the others what it has seen.
        """
        k_idx = e.params.split_k.k_idx(work.split)
        if not k_idx:
            return
        if e.issues_stores:
            yield from gmem.wait_eq(e.warp, lock_address(e, work), k_idx)
        yield from named_barrier.sync(
            e.warp, NamedBarrierId.EPILOGUE.value, EPILOGUE_THREADS
        )

    @staticmethod
    def load_add(e: Epilogue, work: WorkTile, subtile: int, acc: F32) -> F32:
        """Return workspace + accumulator; the first split's accumulators alone."""
        if not e.params.split_k.k_idx(work.split):
            return acc
        before = np.empty_like(acc)
        for chunk, columns in enumerate(_chunks(e)):
            addresses = sum_addresses(e, work, subtile, chunk)
            words = gmem.ld_each(e.warp, addresses, 4 * CHUNK)
            before[:, columns] = words.view(np.float32)
        return add_f32(before, acc)

    @staticmethod
    def store(e: Epilogue, work: WorkTile, subtile: int, acc: F32) -> None:
        """Write the sum to the workspace, 16 bytes of a thread at a time."""
        for chunk, columns in enumerate(_chunks(e)):
            addresses = sum_addresses(e, work, subtile, chunk)
            data = np.ascontiguousarray(acc[:, columns]).view(np.uint8)
            gmem.st(e.warp, addresses, data)

    @staticmethod
    def arrive(e: Epilogue, work: WorkTile) -> Generator[Blocked, None, None]:
        """Add this split's k-tiles to the lock, once all threads have stored.

        CUTLASS's ``arrive_inc``; the release covers what came before the barrier.
        """
        yield from named_barrier.sync(
            e.warp, NamedBarrierId.EPILOGUE.value, EPILOGUE_THREADS
        )
        if e.issues_stores:
            count = e.params.split_k.k_tile_count(work.split)
            gmem.red_release(e.warp, lock_address(e, work), count)


def _chunks(e: Epilogue) -> list[slice]:
    """Columns of a subtile by their 16 bytes."""
    return [slice(i, i + CHUNK) for i in range(0, e.storage.plan.subtile_n, CHUNK)]


def sum_addresses(
    e: Epilogue, work: WorkTile, subtile: int, chunk: int
) -> NDArray[np.int64]:
    """Global addresses of 16 bytes of each thread's sums: (32,).

    Threads lie next to each other, as in CUTLASS's ``BlockStriped``, so that a warp's
    access is one run of bytes.
    """
    plan = e.storage.plan
    place = e.params.grid.output_tile_index(work) * plan.sums_nbytes
    access = subtile * (plan.subtile_n // CHUNK) + chunk
    threads = e.lane + np.arange(WARP_THREADS, dtype=np.int64)
    offsets = 4 * CHUNK * (access * EPILOGUE_THREADS + threads)
    return e.params.workspace + place + offsets


def lock_address(e: Epilogue, work: WorkTile) -> int:
    """Global address of the tile's lock, behind the sums of all tiles."""
    grid = e.params.grid
    locks = e.params.workspace + grid.output_tiles * e.storage.plan.sums_nbytes
    return locks + 4 * grid.output_tile_index(work)
