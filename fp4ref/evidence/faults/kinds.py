"""kinds: the kinds of mistakes, by number; those of other checkers of kernels first."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

KINDS: Mapping[int, str] = MappingProxyType(
    {
        1: "barrier used before its init, or an init that is not published",
        2: "init twice, or inval of a barrier in use",
        3: "ordinary bytes over a live barrier",
        4: "wrong arrival count or parity; a waiter that is lapped",
        5: "bytes expected and bytes that come are not the same",
        6: "named barrier: unequal counts, a missing one, one lane only",
        7: ".sync.aligned in divergent code",
        9: "TMEM: allocation, deallocation and their order",
        10: "TMEM: outside live columns, wrong lanes or alignment",
        11: "MMA issued by more than one lane",
        12: "source of a TMA store reused, or its group not waited for",
        13: "one thread waits, another uses",
        14: "tcgen05.cp not ordered with what uses or overwrites it",
        15: "tcgen05.ld or st not waited for",
        16: "tcgen05 fence missing at one end",
        17: "proxy fence missing, misplaced, or for another state space",
        18: "scope too narrow, or relaxed where data go over",
        19: "CTA gone, or not started, while a peer uses it",
        20: "wait missing, too late or too early; early release",
        21: "cluster barrier missing or unbalanced",
        22: "multicast: wrong mask, bytes or barrier of the peer",
        23: "cluster launch control: slot, order or test of an answer",
        24: "a role that returns early or never answers: deadlock of the rest",
        25: "lanes of one warp without order",
        26: "two names for one range of bytes",
        27: "tensor copy: map without release or acquire, misaligned shared address",
        28: "flag words by the wrong kind of access",
        31: "right synchronisation, wrong data",
        32: "an address beyond the end of its memory",
    }
)
