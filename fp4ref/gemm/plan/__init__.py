"""Parts 1, 3 and 4. plan: what a kernel may be, and all that follows, with reasons.

`rules`, `budget_rules`, `tree_rules`, `writer_rules` and `staging_rules` say what is
allowed; `values` deduces each number once.
`warps`, `rings` and `smem_map` hold the tables of roles, barriers and buffers,
`tmem_map` the columns. A value says its reason as in `fp4ref.gemm.why`.
"""

from __future__ import annotations

from fp4ref.arguments import require_instance
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan import budget_rules as budget_rules  # registers its rules
from fp4ref.gemm.plan import staging_rules as staging_rules  # registers its rules
from fp4ref.gemm.plan import tree_rules as tree_rules  # registers its rules
from fp4ref.gemm.plan import writer_rules as writer_rules  # registers its rules
from fp4ref.gemm.plan.rules import check
from fp4ref.gemm.plan.values import Plan
from fp4ref.gemm.why import Why


def plan(config: GemmConfig | None = None) -> Plan:
    """Return all that follows from `config`.

    Parameters
    ----------
    config
        What is asked; None asks for ``GemmConfig()``.

    Raises
    ------
    InputError
        `config` is something else.
    ConfigError
        The machine cannot run it; the message has every rule that is broken.
    """
    config = GemmConfig() if config is None else config
    require_instance(
        config, "config", GemmConfig, "For example GemmConfig.nvfp4(stages=3)"
    )
    check(config)
    return Plan(config)


__all__ = ["Plan", "Why", "check", "plan"]
