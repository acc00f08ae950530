"""The page's own arithmetic, in a real Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from player_page import PLAYER

import fp4ref
from fp4ref import viz
from fp4ref.numerics import (
    ScaleFormat,
    decode_e2m1,
    encode_e2m1,
    encode_ue4m3,
    encode_ue8m0,
    quantize_blocks,
)
from fp4ref.viz import player as player_module

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
    for scale_format in ScaleFormat:
        for _ in range(40):
            block = rng.standard_normal(16).astype(np.float32) * np.float32(
                2.0 ** rng.integers(-12, 12)
            )
            norm = float(np.float32(2.0 ** rng.uniform(-5, 9)))
            got = page.evaluate(
                f"""([v, n, f]) => {{
                const q = {PLAYER}.arithmetic.quantiseBlock(v, n, f);
                return [q.codes, q.scale] }}""",
                [[float(v) for v in block], norm, scale_format.name],
            )
            codes, scales = quantize_blocks(block, norm=norm, scale_format=scale_format)
            assert got == [codes.tolist(), int(scales[0])]


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
