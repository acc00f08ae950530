"""wait_graph: who waits for whom in a deadlock, by role, and what broke the chain.

Warps of one role that wait for the same thing are one box. The sentence about the root
says what is missing and whose it is to signal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from fp4ref.errors import DeadlockError, DeadlockRoot
from fp4ref.trace.recorded_plan import RecordedPlan
from fp4ref.viz.sentences import agent_words
from fp4ref.viz.strings import say

_AGENT = re.compile(
    r"(?:cta (\(\d[^)]*\)) )?\b(warp ?\d+|tma\.read|tma|tcgen05|tmem|clc)\b(?![.:\d])"
)
_BARRIER = re.compile(
    r"mbarrier (smem(\d+) (\S+)(?: \((.+?)\))?) parity (\d): phase (\d), (\d+) of "
    r"(\d+) arrivals pending, tx-count (-?\d+) bytes"
)
_NEVER = re.compile(r"never started|come to this barrier in cta")
"""Of a root's words: nobody announced wrongly, and what was announced is elsewhere."""

Agent = tuple[str, str]
"""CTA in a fault's words, or nothing, and name: ``("(0, 0, 0)", "warp3")``."""


class Names:
    """Names of agents by the roles of a plan, with the CTA where there are several."""

    def __init__(self, plan: RecordedPlan | None, words: str) -> None:
        self.plan = plan
        self.many = len({found[1] for found in _AGENT.finditer(words) if found[1]}) > 1

    def of(self, agents: Sequence[Agent]) -> str:
        """Name agents; warps of one role in one CTA are one part."""
        found = []
        for (cta, role), same in groupby(
            agents, lambda each: (each[0], self._role(each))
        ):
            names = [name for _, name in same]
            words = (
                self._several(role, names) if len(names) > 1 else self._one(names[0])
            )
            found.append(
                say("fault.cta", who=words, cta=cta) if self.many and cta else words
            )
        return ", ".join(dict.fromkeys(found))

    def within(self, words: str) -> str:
        """Put roles in the place of agents in a sentence."""
        return _AGENT.sub(lambda found: self.of([_agent(found)]), words)

    def _role(self, agent: Agent) -> str:
        role = self.plan.roles.get(agent[1], "") if self.plan else ""
        return role or ("warp" if agent[1].startswith("warp") else agent[1])

    def _one(self, name: str) -> str:
        return agent_words(self.plan, name)

    def _several(self, role: str, names: Sequence[str]) -> str:
        known = self.plan.roles if self.plan else {}
        same = [name for name, each in known.items() if each == role]
        numbers = [
            same.index(name) if name in same else int(name.removeprefix("warp"))
            for name in names
        ]
        if numbers != list(range(numbers[0], numbers[-1] + 1)):
            return ", ".join(map(self._one, names))
        key = "who.EPILOGUE.several" if role == "EPILOGUE" else "who.warp.several"
        return say(key, first=numbers[0], last=numbers[-1])


def agents_in(words: str) -> list[Agent]:
    """Return the agents that words name, in their order."""
    return [_agent(found) for found in _AGENT.finditer(words)]


def _agent(found: re.Match[str]) -> Agent:
    return found[1] or "", found[2].replace(" ", "")


def short(place: str) -> str:
    """Return ``mma_warp.py:84`` of a whole path."""
    return place.rpartition("/")[2]


def wait_graph(error: DeadlockError, plan: RecordedPlan | None) -> dict[str, Any]:
    """Return waiters and what they wait for as boxes, and the root in a sentence.

    Each waiter has `name`, `place` and `on`, the number of a thing; each thing has
    `name`, `state`, `by`, whether it is the `root`, and `releases`: the numbers of the
    waiters who would release it.
    """
    names = Names(plan, " ".join(waiter for waiter, _, _ in error.edges))
    things = list(dict.fromkeys(on for _, on, _ in error.edges))
    boxes: dict[tuple[Any, ...], list[tuple[Agent, str]]] = {}
    for waiter, on, _ in error.edges:
        agent = agents_in(waiter)[0] if agents_in(waiter) else ("", waiter)
        place = waiter.rpartition(" at ")[2]
        boxes.setdefault((agent[0], names._role(agent), on), []).append((agent, place))
    members = [[agent for agent, _ in each] for each in boxes.values()]
    waiters = [
        {
            "name": start_of(names.of([agent for agent, _ in each])),
            "place": ", ".join(dict.fromkeys(short(place) for _, place in each)),
            "on": things.index(key[2]),
            "who": ", ".join(name for (_, name), _ in each),
        }
        for key, each in boxes.items()
    ]
    by = {on: released_by for _, on, released_by in error.edges}
    return {
        "waiters": waiters,
        "things": [_thing(on, by[on], error.root, names, members) for on in things],
        "sentence": _sentence(error, names) if error.root else "",
    }


def _thing(
    on: str,
    by: str,
    root: DeadlockRoot | None,
    names: Names,
    members: Sequence[Sequence[Agent]],
) -> dict[str, Any]:
    """What is waited for: a barrier in words, anything else as the fault says it."""
    agents = agents_in(by)
    found = _BARRIER.match(on)
    name, _, state = on.partition(": ")
    if found:
        name = found[4] or say("fault.at", address=found[3])
        name = say("fault.sm", sm=found[2], name=name) if names.many else name
        state = _state(int(found[7]), int(found[8]), int(found[9]))
    return {
        "name": name,
        "state": state,
        "by": names.of(agents) if agents else by,
        "root": root is not None and f"mbarrier {root.where} " in on,
        "releases": [
            number
            for number, each in enumerate(members)
            if any(agent in each for agent in agents if agent[1].startswith("warp"))
        ],
    }


def _state(pending: int, expected: int, tx_bytes: int) -> str:
    """What is missing on a barrier."""
    if tx_bytes:
        key = "fault.state.fewer" if tx_bytes > 0 else "fault.state.more"
        bytes_ = say(key, n=f"{abs(tx_bytes):,}")
        return (
            f"{bytes_}; {say('fault.state', n=pending, of=expected)}"
            if pending
            else bytes_
        )
    return say("fault.state", n=pending, of=expected)


def _sentence(error: DeadlockError, names: Names) -> str:
    """What is missing and whose it is, in one sentence."""
    root = error.root
    assert root is not None
    on = next((on for _, on, _ in error.edges if f"mbarrier {root.where} " in on), "")
    found = _BARRIER.match(on)
    tx_bytes = int(found[9]) if found and found[7] == "0" else 0
    values = {
        "barrier": root.barrier,
        "what": names.within(root.what),
        "n": f"{abs(tx_bytes):,}",
    }
    if not root.by:
        return say("fault.chain.alone", **values)
    values |= {
        "who": names.of(agents_in(root.by)) or root.by,
        "at": short(root.statement),
    }
    kind = "chain"
    if tx_bytes and not _NEVER.search(root.what):
        kind = "fewer" if tx_bytes > 0 else "more"
    return say(
        f"fault.{kind}" if root.statement else f"fault.{kind}.untraced", **values
    )


def start_of(words: str) -> str:
    """Begin with a capital letter."""
    return words[:1].upper() + words[1:]
