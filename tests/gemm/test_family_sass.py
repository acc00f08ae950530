"""The family compiled for sm_100a: no spills, and no instruction without a reason."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from family import config_of, cover
from typer.testing import CliRunner

from fp4ref import GemmConfig, plan
from fp4ref.commands import app, sass
from fp4ref.cuda_kernel.build import nvrtc_version
from fp4ref.cuda_kernel.mma_loop import WHY, above, compiled_figures
from fp4ref.cuda_kernel.sass import Listing, SassFigures, mandatory
from fp4ref.device.compile import CompileError
from fp4ref.gemm.ladder import step

needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)
MOST_REGISTERS = 255
"""What a thread can have; ptxas spills what goes beyond."""


def of(config: GemmConfig) -> SassFigures:
    try:
        return compiled_figures(config)
    except CompileError as error:
        pytest.skip(str(error))


def check(found: SassFigures, config: GemmConfig) -> None:
    """No spills; a round has what its plan demands, and every surplus has a reason."""
    assert found.spill_instructions == 0
    assert found.registers <= MOST_REGISTERS
    for name, count in mandatory(plan(config)).items():
        group = config.mainloop.k_group if name == "UTCBAR" else 1
        assert found.loop_counts[name] * group == count * found.k_tiles, name
    assert set(above(found, of(GemmConfig()))) <= set(WHY)


@needs_nvrtc
@pytest.mark.parametrize("part", range(2))
def test_a_configuration_of_today_has_no_spills(part: int, rotating_seed: int) -> None:
    """The family's test of the same day compiles it too."""
    choices = cover()
    choice = choices[(rotating_seed + len(choices) // 12 * part) % len(choices)]
    config = GemmConfig.nvfp4(**config_of(choice))
    check(of(config), config)


@pytest.mark.soak
@needs_nvrtc
@pytest.mark.parametrize("number", range(len(cover())))
def test_every_configuration_has_no_spills(number: int) -> None:
    config = GemmConfig.nvfp4(**config_of(cover()[number]))
    check(of(config), config)


@pytest.mark.soak
@needs_nvrtc
def test_every_reason_is_needed() -> None:
    plain = of(GemmConfig())
    configs = (GemmConfig.nvfp4(**config_of(each)) for each in cover())
    assert {name for each in configs for name in above(of(each), plain)} == set(WHY)


@needs_nvrtc
def test_the_ladder_is_listed_with_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of its steps."""
    names = ["plain", "k-groups", "misaligned"]
    monkeypatch.setattr(sass, "ladder", lambda: [*map(step, names)])
    found = CliRunner().invoke(app, ["sass", "--family", "--json"])
    if isinstance(found.exception, CompileError):
        pytest.skip(str(found.exception))
    assert found.exit_code == 0, found.output
    kernels: dict[str, Any] = json.loads(found.output)["kernels"]
    assert list(kernels) == names
    assert all(each["spill_instructions"] == 0 for each in kernels.values())
    assert kernels["plain"]["above_plain"] == {}
    assert kernels["misaligned"]["above_plain"]["FENCE"] == 1
    assert kernels["k-groups"]["per_k_tile"] < kernels["plain"]["per_k_tile"]


LOOP = """\
.L_x_1:
        /*0000*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0 ;
        /*0010*/              @!P0 BRA `(.L_x_9) ;
        /*0020*/               @P1 BRA `(.L_x_3) ;
.L_x_2:
        /*0030*/                   UTCOMMA gdesc[UR4], gdesc[UR6], tmem[UR8] ;
        /*0040*/               @P2 BRA `(.L_x_2) ;
.L_x_3:
        /*0050*/                   UTCBAR [UR4], URZ ;
        /*0060*/               @P3 BRA `(.L_x_1) ;
        /*0070*/                   EXIT ;
.L_x_9:
        /*0080*/                   BRA `(.L_x_1) ;
"""


@pytest.mark.parametrize("group", [1, 2, 4])
def test_a_round_has_the_k_tiles_of_its_group(group: int) -> None:
    """The inner loop runs for each; the branch that skips all of them is not taken."""
    loop = tuple(Listing(LOOP).loop_around("UTCOMMA", group=group))
    found = SassFigures(32, 0, 9, loop, group)
    assert found.loop_counts["UTCOMMA"] == group == found.k_tiles
    assert len(loop) == 5 + 2 * group


def test_a_surplus_is_seen() -> None:
    plain = SassFigures(32, 0, 9, ("UTCOMMA a", "UTCBAR b", "UMOV c"))
    more = replace(plain, loop=(*plain.loop, "UMOV d", "STL [R1], R2"))
    assert above(more, plain) == {"UMOV": 1, "STL": 1}
    assert above(plain, more) == {}
    assert "STL" not in WHY
