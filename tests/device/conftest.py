"""conftest: the probes are not part of the package; find them from the repository."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
pytest.register_assert_rewrite("recordings")
