"""problem: every file that a person may give to a walk, and the sentence that answers.

Each test reads the text: what is wrong, where, the rule and the remedy.
"""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
from fuzz_files import archive, header_only, npy

from fp4ref.commands import app
from fp4ref.files import free_memory
from fp4ref.walk.inputs import load_problem

GOOD = np.random.default_rng(3).standard_normal((4, 64)).astype(np.float32)
SAVE = "save two float matrices, x (M, K) and w (N, K), with numpy.savez"


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Walk a file; return the sentence that refuses it."""
    monkeypatch.chdir(tmp_path)

    def run(name: str = "bad.npz", **arrays: np.ndarray) -> str:
        if arrays:
            np.savez(name, **arrays)
        result = CliRunner().invoke(app, ["walk", name, "--no-kernel"])
        assert result.exit_code == 2, result.output
        assert not result.stdout
        assert not Path("walk.fp4trace.npz").exists()
        return " ".join(result.stderr.split())

    return run


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (np.ones((4, 64), np.int8), "x is int8; quantising takes floats, so save x.as"),
        (np.ones((4, 64), bool), "x is bool; quantising takes floats"),
        (np.ones((4, 64), complex), "x is complex128; quantising takes real numbers"),
        (np.full((4, 64), "a"), "x is <U1, no numbers; save a matrix of float16"),
        (
            GOOD.astype(ml_dtypes.bfloat16),
            "if it is bfloat16, save x_bf16=x.view(numpy.uint16)",
        ),
        (
            np.full((4, 64), None),
            "x is an array of Python objects, which are never unpickled; save "
            "numpy.asarray(x.tolist(), numpy.float32)",
        ),
        (GOOD[:0], "x has shape (0, 64); every size of (M, K) is at least 1"),
        (GOOD[:, :0], "x has shape (4, 0); every size"),
        (GOOD[0], "x has shape (64,); give a matrix (M, K)"),
        (GOOD[None], "x has shape (1, 4, 64); give a matrix (M, K), one of a batch"),
        (np.float32(1), "x has shape (); give a matrix (M, K)"),
        (GOOD[:, :32], "x is (4, 32) and w is (4, 64); both need the same K"),
        (GOOD.T, "x is (64, 4) and w is (4, 64); both need the same K"),
        (
            np.where(np.arange(64) == 9, 1e300, GOOD.astype(np.float64)),
            "x holds 1e+300 at row 0, k 9 (4 such values), beyond float32's largest "
            "3.4e+38; divide x by a power of two",
        ),
    ],
)
def test_a_matrix_that_is_none(refused, x: np.ndarray, sentence: str) -> None:
    said = refused(x=x, w=GOOD)
    assert said.startswith("bad.npz: x ")
    assert sentence in said


def test_w_as_k_by_n_is_recognised(refused) -> None:
    said = refused(x=GOOD, w=np.zeros((64, 8), np.float32))
    assert "w looks like (K, N): save w.T" in said


def test_one_element(refused) -> None:
    one = np.ones((1, 1), np.float32)
    assert refused(x=one, w=one) == (
        "K = 1: K is a multiple of 32, because a row of packed E2M1 is a multiple of "
        "TMA's 16 bytes. Pad x and w with columns of zeros to K = 32; y does not change"
    )


def test_missing_names_are_listed(refused) -> None:
    said = refused(a=GOOD, b=GOOD)
    assert "bad.npz holds a, b; it needs x (floats) or x_bf16" in said
    assert SAVE in said


def test_bf16_bits_of_another_type(refused) -> None:
    said = refused(x_bf16=np.zeros((4, 64), np.int16), w=GOOD)
    assert "x_bf16 is int16; it holds the bit patterns of bfloat16" in said


PICKLE = b"\x80\x04\x95\x00."


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (npy(GOOD), "it is an .npy, which holds one array and has no names"),
        (b"", "it is empty"),
        (PICKLE, "it is a pickle, which could run any code"),
        (b"x,w\n1,2\n", "it is no zip archive"),
        (b"PK\x03\x04broken", "it is damaged or cut short"),
        (archive({"x.npy": npy(GOOD)})[:-30], "it is damaged or cut short"),
        (archive({"x.txt": b"hello"}), "x.txt is no array of NumPy's (ValueError: "),
        (
            archive({"x.npy": header_only("<f4", (10**6, 10**6), False, 16)}),
            "x claims 1,000,000,000,000 elements of float32, 4,000,000,000,000 bytes, "
            "and has 16",
        ),
        (
            archive({"x.npy": header_only("<f4", (-4, 8), False, 16)}),
            "x claims the shape (-4, 8)",
        ),
        (
            archive({"x.npy": npy(GOOD).replace(b"\x01\x00", b"\x03\x00", 1)}),
            "x has fields, or an unknown format (3, 0)",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_file_of_another_kind(refused, content: bytes, sentence: str) -> None:
    Path("bad.npz").write_bytes(content)
    said = refused()
    assert said.startswith(f"bad.npz is no .npz file: {sentence}")
    assert SAVE in said


def test_an_npy_of_that_name(refused) -> None:
    np.save("x.npy", GOOD)
    assert "x.npy is no .npz file: it is an .npy" in refused("x.npy")


def test_an_encrypted_archive(refused) -> None:
    data = bytearray(archive({"x.npy": npy(GOOD), "w.npy": npy(GOOD)}))
    data[data.find(b"PK\x01\x02") + 8] |= 1
    Path("bad.npz").write_bytes(data)
    assert "x is encrypted" in refused()


def test_a_flipped_bit_in_the_data(refused) -> None:
    with zipfile.ZipFile("bad.npz", "w") as opened:
        for name in ("x.npy", "w.npy"):
            opened.writestr(name, npy(GOOD))
    data = bytearray(Path("bad.npz").read_bytes())
    data[data.find(GOOD[2].tobytes())] ^= 1
    Path("bad.npz").write_bytes(data)
    assert "it is damaged or cut short" in refused()


def test_what_is_no_ordinary_file(refused, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused("none.npz") == "none.npz: no such file"
    assert refused(".") == ". is a folder; name a file"
    if hasattr(os, "mkfifo"):
        os.mkfifo("pipe")
        assert "pipe is a pipe or a device; copy what it gives" in refused("pipe")
    Path("mine").write_bytes(b"")

    def deny(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("fp4ref.files.array_file.open", deny, raising=False)
    assert refused("mine") == (
        "mine: you may not read it; ask its owner, or run chmod +r"
    )


def test_a_zip_bomb_is_not_expanded(refused, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = header_only("<f4", (2**10, 2**12), False, 2**24)
    data = archive({"x.npy": zeros, "w.npy": zeros})
    assert len(data) < 2**24 // 100
    Path("bad.npz").write_bytes(data)
    monkeypatch.setattr(free_memory, "free_nbytes", lambda: 10**7)
    monkeypatch.setattr(np.lib.format, "read_array", None)
    assert refused() == (
        "reading bad.npz needs about 68 MB of memory, and 10 MB are free. Take a "
        "smaller file."
    )


def test_what_else_the_file_holds_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=GOOD, w=GOOD, other=np.array([{}], object))
    assert (load_problem(path).x == GOOD).all()


def test_words_of_the_file_cannot_command_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=GOOD, w=GOOD, layer="[/b]\x1b[2J\x07 layer")
    assert load_problem(path).title == "[/b] [2J  layer"


@pytest.mark.parametrize("dtype", [np.float16, ">f4", np.float32])
def test_floats_that_convert_exactly(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "a.npz"
    x = np.arange(64, dtype=np.float32).reshape(2, 32)
    np.savez(path, x=x.astype(dtype), w=x)
    found = load_problem(path)
    assert (found.x == x).all()
    assert found.notes == ()


def test_float64_is_rounded_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    x = np.full((2, 32), 1e-60)
    x[0] = 0.1
    np.savez(path, x=x, w=GOOD[:, :32].astype(np.float64))
    found = load_problem(path)
    assert found.notes == (
        "x is float64 and was rounded to float32; 32 values are too small for it and "
        "become 0",
        "w is float64 and was rounded to float32",
    )
    assert found.x[0, 0] == np.float32(0.1)
