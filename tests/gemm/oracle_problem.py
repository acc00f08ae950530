"""oracle_problem: a case with the D and SFD that the oracle demands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gemm_cases import Case, asked
from raw_bits import assert_bits_equal

import fp4ref
from fp4ref import GemmConfig
from fp4ref.evidence.oracle import Expected, expected


@dataclass(frozen=True)
class Problem:
    """Operands of a case, and the D and SFD that the oracle demands."""

    case: Case
    a: Any
    b: Any
    c: Any
    bias: Any
    config: GemmConfig
    alpha: float | None
    wanted: Expected

    @classmethod
    def of(cls, case: Case, seed: int = 0) -> Problem:
        (config, alpha), operands = asked(case.config), case.operands(seed)
        wanted = expected(*operands, config, alpha)
        return cls(case, *operands, config, alpha, wanted)

    def run(self, seed: int, **options: Any) -> fp4ref.Run:
        """Run it; `seed` serves the cases with a seeded schedule."""
        return fp4ref.run(
            *(self.a, self.b, self.c),
            bias=self.bias,
            alpha=self.alpha,
            config=self.config,
            **self.case.settings(seed) | {"trace": False} | options,
        )

    def check(self, seed: int, **options: Any) -> None:
        """Run it and compare every bit."""
        self.compare(self.run(seed, **options))

    def compare(self, run: fp4ref.Run) -> None:
        """Compare every bit of a run."""
        for name, value in (self.wanted.aux | self.wanted.reductions).items():
            assert_bits_equal((run.aux | run.reductions)[name], value)
        if self.config.epilogue.d_format is None:
            assert not run.written.any()
            return
        assert run.written.all()
        assert_bits_equal(run.d, self.wanted.d)
        assert (run.sfd is None) == (self.wanted.sfd is None)
        if run.sfd is not None and self.wanted.sfd is not None:
            assert_bits_equal(run.sfd, self.wanted.sfd)
