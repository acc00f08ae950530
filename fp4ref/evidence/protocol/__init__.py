"""protocol: whether a run's barriers are right in every schedule, not only its own.

`certify` proves it by counting, `explore` by looking at every schedule. A run becomes a
`Program`: the steps that warps and asynchronous operations do to barriers and buffers
of one CTA. Fences, proxies and scopes are no part of it, nor is global memory.
"""

from fp4ref.evidence.protocol.certificate import Certificate, certify, certify_program
from fp4ref.evidence.protocol.exploration import Exploration, explore, explore_program
from fp4ref.evidence.protocol.finding import Finding
from fp4ref.evidence.protocol.program import Program, ProgramBuilder, Step
from fp4ref.evidence.protocol.projection import project, search_rings
from fp4ref.evidence.protocol.recording import programs
from fp4ref.evidence.protocol.schedules import search

__all__ = [
    "Certificate",
    "Exploration",
    "Finding",
    "Program",
    "ProgramBuilder",
    "Step",
    "certify",
    "certify_program",
    "explore",
    "explore_program",
    "programs",
    "project",
    "search",
    "search_rings",
]
