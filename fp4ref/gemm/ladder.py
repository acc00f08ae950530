"""Part 1. ladder: named configurations of the family, one idea a step."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from fp4ref.errors import InputError
from fp4ref.gemm.config import GemmConfig


@dataclass(frozen=True)
class Step:
    """One configuration with a product that shows its idea.

    Attributes
    ----------
    asked
        What differs from the default configuration.
    shape
        M, N and K of the product.
    sms
        SMs of the machine, as many as a cluster has CTAs at least.
    """

    name: str
    idea: str
    asked: dict[str, Any]
    shape: tuple[int, int, int]
    sms: int

    @property
    def config(self) -> GemmConfig:
        """The configuration."""
        return GemmConfig.nvfp4(**self.asked)


@cache
def ladder() -> tuple[Step, ...]:
    """Return the steps, the plain kernel first."""
    text = resources.files("fp4ref.data").joinpath("ladder.toml").read_text("utf-8")
    return tuple(
        Step(
            name=name,
            idea=row["idea"],
            asked=row["asked"],
            shape=tuple(row["shape"]),
            sms=row["sms"],
        )
        for name, row in tomllib.loads(text).items()
    )


def step(name: str) -> Step:
    """Return one step.

    Raises
    ------
    InputError
        There is no such step.
    """
    for each in ladder():
        if each.name == name:
            return each
    known = ", ".join(each.name for each in ladder())
    raise InputError(f"{name!r:.60}: no such step; there are {known}")
