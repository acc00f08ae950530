"""plan: what a configuration may be, and everything that follows from it, with reasons.

`rules` says what is allowed; `values` deduces each number once. `warps`, `rings` and
`smem_map` hold the tables of roles, barriers and buffers, `tmem_map` the columns,
`descriptors` what the tensor core is given.
"""

from __future__ import annotations

from functools import lru_cache

from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan.rules import check
from fp4ref.gemm.plan.values import Plan
from fp4ref.gemm.plan.why import Why


def plan(config: GemmConfig | None = None) -> Plan:
    """Return all that follows from `config`.

    Parameters
    ----------
    config
        What is asked; None asks for ``GemmConfig()``.

    Raises
    ------
    ConfigError
        The machine cannot run it; the message has every rule that is broken.
    """
    config = GemmConfig() if config is None else config
    check(config)
    return _planned(config)


@lru_cache(maxsize=256)
def _planned(config: GemmConfig) -> Plan:
    """Deduce once; `config` is known to be allowed, so it can be hashed."""
    return Plan(config)


__all__ = ["Plan", "Why", "check", "plan"]
