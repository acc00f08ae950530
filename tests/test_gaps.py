"""gaps: the one list is complete, and every row says the truth."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import fp4ref
from fp4ref import BlockScaled
from fp4ref.commands import app
from fp4ref.cutlass.example_table import find_example
from fp4ref.errors import InputError, NotModelled
from fp4ref.gaps import GAPS, covering
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.epilogue_builder import EpilogueRequest
from fp4ref.hardware.instr_descriptor import InstrDescriptor, UnscaledInstrDescriptor
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.layout import LaidOutScales
from fp4ref.numerics import quantize_blocks
from fp4ref.ptx import Program, parse
from fp4ref.ptx.run.loader import load
from fp4ref.ptx.run.registry import translate
from fp4ref.walk import make_config

ROOT = Path(__file__).parents[1]
IDS = {gap.id for gap in GAPS}
REFUSED = [gap for gap in GAPS if gap.refused]


def test_rows_are_complete_and_differ() -> None:
    assert len(IDS) == len(GAPS) == len({(g.operation, g.what) for g in GAPS})
    for gap in GAPS:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", gap.id)
        assert gap.operation
        assert len(gap.what) >= 5
        assert gap.id.startswith("unseen-") is not gap.refused
    assert [gap.refused for gap in GAPS] == sorted(g.refused for g in GAPS)[::-1]


# -- every refusal in the code names a row -----------------------------------------


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((ROOT / "fp4ref").rglob("*.py")):
        yield path, ast.parse(path.read_text("utf-8"))


def named(node: ast.AST) -> set[str]:
    """Words in an argument: ids are written out where something is refused."""
    return {
        n.value
        for n in ast.walk(node)
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }


def calls(tree: ast.Module, *names: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in names:
                yield node


def gap_of(call: ast.Call) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == "gap"), None)


PASSED_ON = {
    "fp4ref/ptx/run/registry.py",  # one error for all instructions, each with its row
    "fp4ref/ptx/text/tokens.py",  # Cursor.refuse
}


def test_every_refusal_names_a_row() -> None:
    found: set[str] = set()
    for path, tree in sources():
        where = str(path.relative_to(ROOT))
        module = {
            n.targets[0].id: n.value
            for n in tree.body
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
        }
        for call in calls(tree, "NotModelled"):
            given = gap_of(call)
            assert given is not None, f"{where}:{call.lineno}"
            if where not in PASSED_ON:
                ids = named(given) & IDS
                assert ids, f"{where}:{call.lineno}"
                found |= ids
        for call in calls(tree, "Unknown", "refuse"):
            (*_, given) = call.args
            if isinstance(given, ast.Name) and given.id in module:
                given = module[given.id]
            if ast.unparse(given) != "gap.id":
                assert named(given) <= IDS, f"{where}:{call.lineno}"
                assert named(given), f"{where}:{call.lineno}"
                found |= named(given)
    assert len(found) >= 25


# An option is refused where the code asks whether a value is among those it knows, or
# calls `require_choice`. A shape, a rank or a type of elements is no option. These are
# no gaps: what is asked, and why nobody else takes more.
NO_GAP = {
    "stochastic.py format": "the formats that cvt.rs has",
    "ordering": "this product's own",
    "backend": "this product's own",
    "trace": "this product's own",
    "races": "this product's own",
    "reduction": "this product's own",
    "width": "bytes of a lane; 1 or 2 are an access of their word",
    "table['trust']": "grades of the laboratory's figures",
    "table['faster']": "the two ends of a range",
    "table['document']": "documents with figures of time",
    "table['kind']": "kinds of figure of the laboratory's records",
    "records.py table[name]": "states of an experiment",
    "id": "experiments and tables that are there",
    "workload": "products that are there",
    "pace": "views of the player",
    "player.py schedule": "runs that the player was given",
    "bounds.py cta_group": "shapes of which an interval was published",
    "ring": "rings of the trace",
    "view": "views of the player",
    "mode": "views of the player",
    "numbers.size": "views of the player",
    "name": "views, kernels and entries that are there",
    "sm": "an SM of the trace",
    "convention": "these two are all there are",
    "nonfinite": "this product's own",
    "per": "this product's own",
    "'nvfp4'": "the one format with a global scale",
    "quantize.py format": "what the recipe's own library has",
    "chosen": "what the recipe's own library has",
    "wanted": "all that the formats have",
    "declared": "all that the formats have",
    "scale_format": "all that kind::mxf4nvf4 has with this vector size",
    "rounding": "all that cvt.ue8m0x2 has",
    "dtype": "types that hold the products",
    "data_type": "all that cuda.h has",
    "edit": "what a lesson does to a text",
    "dump.dtype": "the format's own type and its bits",
    "'d'": "arrays of a dump",
    "scales": "arrays of a dump",
}
NO_OPTION = re.compile(r".*\.(shape|ndim|kind|dtype\.name)|len\(.*")


def option_refusals() -> Iterator[tuple[str, str, ast.Call, int]]:
    """File, what is asked, and the call that refuses."""
    for path, tree in sources():
        for call in calls(tree, "require_choice"):
            yield path.name, ast.unparse(call.args[0]), call, call.lineno
        for node in ast.walk(tree):
            if not isinstance(node, ast.If):
                continue
            tested = [
                ast.unparse(c.left)
                for c in ast.walk(node.test)
                if isinstance(c, ast.Compare) and isinstance(c.ops[0], ast.NotIn)
            ]
            for statement in node.body:
                if tested and isinstance(statement, ast.Raise):
                    error = statement.exc
                    if isinstance(error, ast.Call) and ast.unparse(error.func) in (
                        "InputError",
                        "ConfigError",
                        "LayoutError",
                    ):
                        yield path.name, tested[0], error, statement.lineno


def test_an_option_that_others_have_names_its_row() -> None:
    asked = set()
    for name, tested, error, line in option_refusals():
        if gap_of(error) is not None or NO_OPTION.fullmatch(tested):
            continue
        known = {tested, f"{name} {tested}"} & set(NO_GAP)
        assert known, (
            f"{name}:{line} refuses a value of {tested}: give the error a gap, or say "
            "in NO_GAP why nobody else takes such a value"
        )
        asked |= known
    assert set(NO_GAP) == asked


def test_every_refused_row_is_named_by_a_refusal() -> None:
    words = set()
    for _, tree in sources():
        words |= named(tree)
    for gap in REFUSED:
        assert gap.id in words or gap.opcodes, gap.id
    for gap in GAPS:
        assert gap.refused or gap.id not in words


# -- the refusals happen -----------------------------------------------------------


def block(nibble_order: str = "low_first", format: str = "mxfp4") -> BlockScaled:
    data = np.zeros((1, 16), np.uint8)
    scales = np.full((1, 1), 0x7F, np.uint8)
    return BlockScaled.from_packed(
        data,
        scales,
        format=format,
        nibble_order=nibble_order,
    )


GOOD = 1 << 7 | 1 << 10 | 128 >> 3 << 17 | 1 << 27
UNSCALED = 1 << 4 | 128 >> 3 << 17 | 128 >> 4 << 24
SMEM = 1 << 46 | 64 << 32 | 2 << 61
PTX = ".version 8.8 .target sm_100a .address_size "
KERNEL = f"{PTX}64 .shared .b8 s[9]; .entry k() {{ .reg .b32 %r<9>; "
TRIES: dict[str, list[Callable[[], Any]]] = {
    "recipe": [
        lambda: fp4ref.quantize(np.ones((1, 16), np.float32), recipe="quark"),
        lambda: fp4ref.quantize(
            np.ones((1, 32), np.float32),
            format="mxfp8_e4m3",
            random_bits=np.zeros((1, 32), np.uint8),
        ),
    ],
    "block-format": [
        lambda: block(format="mxfp8"),
        lambda: fp4ref.quantize(np.ones((1, 32), np.float32), format="mxfp6"),
        lambda: quantize_blocks(
            np.ones((1, 64), np.float32),
            norm=1.0,
            scale_format=fp4ref.numerics.ScaleFormat.UE8M0,
            vec_size=64,
        ),
    ],
    "packing": [lambda: block("interleaved")],
    "scale-layout": [
        lambda: LaidOutScales.of(np.zeros((8, 4), np.uint8), "32x4x4"),  # type: ignore
    ],
    "epilogue-builder": [
        lambda: EpilogueRequest(arch="sm120", tile=(128, 128, 64)),
        lambda: EpilogueRequest(arch="sm90", tile=(64, 64, 64), c="complex<f32>"),
        lambda: EpilogueRequest(arch="sm90", tile=(64, 64, 64), d_layout="nhwc"),
        lambda: EpilogueRequest(arch="sm90", tile=(64, 64, 64), operation="Softmax"),
    ],
    "gemm-operands": [
        lambda: fp4ref.plan(GemmConfig.nvfp4(operand_format="tf32")),
        lambda: fp4ref.plan(GemmConfig.nvfp4(b_format="int8")),
    ],
    "gemm-tile": [
        lambda: fp4ref.plan(GemmConfig.nvfp4(tile_n=96)),
        lambda: fp4ref.plan(GemmConfig.nvfp4(tile_m=64, operand_format="bf16")),
    ],
    "gemm-output": [
        lambda: fp4ref.plan(GemmConfig.nvfp4(d_format="e3m2")),
        lambda: fp4ref.plan(GemmConfig.nvfp4(c_format="e3m2")),
        lambda: fp4ref.plan(GemmConfig.nvfp4(subtile_n=48)),
        lambda: make_config("e3m2", None),
    ],
    "gemm-activation": [lambda: fp4ref.plan(GemmConfig.nvfp4(activation="tanh"))],
    "gemm-scheduler": [
        lambda: fp4ref.plan(GemmConfig.nvfp4(scheduler="stream_k")),
        lambda: fp4ref.plan(GemmConfig.nvfp4(raster="swizzled")),
    ],
    "cutlass-examples": [lambda: find_example("70"), lambda: make_config("f32", "70")],
    "mma-shape": [
        lambda: InstrDescriptor.decode(GOOD | 1 << 31),
    ],
    "mma-sparse": [
        lambda: InstrDescriptor.decode(GOOD | 1 << 2),
        lambda: UnscaledInstrDescriptor.decode(UNSCALED | 1 << 2, "f16"),
    ],
    "descriptor-base-offset": [
        lambda: SmemDescriptor.decode(SMEM & ~(7 << 61) | 1 << 49),
        lambda: SmemDescriptor.decode(SMEM | 1 << 49).mn_major_offsets(16, 256),
    ],
    "descriptor-absolute-stride": [lambda: SmemDescriptor.decode(SMEM | 1 << 52)],
    "descriptor-32-byte-atom": [lambda: SmemDescriptor.decode(SMEM ^ 3 << 61)],
    "ptx-address-size": [lambda: parse(f"{PTX}32")],
    "ptx-initialiser": [
        lambda: parse(f"{PTX}64 .global .u8 a[2][1] = {{{{1}}, {{2}}}};"),
        lambda: parse(f"{PTX}64 .global .u32 b; .global .u64 a = generic(b);"),
    ],
    "ptx-variable-attribute": [
        lambda: parse(f"{PTX}64 .global .attribute(.managed) .u32 a;"),
        lambda: parse(f"{PTX}64 .global .texref a;"),
    ],
    "ptx-vector-registers": [lambda: parse(f"{KERNEL} .reg .v2 .b32 a; }}")],
    "ptx-special-register": [
        lambda name=name: translate(
            load(
                Machine(1, make_schedule("eager")),
                Program.of(parse(f"{KERNEL} mov.u32 %r1, {name}; }}")),
                b"",
                (32, 1, 1),
            )
        )
        for name in (
            "%reserved_smem_offset_1",
            "%envreg0",
            "%pm3",
            "%envreg31",
            "%gridid",
        )
    ],
    "ptx-constant-expression": [
        lambda text=text: parse(
            f"{PTX}64 .shared .b8 s[9]; .entry k() {{ .reg .b32 %r<9>; {text} }}"
        )
        for text in (
            "mov.u32 %r1, 1+2;",
            "mov.u32 %r1, (1+2)*3;",
            "mov.u32 %r1, ~3;",
            "mov.u32 %r1, !3;",
            "mov.u32 %r1, 4<<1;",
            "mov.u32 %r1, s+4;",
            "ld.shared.u32 %r1, s[4];",
            "ld.shared.u32 %r1, [%r2+4*2];",
        )
    ],
}


@pytest.mark.parametrize(
    ("id", "attempt"), [(id, a) for id, attempts in TRIES.items() for a in attempts]
)
def test_it_is_refused_and_the_error_names_the_row(
    id: str, attempt: Callable[[], Any]
) -> None:
    with pytest.raises((NotModelled, InputError)) as caught:
        attempt()
    assert caught.value.gap == id
    assert re.search(rf"(?i)gap: {id} \(`fp4ref fidelity --gaps`", str(caught.value))


def test_the_command_line_prints_the_whole_list() -> None:
    for arguments in (["fidelity"], ["fidelity", "--gaps"]):
        said = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
        assert said.exit_code == 0
        assert all(gap.id in said.stdout.split() for gap in GAPS)
    rows = json.loads(CliRunner().invoke(app, ["fidelity", "--gaps", "--json"]).stdout)
    assert [row["id"] for row in rows] == [gap.id for gap in GAPS]


def test_the_third_packing_is_named_where_the_orders_are() -> None:
    with pytest.raises(InputError, match="'split' is GGML's: nibbles half a"):
        block("interleaved")


def test_input_that_is_wrong_everywhere_names_no_row() -> None:
    with pytest.raises(InputError) as caught:
        fp4ref.quantize(np.ones((1, 15), np.float32))
    assert caught.value.gap == ""
    assert "gap" not in str(caught.value)


def test_the_row_with_the_most_words_speaks() -> None:
    def spoken(opcode: str) -> str:
        found = covering(opcode)
        return found.id if found else ""

    assert spoken("tcgen05.mma.ws.sp.cta_group::1.kind::f16") == "mma-sparse"
    assert spoken("cvt.pack.sat.u8.s32.b32") == "ptx-cvt-pack"
    assert spoken("fma.rn.oob.f16x2") == "ptx-float-half"
    assert spoken("mad24.hi.sat.s32") == "ptx-integer-packed"
    assert spoken("nonsense.u32") == ""
