"""Parts 1 and 7. staging_rules: what goes together where a warp brings its own rows."""

from __future__ import annotations

from typing import Any

from fp4ref.arguments import shown
from fp4ref.gemm.fusion.callbacks import implements
from fp4ref.gemm.fusion.embedding import Embedding
from fp4ref.gemm.fusion.node import Node
from fp4ref.gemm.plan.rules import THIS_KERNEL, rule
from fp4ref.gemm.plan.staging_values import HALF_N
from fp4ref.gemm.plan.values import Plan
from fp4ref.gemm.plan.warps import EPILOGUE_WARPS

_PLAIN: dict[str, tuple[Any, ...]] = {
    "d_format": ("bf16",),
    "subtile_n": (32,),
    "store": ("plain",),
    "swap_ab": (False,),
    "element_wise": ("registers",),
    "tmem_load": ("32x32b",),
    "c_format": (None,),
    "reuse_smem_c": (False,),
    "delay_tma_store": (False,),
    "splits": (1,),
}
_ROWS = "a warp stages rows of 128 columns in BF16"


@rule(_ROWS, "document 003, F24", "staging", "fusion", *_PLAIN)
def _staged(p: Plan) -> str | None:
    if not p.staged:
        return None
    for name, legal in _PLAIN.items():
        if p.config.asked(name) not in legal:
            return (
                f"staging={p.config.staging.staging} with "
                f"{name}={shown(p.config.asked(name))}: a warp stages rows of "
                f"{HALF_N} columns of D in BF16, as it has loaded them. Use "
                f"{name}={legal[0]}, or staging=tiles"
            )
    tree = p.config.epilogue.fusion
    for node in tree.walk() if isinstance(tree, Node) else ():
        if implements(node, "tma_store"):
            return (
                f"staging={p.config.staging.staging} with {type(node).__name__}: its "
                "tma_store is committed with a store of D that one warp issues for "
                "all. Use staging=tiles"
            )
    return None


_TILE = ("tile_m", "tile_n", "cta_group")


@rule("a staged tile has whole halves", "document 003, F24", "staging", *_TILE, _ROWS)
def _whole_halves(p: Plan) -> str | None:
    if not p.staged or (p.column_parts == 1 and p.tile_n % HALF_N == 0):
        return None
    if p.column_parts > 1:
        return (
            f"staging={p.config.staging.staging} with tile_m=128 and cta_group=2: a "
            "warp has half of N of its rows. Use tile_m=256"
        )
    return (
        f"staging={p.config.staging.staging} with tile_n={p.tile_n}: a half has "
        f"{HALF_N} columns. Use tile_n=256"
    )


_ONLY_STAGED: dict[str, Any] = {"unroll": 1, "release": "loaded", "epilogue_warps": 4}


@rule("a switch of the staging needs one", THIS_KERNEL, "staging", *_ONLY_STAGED)
def _only_staged(p: Plan) -> str | None:
    if p.staged:
        return None
    for name, value in _ONLY_STAGED.items():
        if p.config.asked(name) != value:
            return (
                f"{name}={shown(p.config.asked(name))} with staging=tiles: only an "
                "epilogue whose warps bring their own rows has this switch. Use "
                f"{name}={value}, or staging=padded"
            )
    return None


_COPIES = ("bulk", "swizzled")


@rule("a late release waits for stores", THIS_KERNEL, "release", "staging")
def _late(p: Plan) -> str | None:
    asked = p.config.staging
    if asked.release != "stored" or asked.staging not in _COPIES:
        return None
    return (
        f"release=stored with staging={asked.staging}: the warp only issues copies, "
        "and goes on before they have stored. Use release=loaded, or staging=padded"
    )


@rule(
    "each warp of a quarter has a half",
    THIS_KERNEL,
    *("staging", "epilogue_warps", "tile_n"),
)
def _a_half_each(p: Plan) -> str | None:
    if p.epilogue_warps == EPILOGUE_WARPS or not p.staged or p.staging_halves > 1:
        return None
    return (
        f"epilogue_warps={p.epilogue_warps} with tile_n={p.tile_n}: the second warp "
        f"of a quarter has the second {HALF_N} columns, and there are none. Use "
        "epilogue_warps=4"
    )


_OF_C = ("beta", "c_format", "fusion")
_NO_IDLE = "without idle warps nothing is scheduled or loaded for the epilogue"


@rule(_NO_IDLE, "document 003, F25", "warp_order", "scheduler", *_OF_C)
def _load_first(p: Plan) -> str | None:
    if p.config.warps.warp_order != "load_first":
        return None
    if p.config.tiles.scheduler != "static":
        return (
            f"warp_order=load_first with scheduler={p.config.tiles.scheduler}: no "
            "warp asks for tiles. Use scheduler=static, or warp_order=mma_first"
        )
    if p.loads_c:
        return (
            "warp_order=load_first with C: no warp loads it. Use beta=0 or a tree "
            "without C, or warp_order=mma_first"
        )
    return None


@rule("a tile ahead is reckoned", THIS_KERNEL, "prefetch_tile", "scheduler")
def _prefetches(p: Plan) -> str | None:
    if not p.config.warps.prefetch_tile or p.config.tiles.scheduler == "static":
        return None
    return (
        f"prefetch_tile=True with scheduler={p.config.tiles.scheduler}: the load warp "
        "throttles the one that asks by the tiles that it has begun. Use "
        "scheduler=static, or prefetch_tile=False"
    )


@rule("an embedding goes along D's rows", THIS_KERNEL, "fusion", "store", "swap_ab")
def _embedding(p: Plan) -> str | None:
    tree = p.config.epilogue.fusion
    every = tree.walk() if isinstance(tree, Node) else ()
    if not p.transposes or not any(isinstance(each, Embedding) for each in every):
        return None
    return (
        f"store={p.config.epilogue.store} with swap_ab={p.config.operands.swap_ab} and "
        "an embedding: its rows are those of D, which a thread has none of here. Use "
        "aux_load in its place"
    )
