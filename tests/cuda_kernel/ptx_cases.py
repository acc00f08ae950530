"""ptx_cases: which cases need NVRTC to run as the kernel's PTX."""

from __future__ import annotations

from typing import Any

import pytest
from gemm_cases import CONFIG_CASES, Case, asked

from fp4ref.cuda_kernel import packaged_configs
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.cuda_kernel.choices import constants

needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None,
    reason="needs NVRTC: pip install 'fp4ref[cuda]'",
)


def is_packaged(case: Case) -> bool:
    """Whether the package holds PTX for the case."""
    wanted = constants(asked(case.config)[0])
    return any(constants(each) == wanted for each in packaged_configs().values())


def case_params() -> list[Any]:
    """Return the cases; those that the package does not hold need NVRTC."""
    return [
        pytest.param(case, id=str(case), marks=[] if is_packaged(case) else needs_nvrtc)
        for case in CONFIG_CASES
    ]
