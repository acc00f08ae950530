"""without_numba: a pytest plugin (``-p without_numba``) that hides Numba."""

from __future__ import annotations

import sys

sys.modules["numba"] = None  # type: ignore[assignment]
