"""safetensors_file: what is damaged, cut short or hostile says what and where."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import joined, parts, weights, write

from fp4ref.errors import InputError
from fp4ref.files.array_file import UnreadableFile, read_npy
from fp4ref.files.safetensors_file import read_sharded, read_stored

TENSORS = {"a.weight": weights(), "b.weight": weights(seed=1), "c": np.zeros((0, 4))}
TENSORS["c"] = TENSORS["c"].astype(np.float32)


def entry(**changes: Any) -> bytes:
    """A file whose tensor b.weight is described otherwise."""
    header, data = parts(TENSORS)
    header["b.weight"] |= changes
    return joined(header, data)


def cut(count: int) -> bytes:
    return joined(*parts(TENSORS))[:count]


HEADER, DATA = parts(TENSORS)
WRONG: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "0 bytes"),
    "seven bytes": (b"\1" * 7, "the length of the header alone takes 8"),
    "length only": (cut(8), "claim a header of"),
    "cut in the header": (cut(50), "cut short"),
    "cut in the data": (joined(HEADER, DATA[:-1]), "it is cut short"),
    "a byte too many": (joined(HEADER, DATA + b"\0"), "follow the last tensor"),
    "huge header": (b"\xff" * 8 + b"{}", "claim a header of 18,446,744,073"),
    "gguf": (b"GGUF\3" + bytes(60), "a GGUF file"),
    "pickle": (b"\x80\4" + bytes(60), "could run any code"),
    "torch zip": (b"PK\3\4" + bytes(60), "could run any code"),
    "lfs pointer": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    "web page": (b"<!doctype html>" + bytes(60), "a web page"),
    "hdf5": (b"\x89HDF" + bytes(60), "an HDF5 file"),
    "no brace": (joined(b"[1, 2]", b""), "and not with a brace"),
    "no JSON": (joined(b'{"a": }', b""), "byte 14: its header is no JSON"),
    "no UTF-8": (joined(b'{"\xff": 1}', b""), "byte 10 of its header is no UTF-8"),
    "nested": (joined(b'{"a":' + b"[" * 200_000, b""), "header is n"),
    "twice": (joined(b'{"a": 1, "a": 2}', b""), "names 'a' twice"),
    "long number": (joined(b'{"a": ' + b"9" * 9000 + b"}", b""), "a number too long"),
    "no entry": (joined({"a": 5}, b""), "need dtype, shape and data_offsets"),
    "more keys": (entry(other=1), "and only these"),
    "unknown type": (entry(dtype="Q4_K"), "dtype 'Q4_K'; known are"),
    "type no text": (entry(dtype=["F32"]), "known are"),
    "shape no list": (entry(shape="32"), "need whole numbers from 0"),
    "negative shape": (entry(shape=[-32, -64]), "need whole numbers from 0"),
    "bool shape": (entry(shape=[True, 2048]), "need whole numbers from 0"),
    "float shape": (entry(shape=[32.0, 64]), "need whole numbers from 0"),
    "overflow": (entry(shape=[1 << 62, 1 << 62]), "are 85,070,591"),
    "wrong shape": (entry(shape=[32, 63]), "are 8,064 bytes, and its data_offsets"),
    "overlap": (entry(data_offsets=[0, 8192]), "overlaps the tensor before"),
    "gap": (entry(data_offsets=[8196, 16388]), "leaves a gap"),
    "backwards": (entry(data_offsets=[16384, 8192]), "hold -8,192"),
    "three offsets": (entry(data_offsets=[1, 2, 3]), "two data_offsets"),
    "many dimensions": (entry(shape=[1] * 33), "at most 32 dimensions"),
    "metadata": (joined(HEADER | {"__metadata__": {"a": 1}}, DATA), "object of texts"),
}


def npy_of(header: str) -> bytes:
    """Return an .npy with a header of any text and 64 bytes of data."""
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text + bytes(64)


def f32(shape: str) -> str:
    return f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"


@pytest.mark.parametrize("kind", WRONG)
def test_it_is_refused_in_a_sentence(tmp_path: Path, kind: str) -> None:
    data, why = WRONG[kind]
    path = tmp_path / "model.safetensors"
    path.write_bytes(data)
    with pytest.raises(UnreadableFile) as caught:
        read_stored(path)
    said = str(caught.value)
    assert why in said
    assert said.startswith(f"{path} is no safetensors file: ")
    assert "\n" not in said


def test_there_are_more_than_twenty_kinds() -> None:
    assert len(WRONG) > 20


def test_a_right_file_is_read(tmp_path: Path) -> None:
    header = HEADER | {"__metadata__": {"format": "pt"}}
    path = tmp_path / "model.safetensors"
    path.write_bytes(joined(header, DATA))
    found = read_stored(path)
    assert list(found) == list(TENSORS)
    for name, array in TENSORS.items():
        assert (found[name].read() == array).all()


@pytest.mark.parametrize("length", [0x43C, 0x480, 0x4B50, 0x93])
def test_a_length_that_looks_like_another_format_is_a_length(
    tmp_path: Path, length: int
) -> None:
    """0x3C is '<', 0x80 starts a pickle, 0x4B50 is PK."""
    header = parts({"a": np.ones(1, np.float32)})[0]
    text = json.dumps(header).encode().ljust(length)
    path = tmp_path / "model.safetensors"
    path.write_bytes(joined(text, bytes(4)))
    assert list(read_stored(path)) == ["a"]


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Change, remove or add bytes near the start, or cut the end off."""
    at = rng.randrange(min(len(data), 400))
    before, after = data[:at], data[at:]
    kind = rng.randrange(5)
    if kind == 0:
        return before + bytes([rng.randrange(256)]) + after[1:]
    if kind == 1:
        return before + after[rng.randrange(1, 9) :]
    if kind == 2:
        return before + rng.randbytes(3) + after
    if kind == 3:
        return data[: rng.randrange(1, len(data))]
    return before + b"99999999999999999999" + after[1:]


def refusal(path: Path) -> str:
    """Read everything; say how it was refused."""
    try:
        for stored in read_stored(path).values():
            stored.read()
    except InputError as error:
        return str(error)
    return ""


def fuzz(tmp_path: Path, seed: int, runs: int) -> None:
    rng, right = random.Random(seed), joined(HEADER, DATA)
    path, refused = tmp_path / "model.safetensors", 0
    for _ in range(runs):
        data = right
        for _ in range(rng.randrange(1, 4)):
            data = damaged(rng, data) or right
        path.write_bytes(data)
        said = refusal(path)
        assert "\n" not in said
        refused += bool(said)
    assert refused > runs // 2


def test_damaged_npy_files(tmp_path: Path, rotating_seed: int) -> None:
    rng, right = random.Random(rotating_seed), npy_of(f32("(4, 4)"))
    path, refused, lines = tmp_path / "x.npy", 0, 0
    for _ in range(500):
        path.write_bytes(damaged(rng, right))
        try:
            read_npy(path)
        except InputError as error:
            lines += len(str(error).splitlines())
            refused += 1
    assert lines == refused > 100


def test_a_thousand_damaged_files(tmp_path: Path, rotating_seed: int) -> None:
    fuzz(tmp_path, rotating_seed, 1000)


@pytest.mark.soak
def test_a_hundred_thousand_damaged_files(tmp_path: Path, rotating_seed: int) -> None:
    fuzz(tmp_path, rotating_seed + 1, 100_000)


def test_a_folder_needs_one_file_or_an_index(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"a folder without a .safetensors file"):
        read_sharded(tmp_path)
    write(tmp_path / "one.safetensors", TENSORS)
    assert list(read_sharded(tmp_path)) == list(TENSORS)
    write(tmp_path / "two.safetensors", TENSORS)
    with pytest.raises(UnreadableFile, match=r"holds 2 .safetensors files"):
        read_sharded(tmp_path)


@pytest.mark.parametrize(
    ("text", "why"),
    [("[]", "no index of shards"), ("{}", "no weight_map"), ("{", "no JSON")],
)
def test_an_index_has_a_weight_map(tmp_path: Path, text: str, why: str) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(text)
    with pytest.raises(UnreadableFile, match=why):
        read_sharded(index)


def test_a_tensor_of_a_file_that_shrank_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "model.safetensors", TENSORS)
    stored = read_stored(path)["b.weight"]
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UnreadableFile, match=r"b.weight is cut short"):
        stored.read()


def test_an_npy_is_read_and_nothing_is_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, weights())
    assert (read_npy(path) == weights()).all()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UnreadableFile, match=r"is no .npy file: it claims 2,048"):
        read_npy(path)
    np.save(path, np.array([object()]), allow_pickle=True)
    with pytest.raises(UnreadableFile, match="never unpickled"):
        read_npy(path)
    np.save(path, np.array([(1, 2)], [("a", "f4"), ("b", "O")]), allow_pickle=True)
    with pytest.raises(UnreadableFile, match="never unpickled"):
        read_npy(path)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"PK\3\4" + bytes(60), "it is a zip, as numpy.savez writes"),
        (b"\x80\4" + bytes(60), "it is a pickle, which could run any code"),
        (b"hello world", "it does not begin as numpy.save's files do"),
        (b"\x93NUMPY", "no array of NumPy's"),
        (b"\x93NUMPY\3\0" + bytes(60), "an unknown format (3, 0)"),
        (b"\x93NUMPY\1\0\xff\xff{", "no array of NumPy's"),
        (npy_of(f32("(-4, 4)")), "claims"),
        (npy_of(f32("(1 << 60,)")), "no"),
        (npy_of(f32("(9**40,)")), "no"),
        (npy_of(f32("4000000000000,")), "no"),
        (npy_of(f32("(10000000000000,)")), "claims"),
        (npy_of("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"), "never"),
        (npy_of("__import__('os').system('true')"), "no array of NumPy's"),
        (npy_of("[" * 5000), "no array of NumPy's"),
    ],
)  # fmt: skip
def test_what_is_no_npy_is_refused_in_a_sentence(
    tmp_path: Path, data: bytes, why: str
) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(data)
    with pytest.raises(UnreadableFile) as caught:
        read_npy(path)
    said = str(caught.value)
    assert said.startswith(f"{path} is no .npy file: ")
    assert why in said
    assert "\n" not in said
    assert len(said) < 400
