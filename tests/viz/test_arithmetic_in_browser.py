"""The page's own arithmetic, in a real Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from player_page import PLAYER

import fp4ref
from fp4ref import viz
from fp4ref.numerics import decode_e2m1, encode_e2m1, encode_ue4m3, encode_ue8m0
from fp4ref.tensors.one_block import WAYS, look
from fp4ref.tensors.quantize import WholeScale
from fp4ref.viz import player as player_module
from fp4ref.viz.packet import unpack

DATA = Path(__file__).parents[1] / "data"


def test_a_wrong_byte_in_the_packet_is_noticed(
    small: fp4ref.Run, open_players: Any
) -> None:
    """The page multiplies by itself; a changed operand byte shows in its check."""
    player = viz.play(small)
    page = open_players(player)
    last = len(small.trace or []) - 1
    assert (
        page.evaluate(f"() => {{ {PLAYER}.go({last}); return {PLAYER}.machine.wrong }}")
        == []
    )
    wrong = page.evaluate(
        f"""() => {{
      const m = {PLAYER}.machine, i = m.columns.writes.findIndex((w, k) =>
        m.tables.operation[m.columns.operation[k]].endsWith('3d.load')
        && w.some(([, at]) => at >= 0));
      const at = m.columns.writes[i][0][1];
      m.payload[at] ^= 0x70; m.results.clear();
      m.checkpoints.length = 1; m.restore(m.checkpoints[0]);
      m.seek({last}); return m.wrong.length }}"""
    )
    assert wrong > 0


def test_the_pages_arithmetic_is_the_outside_models(open_players: Any) -> None:
    """MMA-Sim's stored outputs, and the package's formats, against the script."""
    page = open_players(viz.swizzle())
    call = f"""(x) => {{
      const d = new Uint32Array(x.rows * x.columns);
      {PLAYER}.arithmetic.dotTile(x.rows, x.columns, Int8Array.from(x.a),
        Int8Array.from(x.b), x.sfa, x.sfb, x.format, Uint32Array.from(x.c), d);
      return Array.from(d) }}"""
    count = 0
    with np.load(DATA / "mmasim_golden.npz") as stored:
        for key in sorted({k.rsplit("/", 1)[0] for k in stored.files}):
            if "block16" not in key:
                continue
            part = {n: stored[f"{key}/{n}"] for n in ("a", "b", "sfa", "sfb", "c", "d")}

            def halves(packed: np.ndarray) -> list[int]:
                codes = np.stack([packed & 15, packed >> 4], -1).reshape(
                    len(packed), -1
                )
                return (2 * decode_e2m1(codes)).astype(int).ravel().tolist()

            got = page.evaluate(
                call,
                {
                    "rows": 128,
                    "columns": len(part["b"]),
                    "a": halves(part["a"]),
                    "b": halves(part["b"]),
                    "sfa": part["sfa"].ravel().tolist(),
                    "sfb": part["sfb"].ravel().tolist(),
                    "c": part["c"].ravel().tolist(),
                    "format": "UE8M0" if "ue8m0" in key else "UE4M3",
                },
            )
            assert (np.array(got, np.uint32) == part["d"].ravel()).all(), key
            count += len(got)
    assert count == 2 * 5 * 128 * 24


def test_the_pages_rounding_is_the_packages(open_players: Any) -> None:
    page = open_players(viz.swizzle())
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [
            np.arange(-28, 29) / 4,
            np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]) * (1 + 2.0**-23),
            rng.standard_normal(200) * 10.0 ** rng.integers(-4, 4, 200),
        ]
    ).astype(np.float32)
    number = [float(v) for v in values]
    positive = [abs(v) for v in number]

    def js(name: str, xs: list[float]) -> np.ndarray:
        call = f"(xs) => xs.map((x) => {PLAYER}.arithmetic.{name}(x))"
        return np.array(page.evaluate(call, xs), np.uint8)

    assert (js("encodeE2m1", number) == encode_e2m1(values)).all()
    assert (js("encodeUe4m3", positive) == encode_ue4m3(np.abs(values))).all()
    assert (js("encodeUe8m0", positive) == encode_ue8m0(np.abs(values), "rp")).all()


def blocks_of(rng: np.random.Generator, count: int) -> Iterator[np.ndarray]:
    """Ordinary blocks, ties, zeros, scales that vanish or are cut; 16 and 32 values."""
    middles = np.array([0, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6, 7], np.float32)
    for i in range(count):
        size = 16 << (i % 2)
        unit = np.float32(2.0 ** rng.integers(-14, 10) * (1 + rng.integers(0, 8) / 8))
        signs = rng.choice(np.array([-1, 1], np.float32), size)
        x = rng.choice(middles, size) * unit * signs
        if i % 3 == 0:
            x = rng.standard_normal(size).astype(np.float32) * unit
        x[rng.random(size) < 0.1] = 0
        x[0] = x[0] if i % 5 else -0.0
        yield x if i % 4 else x.astype(ml_dtypes.bfloat16 if i % 8 else np.float16)
    yield np.zeros(16, np.float32)


@pytest.mark.rotating(1)
@pytest.mark.parametrize("scale", [{}, {"global_scale": 97.3}, {"largest": 13.7}])
def test_the_page_quantises_as_every_recipe_does(
    open_players: Any, scale: dict[str, float], rotating_seed: int
) -> None:
    """Scale before rounding, scale, scaled values, codes and decoded values: bits."""
    page = open_players(viz.swizzle())
    call = f"""(q) => q.ways.map((way) => {{
      const found = {PLAYER}.arithmetic.quantiseWay(q.values, way, q, q.power);
      const bits = (xs) => xs.map((x) => new Uint32Array(Float32Array.of(x).buffer)[0]);
      return [found.parts.map((p) => p.scale), bits(found.parts.map((p) => p.wanted)),
        bits(found.scaled), found.codes, bits(found.back), found.error] }})"""
    rng = np.random.default_rng(rotating_seed)
    for x in blocks_of(rng, 16):
        power = int(rng.integers(-6, 7))
        q = unpack(viz.quantiser(x, **scale).packet)[0]["quantiser"]
        found = page.evaluate(call, q | {"power": power})
        for way, got in zip(q["ways"], found, strict=True):
            given = WholeScale(way["encode"], way["decode"], way["largest"])
            if not way["fixed"]:
                by = 2.0**power
                given = WholeScale(
                    *(v * w for v, w in zip(given, (by, 1 / by, 1 / by), strict=True))
                )
            want = look(x, WAYS[way["name"]], given)
            numbers = (want.wanted, want.scaled, want.values)
            wanted, scaled, values = (v.view(np.uint32).tolist() for v in numbers)
            where = (way["name"], power, x)
            assert got[0] == want.scales.tolist(), where
            assert got[1] == wanted, where
            assert got[2] == scaled, where
            assert got[3] == want.codes.tolist(), where
            # The sign of a code 8 is in the codes; the page has one zero.
            assert [v % 2**31 and v for v in got[4]] == [
                v % 2**31 and v for v in values
            ], where
            assert got[5] == pytest.approx(want.error, rel=1e-12, abs=1e-30), where


def test_wide_operands_are_computed_right_in_the_page(
    wide: fp4ref.Run, open_players: Any
) -> None:
    page = open_players(viz.play(wide))
    last = len(wide.trace or []) - 1
    page.evaluate(f"() => {PLAYER}.go({last})")
    found = f"() => [{PLAYER}.machine.wrong.length, {PLAYER}.machine.results.size]"
    assert page.evaluate(found) == [0, 8]


@pytest.mark.rotating(3)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("E2M1_HALVES[pair & 15]", "E2M1_HALVES[pair >> 4]"),  # nibble
        ("swizzled(linear, bits) - smem", "linear - smem"),  # swizzle
        ("B64: 2, B128: 3 }", "B64: 2, B128: 2 }"),  # bits that the swizzle changes
        ("(r / GROUP_ROWS) * stride", "(r / GROUP_ROWS) * 512"),  # stride
        ("(r >> 5) * 4;", "(r >> 6) * 4;"),  # scale column
        ("Math.floor(magnitude * pow2(", "Math.round(magnitude * pow2("),  # rounding
        ("FRACTION_BITS = 35", "FRACTION_BITS = 34"),  # bits kept
        ("S[x] * S[y] * 134217728", "S[x] * S[x] * 134217728"),  # scale of B
        ("if (operands.enable_input_d)", "if (false)"),  # accumulate
    ],
)
def test_a_wrong_rule_in_the_script_is_noticed(
    wide: fp4ref.Run,
    open_players: Any,
    monkeypatch: pytest.MonkeyPatch,
    right: str,
    wrong: str,
) -> None:
    script = player_module.esm()
    assert script.count(right) == 1
    monkeypatch.setattr(player_module, "esm", lambda: script.replace(right, wrong))
    page = open_players(viz.play(wide))
    last = len(wide.trace or []) - 1
    page.evaluate(f"() => {PLAYER}.go({last})")
    assert page.evaluate(f"() => {PLAYER}.machine.wrong.length") > 0
