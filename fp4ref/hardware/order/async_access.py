"""async_access: one asynchronous operation, whose bytes are checked at its issue.

The unit may read and write at any time from the issue to the completion, so the bytes
are in use from the issue on. Whoever touches them later must have the operation's id,
which only its completion mechanism gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fp4ref.hardware.order.access import SCOPES
from fp4ref.hardware.order.book import Bytes, Where
from fp4ref.hardware.order.knowledge import (
    ASYNC,
    GENERIC,
    TENSOR,
    UMMA,
    Actor,
    Knowledge,
)
from fp4ref.hardware.order.released import EVERYWHERE
from fp4ref.hardware.order.thread_order import ThreadOrder
from fp4ref.trace import Range


@dataclass(slots=True, eq=False)
class AsyncAccess:
    """The accesses of one operation, or of one of its two milestones.

    Attributes
    ----------
    lane
        Lanes that issued it, as bits: one, or a whole warp.
    proxy
        Set of the issuer's knowledge for shared and global memory.
    memory_id, tensor_id
        Ids of its accesses to memory and to TMEM; -1 for none.
    facts
        Operands that the pipeline order looks at.
    """

    order: ThreadOrder
    actor: Actor
    operation: str
    lane: int
    proxy: int = ASYNC
    facts: Mapping[str, Any] = field(default_factory=dict)
    memory_id: int = -1
    tensor_id: int = -1
    number: int = 0
    _first: str = ""

    def reads(
        self, memory: Bytes, *where: Where, lanes: Sequence[int] | None = None
    ) -> None:
        """Note what it reads; `lanes`, as bits, says which one reads each part."""
        self._touch(memory, where, False, lanes)

    def writes(
        self, memory: Bytes, *where: Where, lanes: Sequence[int] | None = None
    ) -> None:
        """Note what it writes; `lanes`, as bits, says which one writes each part."""
        self._touch(memory, where, True, lanes)

    def reduces(self, memory: Bytes, where: Where, element_nbytes: int) -> None:
        """Note a reduction: each element is one relaxed operation of ``.gpu``."""
        strong = {"scope": SCOPES["gpu"], "width": element_nbytes}
        self._touch(memory, (where,), True, None, **strong)

    def _touch(
        self,
        memory: Bytes,
        parts: Sequence[Where],
        is_write: bool,
        lanes: Sequence[int] | None,
        **strong: int,
    ) -> None:
        order = self.order
        tensor = memory.space.startswith("tmem")
        view = self.proxy
        if tensor:
            view = UMMA if self.operation in ("tcgen05.mma", "tcgen05.cp") else TENSOR
        base = self._id(tensor, memory.space)
        access = order.enter(
            self.actor,
            base,
            1,
            self.operation,
            is_write,
            view=view,
            issuer=self.lane,
            facts=self.facts,
            **strong,
        )
        self.number = access.number
        mine = lanes or [self.lane] * len(parts)
        for where, lane in zip(parts, mine, strict=True):
            if tensor and isinstance(where, Range):
                order.check_alloc(access, memory, where)
            order.touch(access, memory, where, (lane,), view)

    def _id(self, tensor: bool, space: str) -> int:
        """Return the id of its accesses to memory or to TMEM."""
        ids = self.order.ids
        if tensor:
            if self.tensor_id < 0:
                self.tensor_id = ids.single(space)
            return self.tensor_id
        if self.memory_id < 0:
            self.memory_id, self._first = ids.single(space), space
        elif space != self._first and space.startswith("smem"):
            ids.also_of(self.memory_id, space)
        return self.memory_id

    @property
    def memory_bits(self) -> int:
        """Set of its id for memory."""
        return 1 << self.memory_id if self.memory_id >= 0 else 0

    @property
    def tensor_bits(self) -> int:
        """Set of its id for TMEM."""
        return 1 << self.tensor_id if self.tensor_id >= 0 else 0

    def signals(self, smem: Bytes, address: int) -> None:
        """Note that its completion will change an mbarrier."""
        order = self.order
        phases = order.phases.get((smem.space, address))
        if phases is None:
            return
        base = self.memory_id if self.memory_id >= 0 else order.ids.single("mbarrier")
        self.memory_id = base
        access = order.enter(
            self.actor,
            base,
            1,
            self.operation,
            False,
            view=ASYNC,
            issuer=self.lane,
        )
        self.number = access.number
        # Whoever made the init visible to the async proxy made it so for this unit.
        view = GENERIC if self.proxy == GENERIC else ASYNC
        order.check_init(phases, access, self.lane, view, smem, address)

    def complete(self, smem: Bytes, address: int, phase: int) -> None:
        """Change the mbarrier: the phase carries this operation's own accesses.

        A bulk copy hands them to both proxies, ``cp.async`` to the generic one.
        """
        async_ = self.memory_bits if self.proxy == ASYNC else 0
        self.release(smem, address, phase, self.memory_bits, async_)

    def hand_over(
        self, issued: Iterable[AsyncAccess], smem: Bytes, address: int, phase: int
    ) -> None:
        """Arrive when the earlier copies of these lanes are complete."""
        bits = 0
        for each in issued:
            if each.lane & self.lane:
                bits |= each.memory_bits
        self.release(smem, address, phase, bits, 0)

    def release(
        self, smem: Bytes, address: int, phase: int, generic: int, async_: int
    ) -> None:
        """Give ids to a phase, in the name of the CTA that owns the mbarrier."""
        order = self.order
        phases = order.phases.get((smem.space, address))
        if phases is not None:
            place = order.places[smem.space]
            phases.of(phase).add(place, EVERYWHERE, generic, async_)
            phases.signals.setdefault(phase, []).append(self.number)


@dataclass(slots=True, eq=False)
class Commit(AsyncAccess):
    """``tcgen05.commit``: it carries all earlier cp and mma of its thread.

    Attributes
    ----------
    done_async, done_tensor
        What they read of memory, for the async proxy only; and what they did to TMEM.
    """

    done_async: int = 0
    done_tensor: int = 0

    def complete(self, smem: Bytes, address: int, phase: int) -> None:
        """Arrive on the mbarrier.

        The committing thread needs ``tcgen05.fence::after_thread_sync`` before ``ld``
        and ``st`` [PTX: tcgen05, non-pipelined instructions, same thread]. The text
        does not say so of ``mma`` and ``cp``, and shipped kernels leave it out.
        """
        self.release(smem, address, phase, self.done_tensor, self.done_async)
        phases = self.order.phases.get((smem.space, address))
        if phases is not None:
            found = phases.commits.setdefault((self.actor, self.lane), [])
            found.append((phase, self.done_tensor))


def learned(operations: Iterable[AsyncAccess], lane: int) -> Knowledge:
    """Return what a thread learns from the completion of its own operations.

    What ``cp.async`` wrote is visible to the generic proxy alone.
    """
    memory = async_ = tensor = 0
    for each in operations:
        if each.lane & lane:
            memory |= each.memory_bits
            async_ |= each.memory_bits if each.proxy != GENERIC else 0
            tensor |= each.tensor_bits
    return Knowledge(memory, async_, tensor)
