"""fuzz_files: matrices, traces, PTX and notebooks that are right, and nearly so."""

from __future__ import annotations

import io
import json
import random
import zipfile
from typing import Any

import numpy as np
from fuzz_bytes import ODD_VALUES, altered, altered_words, damaged

Arrays = dict[str, Any]
DTYPES = ("int8", "bool", "complex64", "float16", "float64", "longdouble", "U3", "V2")
EXTREMES = (np.nan, np.inf, -np.inf, 3e38, 1e-44, 1e-38, 0.0, 65504.0)
DESCRIPTIONS = ("<f4", "|O", "<f8", "<U9", "[('a', '<f4')]", "nonsense", "|V0", "<f2")
SHAPES: tuple[Any, ...] = (
    (10**6, 10**6),
    (2**62, 4),
    (-1, 32),
    (1.5, 32),
    (True, 32),
    (0, 0),
    (),
    (32,),
    ("a",),
    7,
)


def npy(array: np.ndarray[Any, Any]) -> bytes:
    """Bytes of one .npy; objects are pickled, as numpy.savez does."""
    out = io.BytesIO()
    np.lib.format.write_array(out, array, allow_pickle=True)
    return out.getvalue()


def archive(members: dict[str, bytes]) -> bytes:
    """Put members into a zip; deflated, so that zeros are a bomb."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as opened:
        for name, data in members.items():
            opened.writestr(name, data)
    return out.getvalue()


def header_only(descr: str, shape: Any, order: Any, body: int) -> bytes:
    """An .npy whose header claims what its body does not hold."""
    text = repr({"descr": descr, "fortran_order": order, "shape": shape}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(body)


def matrices(rng: random.Random) -> Arrays:
    """A small problem that a walk takes."""
    k = rng.choice((32, 64, 96))
    make = np.random.default_rng(rng.randrange(1 << 30))
    shapes = {"x": (rng.randrange(1, 5), k), "w": (rng.randrange(1, 5), k)}
    return {n: make.standard_normal(s).astype("float32") for n, s in shapes.items()}


def odd_problem(rng: random.Random) -> bytes:
    """Bytes of a file for `walk`: right, odd, or wrong in a way that has a name."""
    arrays = matrices(rng)
    name = rng.choice(("x", "w"))
    kind = rng.randrange(16)
    if kind < 4:
        flat = arrays[name].reshape(-1)
        for _ in range(rng.randrange(1, 4)):
            flat[rng.randrange(flat.size)] = rng.choice(EXTREMES)
    elif kind < 5:
        arrays[name][:] = rng.choice(EXTREMES)
    elif kind < 7:
        with np.errstate(all="ignore"):
            wide = np.asarray(arrays[name] * 10.0 ** rng.randrange(-30, 30))
            arrays[name] = wide.astype(rng.choice(DTYPES[:6]))
    elif kind < 8:
        arrays[name] = np.zeros(arrays[name].shape, rng.choice(DTYPES))
    elif kind < 9:
        arrays[name] = rng.choice((arrays[name][0], arrays[name][:0], arrays[name].T))
    elif kind < 10:
        arrays[rng.choice(("x_bf16", "text", "layer", "other"))] = rng.choice(
            (np.array("\x1b[2J[/b]"), np.array([{}], object), np.zeros((2, 32), "u2"))
        )
    elif kind < 11:
        arrays[rng.choice(("X", "a", "../x", "x.npy"))] = arrays.pop(name)
    members = {f"{n}.npy": npy(a) for n, a in arrays.items()}
    if kind == 11:
        descr, shape = rng.choice(DESCRIPTIONS), rng.choice(SHAPES)
        order = rng.choice((False, True, "no"))
        members[f"{name}.npy"] = header_only(descr, shape, order, rng.choice((0, 128)))
    elif kind == 12:
        members[f"{name}.npy"] = damaged(rng, members.get(f"{name}.npy", b"x"))
    data = archive(members)
    if kind == 13:
        data = rng.choice((npy(arrays["x"]), b"", b"\x80\x04.", b"text", data[:-9]))
    elif kind == 14:
        at = data.find(b"PK\x01\x02") + rng.choice((8, 10, 20, 24, 42))
        data = data[:at] + rng.randbytes(1) + data[at + 1 :]
    return damaged(rng, data) if kind == 15 else data


class TraceParts:
    """A trace's file in its parts, to be put together with one part wrong."""

    def __init__(self, data: bytes) -> None:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            self.arrays = {name: file[name] for name in file.files}
        self.header = json.loads(self.arrays.pop("header").tobytes())
        self.whole = data

    def odd(self, rng: random.Random) -> bytes:
        """Bytes of a file for `compare` and `frames`."""
        arrays, header = dict(self.arrays), self.header
        match rng.randrange(8):
            case 0:
                return self.whole
            case 1:
                return damaged(rng, self.whole)
            case 2 | 3:
                event = rng.randrange(len(header["events"]))
                events = list(header["events"])
                events[event] = altered(rng, events[event])
                header = header | {"events": events}
            case 4:
                part = rng.choice(("meta", "base", "version"))
                value = altered(rng, [header[part]])
                header = header | {part: value[0] if value else None}
            case 5:
                events = list(header["events"])
                a, b = rng.randrange(len(events)), rng.randrange(len(events))
                events[a] = events[b] | {"step": a}
                header = header | {"events": events[: rng.choice((a + 1, len(events)))]}
            case 6:
                name = rng.choice(list(arrays))
                array = arrays.pop(name)
                other = rng.choice((array[:-1], array.astype("i8"), array[None], None))
                if other is not None:
                    arrays[rng.choice((name, name, "image_smem9"))] = other
            case 7:
                header = {**header, rng.choice(list(header)): rng.choice(ODD_VALUES)}
        text = json.dumps(header).encode()
        members = {f"{name}.npy": npy(array) for name, array in arrays.items()}
        members["header.npy"] = npy(np.frombuffer(text, np.uint8))
        return archive(members)


PTX = """.version 8.7
.target sm_100a
.address_size 64
.extern .shared .align 16 .b8 smem[];
.global .align 4 .u32 table[4] = {1, 2, 3, 4};
.visible .entry kernel ( .param .u64 out , .param .align 4 .b8 pair[8] )
.maxntid 128 , 1 , 1
{
 .reg .pred %p<3> ; .reg .b32 %r<8> ; .reg .b64 %rd<4> ; .reg .f32 %f<2> ;
 ld.param.u64 %rd1 , [ out ] ;
 mov.u32 %r1 , %tid.x ;
 setp.lt.u32 %p1 , %r1 , 32 ;
$L0: { .reg .b32 t ; add.s32 t , %r1 , 1 ; mov.b32 %r2 , t ; }
 @%p1 bra $L0 ;
 mbarrier.init.shared.b64 [ smem ] , 1 ;
 mov.b64 { %r3 , %r4 } , %rd1 ;
 fma.rn.f32 %f1 , 0f3F800000 , %f1 , %f1 ;
 st.global.v2.b32 [ %rd1 + 8 ] , { %r1 , %r2 } ;
 ret ;
}
"""


def odd_ptx(rng: random.Random, long: str) -> str:
    """A kernel, or a piece of a long one, with words or bytes changed."""
    text = PTX
    if rng.random() < 0.3:
        lines = long.splitlines(keepends=True)
        at = rng.randrange(len(lines))
        text = "".join(lines[:30]) + "".join(lines[at : at + rng.randrange(80)])
    if rng.random() < 0.7:
        return altered_words(rng, text)
    return damaged(rng, text.encode()).decode("utf-8", "replace")


def notebook(*cells: str) -> dict[str, Any]:
    """A notebook whose cells answer exercises, as a reader saves it."""
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "p"}},
        "cells": [
            {
                "id": f"exercise-{number}",
                "cell_type": "code",
                "metadata": {},
                "source": source,
                "outputs": [],
                "execution_count": None,
            }
            for number, source in enumerate(cells, 1)
        ],
    }


def odd_notebook(rng: random.Random) -> bytes:
    """Bytes of a file for the grader."""
    lesson = f"{rng.randrange(1, 13):02}"
    cells = [
        f'answer = {number}\nlessons.check("{lesson}.{number}", answer)'
        for number in range(1, rng.randrange(2, 5))
    ]
    whole = notebook(f'lessons.start("{lesson}")', *cells)
    match rng.randrange(4):
        case 0:
            return json.dumps(whole).encode()
        case 1:
            return damaged(rng, json.dumps(whole).encode())
        case 2:
            depth = rng.choice((3, 5000))
            return b"[" * depth + b"]" * depth
    return json.dumps(altered(rng, whole)).encode()
