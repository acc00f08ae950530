"""Launch files, launches of arrays and of compiled kernels, and what is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from check_kernels import STORE, VARIANTS, Case

from fp4ref import check
from fp4ref.errors import InputError
from fp4ref.evidence.check import (
    Struct,
    launch_arrays,
    launch_cute_dsl,
    launch_template,
    launch_triton,
    read_launch,
    tensor_map,
)
from fp4ref.evidence.check.kernel_text import KernelText, read_kernel
from fp4ref.evidence.check.launch import Pointer, Scalar

HEAD = ".version 8.8\n.target sm_100a\n.address_size 64\n"
AXPY = (
    HEAD
    + """
.visible .entry axpy(
    .param .u64 .ptr .global .align 16 x,
    .param .u64 y,
    .param .f32 a,
    .param .u32 n,
    .param .align 8 .b8 more[24]
)
.maxntid 64
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<12>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    cvta.to.global.u64 %rd3, %rd2;
    ld.param.f32 %f1, [a];
    ld.param.u32 %r1, [n];
    ld.param.u64 %rd7, [more+8];
    ld.param.u32 %r3, [more+16];
    mov.u32 %r2, %tid.x;
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd4, %r2, 4;
    add.s64 %rd5, %rd1, %rd4;
    add.s64 %rd6, %rd3, %rd4;
    ld.global.f32 %f2, [%rd5];
    ld.global.f32 %f3, [%rd6];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    st.global.f32 [%rd6], %f4;
    setp.eq.u32 %p0, %r2, 0;
    @%p0 st.global.u32 [%rd7], %r3;
DONE:
    ret;
}
"""
)
X = np.arange(64, dtype=np.float32)
Y = np.full(64, 100, np.float32)

FILE = """
grid = [1]
block = [64]
[[param]]
buffer = "x"
[[param]]
name = "y"
buffer = "y"
[[param]]
f32 = 0.5
[[param]]
u32 = 64
[[param]]
zeros = 24
field = [{at = 8, buffer = "z", offset = 4}, {at = 16, u32 = 77}]
[buffer.x]
file = "x.npy"
[buffer.y]
file = "y.npy"
expected = "want.npy"
bits = true
[buffer.z]
dtype = "u32"
shape = [2]
zeros = true
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    np.save(tmp_path / "want.npy", Y + X / 2)
    (tmp_path / "k.ptx").write_text(AXPY)
    (tmp_path / "k.toml").write_text(FILE)
    return tmp_path


def test_a_launch_file_gives_every_kind_of_parameter(folder: Path) -> None:
    found = check(folder / "k.ptx", folder / "k.toml")
    assert found.status == "clean", found.report()
    assert found.outputs is not None
    np.testing.assert_array_equal(found.outputs["y"], Y + X / 2)
    np.testing.assert_array_equal(found.outputs["z"], [0, 77])


def changed(folder: Path, old: str, new: str) -> Path:
    assert old in FILE
    (folder / "k.toml").write_text(FILE.replace(old, new, 1))
    return folder / "k.toml"


BAD = [
    ("grid = [1]", "grid = [1]\ngird = 2", "line 3: unknown key 'gird'"),
    ("grid = [1]", "grid = [1, 0]", "line 2: grid: 0; 1 to"),
    ("grid = [1]", "grid = [70000]", "a grid of 70,000 CTAs; at most 65,536"),
    ("grid = [1]", "grid = 5", "line 2: grid = 5: need a list"),
    ("grid = [1]", "grid = [1.5]", "line 2: grid = [1.5]: need whole numbers"),
    ("grid = [1]\n", "", "grid is missing"),
    ("grid = [1]", "grid = [1,2,3,4]", "grid has 4 extents; 1 to 3"),
    ("block = [64]", "block = [2000]", "line 3: block: 2000; 1 to 1,024"),
    ("block = [64]", "block = [128]", "takes at most 64 threads"),
    ("block = [64]", "block = [64]\nshared = 999999", "line 4: shared = 999999"),
    ("block = [64]", "block = [64]\nsms = 1000", "line 4: sms = 1000: 1 to 160"),
    ("block = [64]", "block = [64]\nentry = 'no'", "'no': this module has axpy"),
    ("block = [64]", "block = [64", "no TOML: "),
    ('buffer = "x"', 'buffer = "w"', "parameter x: there is no buffer 'w'; there is x"),
    ('name = "y"', 'name = "q"', "line 6: parameter y stands where the launch has q"),
    ("f32 = 0.5", "f64 = 0.5", "parameter a has 4 bytes (.f32); the launch gives 8"),
    ("f32 = 0.5", "u32 = 5", "parameter a is .f32; the launch gives u32"),
    ("f32 = 0.5", 'f32 = "5"', "line 10: f32 = '5': need a number"),
    ("f32 = 0.5", "f32 = 0.5\nu32 = 1", "and here is f32 and u32"),
    ("f32 = 0.5", "", "a parameter has one value, and here is none"),
    ("u32 = 64", "u32 = 4294967296", "line 12: 4294967296 does not fit u32"),
    ("u32 = 64", "u32 = 6.5", "line 12: u32 = 6.5: need a whole number"),
    ("zeros = 24", "zeros = 20", "more has 24 bytes (.b8); the launch gives 20"),
    ("zeros = 24", "zeros = 32", "has 24 bytes (.b8); the launch gives 32"),
    ("zeros = 24", 'bytes = "0g"', "pairs of hexadecimal digits"),
    ("at = 16", "at = 22", "parameter more: 4 bytes at 22 of a struct of 24"),
    ('file = "x.npy"', 'file = "no.npy"', "no.npy: no such file"),
    ('file = "x.npy"', 'file = "k.ptx"', "is no .npy file"),
    ("bits = true", "", "say how near it must be: bits = true, or rtol"),
    ("bits = true", "bits = true\nrtol = 1.0", "bits, or rtol and atol; not both"),
    ("bits = true", "rtol = -1.0", "a tolerance of -1.0; 0 or more"),
    ("bits = true", "rtol = nan", "a tolerance of nan; 0 or more"),
    ('"want.npy"', '"short.npy"', "expected has 12 bytes, the buffer 256"),
    (
        '"want.npy"',
        '"objects.npy"',
        "it holds Python objects, which are never",
    ),
    ('"want.npy"', '"text.npy"', "elements of <U1; need numbers"),
    ("shape = [2]", "", "a buffer has a file, or a shape (and a dtype)"),
    ("shape = [2]", "shape = [-2]", "shape: -2; 1 to"),
    ("shape = [2]", "shape = [99999999999]", "line 24: shape: 99999999999"),
    ('dtype = "u32"', 'dtype = "int"', "dtype = 'int': one of u8, u16"),
    ("[buffer.x]", "[buffer.xx]", "parameter x: there is no buffer 'x'"),
    ("[[param]]\nu32 = 64\n", "", "4 parameters; axpy takes 5: x, y, a, n, more"),
]


@pytest.mark.parametrize(("old", "new", "sentence"), BAD, ids=[b[2][:40] for b in BAD])
def test_a_wrong_launch_file_is_one_sentence_with_its_line(
    folder: Path, old: str, new: str, sentence: str
) -> None:
    np.save(folder / "short.npy", X[:3])
    np.save(folder / "objects.npy", np.array([{}], object), allow_pickle=True)
    np.save(folder / "text.npy", np.array(["a"]))
    path = changed(folder, old, new)
    with pytest.raises(InputError) as raised:
        check(folder / "k.ptx", path)
    assert sentence in str(raised.value)


TEXTS = {
    "for another GPU": (
        AXPY.replace("sm_100a", "sm_90a"),
        "line 2: .target sm_90a does not run on sm_100; compile for sm_100a",
    ),
    "for a later one": (AXPY.replace("sm_100a", "sm_120"), ".target sm_120 does not"),
    "cut short": (AXPY[:600], "the text ends in the middle of a statement"),
    "no PTX": ("int main() {}\n", "no .target; this is no PTX"),
    "an unknown word": (AXPY.replace("fma.rn.f32", "fmx.rn.f32"), "fmx.rn.f32"),
    "a lost label": (AXPY.replace("DONE:", "GONE:"), "unknown label DONE"),
    "no entry": (HEAD, "this module has none"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_that_cannot_run_is_one_sentence(folder: Path, name: str) -> None:
    text, sentence = TEXTS[name]
    (folder / "bad.ptx").write_text(text)
    with pytest.raises(InputError) as raised:
        check(folder / "bad.ptx", folder / "k.toml")
    assert sentence in str(raised.value)
    assert str(raised.value).count("bad.ptx") == 1


def test_older_targets_run(folder: Path) -> None:
    text = AXPY.replace("sm_100a", "sm_90")
    assert check(text, folder / "k.toml").ok


def test_100_mb_and_machine_code_are_refused_before_they_are_read(tmp_path) -> None:
    big = tmp_path / "big.ptx"
    with open(big, "wb") as opened:
        opened.truncate(100 << 20)
    with pytest.raises(InputError, match="more than 33,554,432 bytes of PTX"):
        read_kernel(big)
    cubin = tmp_path / "k.cubin"
    cubin.write_bytes(b"\x7fELF" + bytes(64))
    with pytest.raises(InputError, match="is compiled machine code; give its PTX"):
        read_kernel(cubin)
    cubin.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not in UTF-8"):
        read_kernel(cubin)
    with pytest.raises(InputError, match="no such file"):
        read_kernel(tmp_path / "none.ptx")
    with pytest.raises(InputError, match="is a folder"):
        read_kernel(tmp_path)


def test_an_input_may_hold_nan(folder: Path) -> None:
    x = X.copy()
    x[3] = np.nan
    np.save(folder / "x.npy", x)
    (found,) = check(folder / "k.ptx", folder / "k.toml").errors
    assert "the first is [3]: nan" in found.what


# -- the template -----------------------------------------------------------------


def test_a_template_runs_once_its_sizes_are_filled_in(tmp_path: Path) -> None:
    text = launch_template(KernelText("k.ptx", AXPY))
    assert "block = [64, 1, 1]" in text
    assert text.count("fill in") > 5
    path = tmp_path / "k.toml"
    path.write_text(text.replace("zeros = 24 ", "bytes = '" + "00" * 24 + "' "))
    launch = read_launch(path)
    assert [type(p.value).__name__ for p in launch.params] == [
        *("Pointer", "Pointer", "Scalar", "Scalar", "Struct"),
    ]
    # Nothing of n = 0 runs, so the empty struct is not used.
    assert check(AXPY, path).ok


def test_a_template_knows_maps_clusters_and_dynamic_shared_memory(
    tmp_path: Path,
) -> None:
    text = (
        HEAD
        + """
.extern .shared .align 16 .b8 smem[];
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 n)
.reqntid 96, 2
.reqnctapercluster 2
{ ret; }
"""
    )
    written = launch_template(KernelText("k.ptx", text))
    path = tmp_path / "k.toml"
    path.write_text(written)
    launch = read_launch(path)
    assert (launch.block, launch.cluster) == ((96, 2, 1), (2, 1, 1))
    assert launch.grid == (2, 1, 1)
    assert "fill in: dynamic shared memory" in written
    assert check(text, path).ok


# -- live arguments ---------------------------------------------------------------


def test_live_arrays_are_a_launch() -> None:
    y = Y.copy()
    struct = Struct(bytes(24), ((8, Pointer("y", 252)), (16, Scalar("u32", 0))))
    want = Y + 2 * X
    want[63] = 0
    launch = launch_arrays(
        AXPY, (1,), [X, y, 2.0, np.int32(63), struct], expected={1: want}
    )
    assert launch.block == (64, 1, 1)
    found = check(AXPY, launch)
    assert found.status == "clean", found.report()
    assert found.outputs is not None
    np.testing.assert_array_equal(found.outputs["y"], want)
    assert (y == Y).all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([X, Y], "arguments: 2; axpy takes 5: x, y, a, n, more"),
        ([X, Y, "s", 64, bytes(24)], "argument 2, a: str; need an array"),
        ([X, Y, 2.0, 64.5, bytes(24)], "u32 = 64.5: a whole number"),
        ([X, Y[:0], 2.0, 64, bytes(24)], "argument 1, y: an empty array"),
        ([X, np.array([{}]), 2.0, 64, bytes(24)], "argument 1, y"),
        ([X, Y, 2.0, 64, bytes(20)], "more has 24 bytes"),
    ],
)
def test_a_wrong_argument_is_one_sentence(arguments: list[Any], sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        launch_arrays(AXPY, (1,), arguments)
    assert sentence in str(raised.value)


def test_what_triton_returns_is_a_launch() -> None:
    """Its metadata and its two pointers to scratch memory, as triton 3.9 has them."""
    text = AXPY.replace(".maxntid 64", ".reqntid 64").replace(
        "    .param .align 8 .b8 more[24]",
        "    .param .u64 .ptr .global .align 1 scratch,\n    .param .u64 profile",
    )
    text = text.replace("    ld.param.u64 %rd7, [more+8];\n", "")
    text = text.replace("    ld.param.u32 %r3, [more+16];\n", "")
    text = text.replace("    @%p0 st.global.u32 [%rd7], %r3;\n", "")
    metadata = SimpleNamespace(
        num_warps=2, num_ctas=1, shared=0, name="axpy", global_scratch_size=0
    )
    compiled = SimpleNamespace(asm={"ptx": text}, metadata=metadata)
    launch = launch_triton(
        compiled, (1,), [X, Y, 0.5, 64], expected={1: Y + X / 2}, rtol=0.0
    )
    assert (launch.block, len(launch.params)) == ((64, 1, 1), 6)
    assert check(compiled, launch).ok
    with pytest.raises(InputError, match=r"need what triton\.compile returned"):
        launch_triton(5, (1,), [])


def test_what_cute_dsl_returns_is_a_launch() -> None:
    compiled = SimpleNamespace(__ptx__=AXPY)
    struct = Struct(bytes(24), ((8, Pointer("x")),))
    launch = launch_cute_dsl(compiled, (1,), [X, Y, 0.5, 1, struct])
    assert check(compiled, launch).status == "clean"
    with pytest.raises(InputError, match="CUTE_DSL_KEEP_PTX=1"):
        launch_cute_dsl(SimpleNamespace(), (1,), [])


def test_a_map_that_the_driver_refuses_is_refused() -> None:
    with pytest.raises(InputError, match="a box row is a multiple of 16 bytes"):
        tensor_map(X, "float32", [64], [], [3])
    with pytest.raises(InputError, match="'float4', swizzle 0; types are uint8"):
        tensor_map(X, "float4", [64], [], [4])


def test_types_that_numpy_has_not_are_bits() -> None:
    case = Case("bf16", "mov.b32 %r9, 0x3F803F80;" + STORE)
    out = np.zeros(512, ml_dtypes.bfloat16)
    map_ = VARIANTS["votes"].launch().params[1].value
    want = np.zeros(512, ml_dtypes.bfloat16)
    want[:128] = 1
    launch = launch_arrays(
        case.text(), (1,), [out, map_], block=(64,), expected={0: want}, rtol=1e-3
    )
    assert check(case.text(), launch).ok
