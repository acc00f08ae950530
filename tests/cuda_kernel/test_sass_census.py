"""The census: every instruction in one place, and a second counter that agrees."""

from __future__ import annotations

from collections import Counter

import pytest

from fp4ref import GemmConfig
from fp4ref.cuda_kernel.build import (
    compile_kernel,
    nvrtc_version,
    packaged,
    packaged_configs,
)
from fp4ref.cuda_kernel.sass import Listing, disassemble, figures, mandatory, opcode
from fp4ref.cuda_kernel.sass_census import (
    EPILOGUE,
    INNER,
    K_TILE,
    LOAD,
    LOAD_C,
    MMA,
    ONCE,
    SCHEDULER,
    SHARED,
    TILE,
    UNREACHED,
    WAIT,
    census,
    steady_state,
)
from fp4ref.cuda_kernel.sass_flow import Flow
from fp4ref.cuda_kernel.sass_kinds import DESCRIPTOR, OTHER, kinds
from fp4ref.cuda_kernel.sass_words import CODES, INSTRUCTION_NBYTES, count_words
from fp4ref.device.compile import CompileError
from fp4ref.gemm.plan import plan

needs_nvrtc = pytest.mark.skipif(
    nvrtc_version() is None, reason="needs NVRTC: pip install 'fp4ref[cuda]'"
)
NAMES = list(packaged_configs())

SMALL = """\
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/               @P0 BRA `(.L_x_4) ;
.L_x_1:
        /*0020*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0 ;
        /*0030*/              @!P0 BRA `(.L_x_3) ;
.L_x_2:
        /*0040*/                   LDCU.64 UR8, c[0x3][UR6] ;
        /*0050*/                   UMOV UR9, 0x4008 ;
        /*0060*/                   UMOV UR12, 0x1 ;
        /*0070*/                   UTCOMMA.4X gdesc[UR8], gdesc[UR8], tmem[UR12] ;
        /*0080*/                   UTCBAR [UR4], URZ ;
        /*0090*/               @P1 BRA `(.L_x_1) ;
        /*00a0*/                   EXIT ;
.L_x_3:
        /*00b0*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0 ;
        /*00c0*/              @!P0 BRA `(.L_x_3) ;
        /*00d0*/                   BRA `(.L_x_2) ;
.L_x_4:
        /*00e0*/                   LDTM.x32 R4, tmem[UR4] ;
        /*00f0*/                   EXIT ;
        /*0100*/                   NOP ;
"""
"""Two roles: an MMA loop with a wait out of line, and an epilogue; then padding."""


def test_each_instruction_of_a_small_kernel_is_where_it_belongs() -> None:
    found = [(i.role, i.loop, i.kind) for i in census(Listing(SMALL)).instructions]
    assert found == [
        (SHARED, ONCE, "move"),
        (SHARED, ONCE, "branch"),
        (MMA, K_TILE, "wait"),
        (MMA, K_TILE, "branch"),
        (MMA, K_TILE, DESCRIPTOR),
        (MMA, K_TILE, DESCRIPTOR),
        (MMA, K_TILE, "move"),
        (MMA, K_TILE, "MMA"),
        (MMA, K_TILE, "commit"),
        (MMA, K_TILE, "branch"),
        (MMA, ONCE, "branch"),
        (MMA, WAIT, "wait"),
        (MMA, WAIT, "branch"),
        (MMA, K_TILE, "branch"),
        (EPILOGUE, ONCE, "TMEM"),
        (EPILOGUE, ONCE, "branch"),
        (UNREACHED, ONCE, "padding"),
    ]
    rounds = steady_state(Listing(SMALL), census(Listing(SMALL)), loads=4)
    assert [(r.role, r.k_tiles, r.per_k_tile) for r in rounds] == [(MMA, 1, 8)]


def test_blocks_and_their_dominators() -> None:
    flow = Flow(Listing(SMALL))
    wait = next(n for n, b in enumerate(flow.blocks) if b.start == 11)
    body = next(n for n, b in enumerate(flow.blocks) if b.start == 4)
    assert flow.follows[wait] == sorted([wait, wait + 1])
    assert not flow.dominates(wait, body)
    assert flow.dominates(0, body)
    assert [loop.header for loop in flow.loops] == [wait, body - 1]


def test_a_descriptor_is_what_a_gdesc_reads_next() -> None:
    code = ["UMOV UR4, 0x1", "UMOV UR4, 0x2", "@UP0 UIADD3 UR4, UR4, 0x2, URZ"]
    code += ["UTCCP tmem[UR6], gdesc[UR4]", "UIADD3 UR4, UPT, UPT, UR4, 0x2, URZ"]
    assert kinds(code) == ["move", DESCRIPTOR, DESCRIPTOR, "scale copy", "integer"]


@pytest.mark.parametrize("name", NAMES)
def test_the_census_sums_to_all_instructions_of_the_listing(name: str) -> None:
    text = packaged(f"{name}.sass")
    found = census(Listing(text))
    lines = sum(line.lstrip().startswith("/*") for line in text.splitlines())
    assert found.total == lines == len(found.instructions)
    for names in (("role",), ("loop",), ("kind",), ("role", "kind")):
        assert sum(found.by(*names).values()) == lines
    assert sum(cell["instructions"] for cell in found.to_dict()["cells"]) == lines
    assert OTHER not in {each.kind for each in found.instructions}


@pytest.mark.parametrize("name", NAMES)
def test_each_role_has_what_only_it_executes(name: str) -> None:
    config = packaged_configs()[name]
    found = census(Listing(packaged(f"{name}.sass")))
    roles = {opcode(i.text): set[str]() for i in found.instructions}
    for each in found.instructions:
        roles[opcode(each.text)].add(each.role)
    assert roles["UTCOMMA"] == roles["UTCCP"] == roles["UTCBAR"] == {MMA}
    assert roles["LDTM"] == roles["UTMASTG"] == {EPILOGUE}
    assert roles["UGETNEXTWORKID"] == {SCHEDULER}
    loads_c = {LOAD_C} if plan(config).loads_c else set()
    assert roles["UTMALDG"] == {LOAD} | loads_c
    loops = found.by("role", "loop")
    assert loops[MMA, K_TILE] >= 59
    assert loops[LOAD, TILE]
    assert loops[EPILOGUE, INNER]


@pytest.mark.parametrize("name", NAMES)
def test_the_steady_state_is_that_of_the_packaged_figures(name: str) -> None:
    listing = Listing(packaged(f"{name}.sass"))
    mma, load = steady_state(listing, census(listing), loads=4)
    needed = mandatory(plan(packaged_configs()[name]))
    copies = {"UTCCP": "scale copy", "UTCOMMA": "MMA", "UTCBAR": "commit"}
    for word, count in needed.items():
        assert mma.by_kind[copies[word]] == count
    # Tenths: a round of five k-tiles holds a whole number of each.
    assert sum(mma.by_kind.values()) == pytest.approx(mma.per_k_tile)
    assert [i.text for i in mma.instructions] == list(listing.loop_around("UTCOMMA"))
    assert load.by_kind["TMA load"] == 4


def as_codes(listing: Listing) -> Counter[str]:
    """Count as the bytes do, which do not tell MMAs apart."""
    words = map(opcode, listing.instructions)
    mmas = {"UTCOMMA", "UTCQMMA", "UTCHMMA"}
    return Counter("MMA" if word in mmas else word for word in words)


@needs_nvrtc
@pytest.mark.parametrize(
    "asked",
    [{}, {"operand_format": "bf16"}, {"c_format": "bf16", "beta": 0.5, "bias": True}],
)
def test_a_second_counter_agrees(asked: dict[str, object]) -> None:
    """It reads the cubin's bytes, and the listing's text not at all."""
    cubin = compile_kernel(GemmConfig.nvfp4(**asked)).cubin
    try:
        listing = Listing(disassemble(cubin))
    except CompileError as error:
        pytest.skip(str(error))
    second = count_words(cubin)
    assert second == as_codes(listing)
    assert second.total() == census(listing).total == figures(cubin).instructions


def test_a_code_has_one_name() -> None:
    assert INSTRUCTION_NBYTES == 16
    assert max(CODES) < 1 << 9
    assert CODES[0x1EA] == "MMA"
