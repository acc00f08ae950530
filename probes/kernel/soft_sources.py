"""soft_sources: a digest of what a card ran, to tell recordings of older sources."""

from __future__ import annotations

import hashlib
import re

from fp4ref.cuda_kernel.choices import one_file
from fp4ref.gemm.config import GemmConfig

_COMMENT = re.compile(r"//.*")


def soft_sources() -> str:
    """Return sixteen digits of the soft kernel's code, without comments and blanks.

    Of three configurations: the default one, a pair, and one that loads elements.
    """
    pair = {"cta_group": 2, "tile_m": 256, "cluster_m": 2}
    configs = (
        GemmConfig(),
        GemmConfig.nvfp4(**pair, c_format="bf16", beta=0.5),
        GemmConfig.nvfp4(operand_format="e4m3"),
    )
    digest = hashlib.sha256()
    for config in configs:
        for line in one_file(config, soft=True).splitlines():
            if line.startswith("#line"):
                continue
            digest.update("".join(_COMMENT.sub("", line).split()).encode())
    return digest.hexdigest()[:16]
