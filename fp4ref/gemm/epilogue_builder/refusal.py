"""refusal: a request that CUTLASS's builder refuses, with the text of its assertion."""

from __future__ import annotations

from fp4ref.errors import ConfigError


class BuilderRefusal(ConfigError):
    """CUTLASS's builder would not compile the request.

    Parameters
    ----------
    reason
        Text of CUTLASS's static assertion.
    found
        What was asked, in one clause.
    source
        File of CUTLASS that has the assertion.
    remedy
        What to ask instead: the nearest legal value where there is one.
    """

    def __init__(self, reason: str, found: str, source: str, remedy: str) -> None:
        self.reason = reason
        super().__init__(f'{found}; CUTLASS: "{reason}" ({source}). {remedy}')
