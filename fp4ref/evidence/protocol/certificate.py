"""certificate: a traced run's protocol proven right by counting, for every schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fp4ref.arguments import require_instance
from fp4ref.errors import InputError
from fp4ref.evidence.protocol.counting import Undecided, broken
from fp4ref.evidence.protocol.finding import Finding, Verdict
from fp4ref.evidence.protocol.order import reference
from fp4ref.evidence.protocol.program import Program
from fp4ref.evidence.protocol.recording import programs
from fp4ref.execution.runs import Run
from fp4ref.trace import Trace

NO_TRACE = "this run has no trace; call run(..., trace=True)"
WITNESSES = 8
"""Findings that have their witness in JSON."""
SCOPE = (
    "It holds for every order of warps, landings and peeks, with the tiles that each "
    "CTA of this run had."
)


@dataclass(frozen=True)
class CtaCertificate:
    """What was counted in one CTA.

    Attributes
    ----------
    phases
        Phases of all barriers that complete.
    findings
        Where the certificate breaks, the one with the shortest witness first.
    incomplete
        Why it cannot say that all is right.
    """

    name: str
    actors: int
    steps: int
    barriers: int
    phases: int
    waits: int
    findings: tuple[Finding, ...]
    incomplete: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """Error before incomplete before clean."""
        return verdict(bool(self.findings), bool(self.incomplete))

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.verdict}. {self.actors} actors, {self.steps} steps, "
            f"{self.phases} phases of {self.barriers} barriers, {self.waits} waits"
        ]
        lines += [f"  incomplete: {why}" for why in self.incomplete]
        for finding in self.findings[:1]:
            lines += [f"  {line}" for line in str(finding).splitlines()]
        if (more := len(self.findings) - 1) > 0:
            lines.append(f"  and {more} more, which may follow from it")
        return "\n".join(lines)


@dataclass(frozen=True)
class Certificate:
    """What was counted in every CTA of a run."""

    ctas: tuple[CtaCertificate, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of the CTAs'."""
        found = {cta.verdict for cta in self.ctas}
        return verdict("error" in found, "incomplete" in found)

    @property
    def ok(self) -> bool:
        """Whether every schedule is free of deadlock, overrun and race."""
        return self.verdict == "clean"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Where it breaks, in all CTAs."""
        return tuple(finding for cta in self.ctas for finding in cta.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return every part, for JSON."""
        return {
            "verdict": self.verdict,
            "ctas": [
                {
                    "name": cta.name,
                    "verdict": cta.verdict,
                    "actors": cta.actors,
                    "steps": cta.steps,
                    "barriers": cta.barriers,
                    "phases": cta.phases,
                    "waits": cta.waits,
                    "incomplete": list(cta.incomplete),
                    "findings": _dicts(cta.findings),
                }
                for cta in self.ctas
            ],
        }

    def __str__(self) -> str:
        words = {
            "clean": "certified: no deadlock, no overrun, no access out of order",
            "incomplete": "not certified: something is not modelled",
            "error": "broken: some schedule fails",
        }
        lines = [words[self.verdict], *map(str, self.ctas)]
        return "\n".join(lines + ([SCOPE] if self.ok else []))


def _dicts(findings: tuple[Finding, ...]) -> list[dict[str, Any]]:
    """Return findings for JSON; of many only the first have their witness."""
    return [
        (finding if i < WITNESSES else finding.with_witness(())).to_dict()
        for i, finding in enumerate(findings)
    ]


def certify(run: Run | Trace) -> Certificate:
    """Prove by counting that every schedule of a run's barriers is right.

    No schedule is searched. Exact totals of each phase and the order between phases are
    enough; see `fp4ref.evidence.protocol.counting`. Between CTAs nothing is checked.

    Parameters
    ----------
    run
        A traced run of the emulator or of PTX, or its trace.

    Raises
    ------
    InputError
        The run has no trace.
    TraceError
        The trace has no plan, or no mbarrier events.
    """
    trace = trace_of(run)
    ended = ended_early(trace)
    return Certificate(tuple(certify_program(p, ended) for p in programs(trace)))


def certify_program(program: Program, ended: str = "") -> CtaCertificate:
    """Certify one CTA's program; `ended` says why its run is not whole.

    Where other CTAs arrive at its barriers nothing is counted, and so nothing found.
    """
    incomplete = [f"{name} is not modelled" for name in program.unmodelled]
    incomplete += [ended] if ended else []
    first, findings = reference(program), []
    try:
        findings = broken(program, first) if program.counts else []
    except Undecided as error:
        incomplete.append(str(error))
    return CtaCertificate(
        program.name,
        len(program.actors),
        len(program.steps),
        len(program.barriers),
        sum(first.completed),
        sum(step.kind == "wait" for step in program.steps),
        tuple(findings),
        tuple(incomplete),
    )


def trace_of(run: Run | Trace) -> Trace:
    """Return the trace of a run, or a trace itself."""
    if isinstance(run, Run):
        if run.trace is None:
            raise InputError(NO_TRACE)
        return run.trace
    return require_instance(run, "run", Trace, "Or the Run that fp4ref.run returns")


def ended_early(trace: Trace) -> str:
    """Say why a trace is not of a whole run; nothing if it is."""
    fault = trace.meta.get("fault")
    return f"the run ended early, in {fault}; the rest is not known" if fault else ""


def verdict(fails: bool, incomplete: bool) -> Verdict:
    """Return the verdict: what fails, fails even if not everything was looked at."""
    return "error" if fails else "incomplete" if incomplete else "clean"
