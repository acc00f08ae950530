"""card_family: trees, operand formats, shapes, clusters and pairs for a Hopper card.

``python tests/card_family.py OUT`` runs them on a card, each several times, and writes
``OUT/card_family.json``.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from gemm_cases import CONFIG_CASES, EXTRA, SHAPE_CASES, Case, asked
from narrow_operands import narrow
from tree_cases import TREES, TreeCase

import fp4ref
from fp4ref import GemmConfig
from fp4ref.device import find_gpu
from fp4ref.device.compile import nvrtc_version
from fp4ref.evidence import oracle

sys.path.insert(0, str(Path(__file__).parents[1]))

from probes.kernel.soft_sources import soft_sources

RECORD = Path(__file__).parent / "data" / "card_family.json"
M, N, K = 130, 72, 192
RUNS = 3
LARGE = "2048x2048x2048"
KINDS = (
    ("mxfp4", "mxfp4"),
    ("mxfp8_e4m3", "mxfp8_e4m3"),
    ("mxfp8_e5m2", "mxfp8_e4m3"),
    ("mxfp6_e2m3", "mxfp6_e2m3"),
    ("mxfp6_e3m2", "mxfp8_e5m2"),
    ("mxfp8_e4m3", "mxfp4"),
    ("e4m3", "e5m2"),
    ("e5m2", "e5m2"),
    ("e2m1", "e2m1"),
    ("e2m3", "e4m3"),
    ("e5m2", "e3m2"),
    ("f16", "f16"),
    ("bf16", "bf16"),
)
PAIR: dict[str, Any] = {"cta_group": 2, "tile_m": 256, "cluster_m": 2}
PAIR_OF_64: dict[str, Any] = {**PAIR, "tile_m": 128}
PAIR_KINDS = KINDS[::2]
CLUSTERS: tuple[dict[str, Any], ...] = (
    {"cluster_m": 2},
    {"cluster_n": 2, "d_format": "nvfp4"},
    {"cluster_m": 2, "cluster_n": 2, "d_format": "bf16"},
    {"cluster_m": 2, "scheduler": "static"},
    {"cluster_n": 2, "tile_n": 64},
    {"cluster_m": 4, "k_group": 2},
    {"cluster_m": 2, "splits": 2},
)
PAIRS: tuple[dict[str, Any], ...] = (
    {},
    {"d_format": "nvfp4"},
    {"cluster_n": 2},
    {"cluster_n": 2, "d_format": "nvfp4", "sfd_format": fp4ref.ScaleFormat.UE8M0},
    {"cluster_m": 4},
    {"cluster_m": 4, "cluster_n": 2, "d_format": "bf16"},
    {"cluster_n": 4, "tile_n": 64},
    {"scheduler": "static"},
    {"scheduler": "static", "cluster_n": 2, "raster": "n"},
    {"tile_n": 64, "d_format": "nvfp4"},
    {"tile_n": 256, "d_format": "bf16"},
    {"k_group": 2},
    {"splits": 2},
    {"cluster_n": 2, "splits": 2, "scheduler": "static"},
    {"stages": 2, "accumulator_stages": 1, "clc_stages": 1},
    {"scale_buffers": 1},
    {"c_format": "bf16", "beta": 0.5, "activation": "relu", "d_format": "bf16"},
    {"bias": True, "alpha": 0.37, "activation": "gelu", "d_format": "nvfp4"},
)
"""What a pair has besides; each on a shape with edges in both CTAs."""

LONG = 130, 72, 6048
"""23 whole k-tiles and a part of one: the MMA warp has whole rounds of its ring."""
ROUNDS: tuple[dict[str, Any], ...] = (
    {},
    {"mma_loop": "rolled"},
    {"stages": 2, "d_format": "nvfp4"},
    {"k_group": 2},
    {"loader": "cp_async"},
    {"splits": 2},
    {"cluster_m": 2},
    PAIR,
)
"""What a kernel of so many k-tiles has besides."""

PAIR_SHAPES = ((300, 130, 544, None), (520, 260, 288, None), (129, 65, 1056, 2))


def _of_tree(case: TreeCase) -> dict[str, Any]:
    rng = np.random.default_rng(9)
    a, b = (fp4ref.quantize(rng.standard_normal((x, K), np.float32)) for x in (M, N))
    config, source = case.config(), None
    if config.epilogue.c_format is not None:
        named = fp4ref.numerics.elements.ELEMENTS[config.epilogue.c_format]
        source = rng.standard_normal((M, N), np.float32).astype(named.dtype)
    passed = case.arguments(rng, (M, N))
    given = {"a": a, "b": b, "c": source, "arguments": passed, "alpha": 0.625}
    return given | {"config": config}


def _of_kind(a: str, b: str, **more: Any) -> dict[str, Any]:
    b_format = None if a == b else b
    config = GemmConfig.nvfp4(operand_format=a, b_format=b_format, **more)
    return {"a": narrow(3, (M, 256), a), "b": narrow(4, (N, 256), b), "config": config}


def _of_shape(case: Case) -> dict[str, Any]:
    a, b, c, bias = case.operands(1)
    config, alpha = asked(case.config)
    return {"a": a, "b": b, "c": c, "bias": bias, "alpha": alpha, "config": config}


def _small(case: Case) -> bool:
    return case.m * case.n * case.k < 3_000_000


def shape_cases() -> Iterator[Case]:
    """Yield shapes and configurations, then clusters, then pairs."""
    yield from filter(_small, (*CONFIG_CASES, *EXTRA, *SHAPE_CASES[::6]))
    for i, cluster in enumerate(CLUSTERS):
        yield Case(300, 260, (96, 544, 1536)[i % 3], config=cluster)
    for i, more in enumerate(PAIRS):
        yield Case(*PAIR_SHAPES[i % 3], config=PAIR | more)
    yield Case(*PAIR_SHAPES[0], config=PAIR | PAIRS[2] | {"d_format": "nvfp4"})
    for more in ROUNDS:
        yield Case(*LONG, config=more)


def _name(case: Case) -> str:
    """Give the name of a case without the emulator's machine and schedule."""
    size, *words = str(case).split(",")
    return ",".join(
        [size, *(word for word in words if "=" in word or word.startswith("L"))]
    )


_Maker = Callable[[], dict[str, Any]]
CASES: dict[str, _Maker] = {
    **{str(case): lambda case=case: _of_tree(case) for case in TREES},  # type: ignore[misc]
    **{f"{a} by {b}": lambda a=a, b=b: _of_kind(a, b) for a, b in KINDS},  # type: ignore[misc]
    **{  # type: ignore[misc]
        f"a pair: {a} by {b}": lambda a=a, b=b: _of_kind(a, b, **PAIR)
        for a, b in PAIR_KINDS
    },
    **{  # type: ignore[misc]
        f"a pair of 64 rows: {a} by {a}": lambda a=a: _of_kind(a, a, **PAIR_OF_64)
        for a in ("f16", "e4m3", "e2m1")
    },
    **{_name(case): lambda case=case: _of_shape(case) for case in shape_cases()},  # type: ignore[misc]
}


NOT_ASKED: tuple[str, ...] = ()
"""Cases that are newer than the record; the next one has them."""


def large() -> dict[str, Any]:
    """Return the large product."""
    return _of_shape(Case(2048, 2048, 2048))


def digest(found: fp4ref.Run | oracle.Expected) -> str:
    """Sixteen digits over D, SFD and all that a tree leaves."""
    parts: dict[str, Any] = {"-d": found.d, **found.aux, **found.reductions}
    if found.sfd is not None:
        parts["-sfd"] = found.sfd
    whole = hashlib.sha256()
    for name in sorted(parts):
        whole.update(name.encode() + np.ascontiguousarray(parts[name]).tobytes())
    return whole.hexdigest()[:16]


def on_card(name: str) -> str:
    return digest(fp4ref.run(**CASES[name](), backend="device"))


def by_oracle(name: str) -> str:
    return digest(oracle.expected(**CASES[name]()))


def main() -> None:
    gpu = find_gpu()
    found: dict[str, list[str]] = {}
    for name in CASES:
        try:
            found[name] = sorted({on_card(name) for _ in range(RUNS)})
        except Exception as error:
            found[name] = [f"{type(error).__name__}: {str(error)[:300]}"]
        print(name, found[name], flush=True)
    facts: dict[str, Any] = {"card": gpu.card, "driver": gpu.driver}
    facts["date"] = datetime.date.today().isoformat()
    facts |= {"compiler": f"NVRTC {nvrtc_version()}", "sources": soft_sources()}
    operands = large()
    fp4ref.run(**operands, backend="device")  # compiles
    start = time.perf_counter()
    result = fp4ref.run(**operands, backend="device")
    facts["seconds"] = round(time.perf_counter() - start, 2)
    facts |= {"runs": RUNS, LARGE: digest(result), "cases": found}
    text = json.dumps(facts, indent=1)
    (Path(sys.argv[1]) / RECORD.name).write_text(text + "\n")


if __name__ == "__main__":
    main()
