"""Part 2. choose: a configuration for a product, by published figures of a B200.

Every candidate gets an estimate of the clocks of its busiest SM: whole waves of tiles,
k-tiles whose MMAs or whose loads take longer, a start and an end. It is a model, and
nothing here was measured on a B200. It says which of two is better and why, not how
long either takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import Any

from fp4ref.arguments import require_integer
from fp4ref.errors import InputError
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.plan.rules import broken, check
from fp4ref.gemm.plan.values import Plan
from fp4ref.parameters import Corner, published

EDGE_CLOCKS = 1500
"""First loads of a CTA and the stores of its last tile, which no MMA hides: a guess."""
SPLIT_CLOCKS = 1000
"""One split waits for another and adds its sums: a guess."""
MOST = 1 << 24
"""Rows, columns and K for which an estimate is made."""


@dataclass(frozen=True)
class Estimate:
    """What one configuration would do with a product.

    Attributes
    ----------
    clocks
        Of the busiest SM, by the model.
    waves
        Tiles, or parts of tiles, that the busiest SM takes one after another.
    filled
        Share of all these places that have work.
    useful
        Share of the tiles' elements that are in D.
    load_bytes
        What an SM asks L2 for in a k-tile.
    bound
        ``"MMA"`` or ``"L2"``: what a k-tile waits for.
    """

    config: GemmConfig
    clocks: float
    waves: int
    filled: float
    useful: float
    load_bytes: int
    bound: str


@dataclass(frozen=True)
class Choice:
    """A configuration, the fields that differ from the default, and the reasons."""

    config: GemmConfig
    asked: dict[str, Any]
    why: tuple[str, ...]
    estimate: Estimate

    def __str__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.asked.items())
        return "\n".join([f"GemmConfig.nvfp4({fields})", *self.why])


def _figure(name: str) -> float:
    """Return a published figure; its source is in the same file."""
    return published()[name].at(Corner.PUBLISHED)


def _sms(cluster_size: int) -> int:
    """SMs that clusters of a size can use."""
    name = "sms" if cluster_size == 1 else f"sms_in_clusters_of_{cluster_size}"
    return int(_figure(name))


def candidates() -> Iterator[dict[str, Any]]:
    """Yield what is weighed: pairs, clusters, columns, splits, and swapped operands."""
    for group, swap, n, across, splits in product(
        (1, 2), (False, True), (64, 128, 192, 256), (1, 2, 4), (1, 2, 4, 8)
    ):
        yield {
            "cta_group": group,
            "tile_m": 128 * group,
            "cluster_m": group,
            "cluster_n": across,
            "tile_n": n,
            "swap_ab": swap,
            "element_wise": "smem" if swap else "registers",
            "splits": splits,
        }


def estimate(config: GemmConfig, m: int, n: int, k: int, batches: int = 1) -> Estimate:
    """Estimate one configuration on an (M, N, K) product.

    Parameters
    ----------
    m, n, k
        As the user has them; with ``swap_ab`` the kernel's M is `n`.
    """
    p = Plan(config)
    if config.operands.swap_ab:
        m, n = n, m
    across = config.cluster.cluster_n
    splits = config.tiles.splits
    # Whole clusters: a CTA beyond the problem takes its place all the same.
    rows, columns = 128 * p.cluster[0], config.tile.n * p.cluster[1]
    ctas = ceil(m / rows) * p.cluster[0] * ceil(n / columns) * p.cluster[1]
    places = _sms(p.cluster_size)
    waves = ceil(ctas * batches * splits / places)
    k_tiles = ceil(ceil(k / p.tile_k) / splits)
    operands = p.a_nbytes + p.b_nbytes
    mma = p.k_blocks * max(
        _figure("mma_compute_interval") * config.tile.n,
        operands / p.k_blocks / _figure("smem_bandwidth"),
    )
    # CTAs along N share A: each loads a part and gets the others' parts.
    load = p.a_nbytes // across + p.b_nbytes + p.sfa_nbytes + p.sfb_nbytes
    per_clock = _figure("l2_bandwidth") / _figure("clock")
    loads = load * min(places, ctas * batches * splits) / per_clock
    clocks = waves * k_tiles * max(mma, loads) + EDGE_CLOCKS
    clocks += SPLIT_CLOCKS * (splits - 1)
    useful = m * n / (ctas * 128 * config.tile.n)
    filled = ctas * batches * splits / (waves * places)
    bound = "MMA" if mma >= loads else "L2"
    return Estimate(config, clocks, waves, filled, useful, load, bound)


def choose(
    m: int, n: int, k: int, *, batches: int = 1, operand_format: str = "nvfp4"
) -> Choice:
    """Return a configuration for an (M, N, K) product on a B200, and the reasons.

    Parameters
    ----------
    m, n, k
        D is (M, N), and K the length of the sums.
    batches
        Products of this size.
    operand_format
        As `fp4ref.gemm.config.Operands` has it.

    Raises
    ------
    InputError
        A size is no positive integer, or beyond 2^24.
    ConfigError
        There is no such format.
    """
    sizes = {"m": m, "n": n, "k": k, "batches": batches}
    for name, value in sizes.items():
        if require_integer(value, name, 1) > MOST:
            raise InputError(f"{name}={value}: estimates are made up to {MOST:,}")
    base = {"operand_format": operand_format}
    plain = estimate(_legal(base), m, n, k, batches)
    found = [plain]
    for asked in candidates():
        config = GemmConfig.nvfp4(**base | asked)
        if not broken(config):
            found.append(estimate(config, m, n, k, batches))
    # A simpler kernel is better where the model sees no more than 2 %.
    least = min(each.clocks for each in found)
    near = [each for each in found if each.clocks <= 1.02 * least]
    best = min(near, key=lambda each: (len(_changed(each.config)), each.clocks))
    raster = _raster(best.config, m, n)
    config = best.config.replace(**raster)
    best = estimate(config, m, n, k, batches)
    return Choice(config, _changed(config), tuple(_why(best, plain, m, n, k)), best)


def _legal(asked: dict[str, Any]) -> GemmConfig:
    config = GemmConfig.nvfp4(**asked)
    check(config)
    return config


def _changed(config: GemmConfig) -> dict[str, Any]:
    """Return the fields in which a configuration differs from the default."""
    default = GemmConfig().all_asked()
    return {k: v for k, v in config.all_asked().items() if v != default[k]}


def _raster(config: GemmConfig, m: int, n: int) -> dict[str, Any]:
    """Return the tile order whose waves read the fewest different rows of A and B.

    A wave of W clusters in bands of s covers s of one dimension and W / s of the other.
    """
    if config.operands.swap_ab:
        m, n = n, m
    cluster = config.cluster
    rows, columns = 128 * cluster.cluster_m, config.tile.n * cluster.cluster_n
    size = cluster.cluster_m * cluster.cluster_n
    wave = _sms(size) // size
    down, across = ceil(m / rows), ceil(n / columns)

    def read(order: tuple[str, int]) -> int:
        raster, swizzle = order
        fast, slow = (down, across) if raster == "m" else (across, down)
        band = min(swizzle, slow)
        long = min(fast, ceil(wave / band))
        wide = min(slow, band * ceil(wave / (band * fast)))
        height, width = (long, wide) if raster == "m" else (wide, long)
        return height * rows + width * columns

    orders = [(raster, s) for s in (1, 2, 4, 8) for raster in ("m", "n")]
    raster, swizzle = min(orders, key=read)
    return {"raster": raster, "raster_swizzle": swizzle}


def _why(best: Estimate, plain: Estimate, m: int, n: int, k: int) -> Iterator[str]:
    """Yield the reasons, one for each decision."""
    asked = _changed(best.config)
    config = best.config
    places = _sms(config.cluster.cluster_m * config.cluster.cluster_n)
    if config.operands.swap_ab:
        yield (
            f"swap_ab: {m:,} rows fill a part of 128 lanes; as columns of B @ A.T they "
            f"take a tile of {config.tile.n}"
        )
        yield "element_wise smem: the tile is stored across its accumulator's rows"
    if config.cluster.cta_group == 2:
        yield ("cta_group 2: a pair shares B, so each SM loads and reads half of it")
    if config.cluster.cluster_n > 1:
        yield (
            f"cluster_n {config.cluster.cluster_n}: CTAs of one row share A; a k-tile "
            f"takes {best.load_bytes:,} bytes of L2 for an SM, {plain.load_bytes:,} by "
            "default"
        )
    if "tile_n" in asked:
        yield (
            f"tile_n {config.tile.n}: {best.useful:.0%} of the tiles' elements are in D"
        )
    if config.tiles.splits > 1:
        yield (
            f"splits {config.tiles.splits}: the tiles alone fill few of {places} SMs, "
            "and each part of K has its own"
        )
    if {"raster", "raster_swizzle"} & set(asked):
        yield (
            f"raster {config.tiles.raster}, swizzle {config.tiles.raster_swizzle}: a "
            "wave reads the fewest different rows of A and B so"
        )
    waves = f"{best.waves} wave{'s' * (best.waves > 1)}"
    yield f"{waves} on {places} SMs, {best.filled:.0%} of the places with work"
    yield (
        f"estimate: {best.clocks:,.0f} clocks, bound by "
        f"{best.bound}; the default configuration {plain.clocks:,.0f}"
    )
    floor = (m + n) * k / 2 * 9 / 8 / _figure("hbm_bandwidth")
    floor *= _figure("clock")
    if floor > best.clocks:
        yield f"reading A and B from HBM alone takes {floor:,.0f} clocks, which is more"
    yield "published figures of a B200 in a model; nothing here was measured on one"
