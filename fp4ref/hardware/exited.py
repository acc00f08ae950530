"""exited: the fault of an access to a CTA that has exited."""

from __future__ import annotations

from fp4ref.errors import ClusterFault
from fp4ref.trace import Dim3


def of_exited(who: str, what: str, ctaid: Dim3, where: str) -> ClusterFault:
    """Return the fault of `what`, which `who` does to the CTA `ctaid` after its exit.

    `where` is in the memory that the CTA had.
    """
    return ClusterFault(
        f"{what}, which is in cta {ctaid} that has exited",
        who=who,
        where=where,
        rule="the shared memory of a CTA lives as long as the CTA: what its peers do "
        "there is complete before it exits [CUDA programming guide, distributed shared "
        "memory]",
        remedy="let the CTA wait for its peers before it returns: at a cluster "
        "barrier, or for their last arrivals",
    )
