"""Make card_arithmetic.npz: what a Hopper card gives for arithmetic and conversions.

    python make_card_arithmetic.py write FOLDER   # needs ptxas: kernels.cubin
    python make_card_arithmetic.py run FOLDER     # on the card: results.npz
    python make_card_arithmetic.py keep FOLDER    # 32 inputs of each form

Each kernel is one instruction: thread i reads element i of three arrays of words, takes
the low bits as sources, and stores the result in the low bits of a word.
"""

from __future__ import annotations

import ctypes
import itertools
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

U64 = NDArray[np.uint64]
RECORD = Path(__file__).with_name("card_arithmetic.npz")
COUNT, KEPT = 4096, 32
WAYS = ("rn", "rz", "rm", "rp")
INTEGERS = [f"{sign}{bits}" for bits in (8, 16, 32, 64) for sign in "su"]
WIDTHS = {"f16": 16, "bf16": 16, "f16x2": 32, "bf16x2": 32, "f32": 32, "f64": 64}
WIDTHS |= {kind: int(kind[1:]) for kind in INTEGERS}
FRACTION = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
BIAS = {"f16": 15, "bf16": 127, "f32": 127, "f64": 1023}
BINARY = (("add", 2), ("sub", 2), ("mul", 2))
Form = tuple[str, str, tuple[str, ...]]
"""Opcode, type of the result, types of the sources."""


def corners(kind: str) -> list[int]:
    """Patterns of a float type where rules change, of both signs."""
    fraction, width = FRACTION[kind], WIDTHS[kind]
    one = BIAS[kind] << fraction
    infinity = (2 * BIAS[kind] + 1) << fraction
    quiet = infinity | 1 << fraction - 1
    found = [0, 1, (1 << fraction) - 1, 1 << fraction, one, one - 1, infinity - 1]
    found += [infinity, quiet, infinity + 1, quiet | 5, one - (1 << fraction)]
    return [bits | sign << width - 1 for bits in found for sign in (0, 1)]


def float_forms() -> list[Form]:
    """Arithmetic of float32, float64 and halves."""
    found: list[Form] = []
    for name, count in (*BINARY, ("fma", 3)):
        for way, ftz, sat in itertools.product(WAYS, ("", ".ftz"), ("", ".sat")):
            if way != "rn" or sat:
                found.append((f"{name}.{way}{ftz}{sat}.f32", "f32", ("f32",) * count))
        found += [(f"{name}.{way}.f64", "f64", ("f64",) * count) for way in WAYS]
    for name, count in (("div", 2), ("sqrt", 1), ("rcp", 1)):
        for way in WAYS:
            found.append((f"{name}.{way}.f64", "f64", ("f64",) * count))
            for ftz in ("", ".ftz") if way != "rn" else ():
                found.append((f"{name}.{way}{ftz}.f32", "f32", ("f32",) * count))
    for name, count in (("min", 2), ("max", 2), ("neg", 1), ("abs", 1)):
        found.append((f"{name}.f64", "f64", ("f64",) * count))
    found.append(("copysign.f64", "f64", ("f64", "f64")))
    for half, pair in itertools.product(("f16", "bf16"), ("", "x2")):
        kind = half + pair
        ftz = ("", ".ftz") if half == "f16" else ("",)
        sat = ("", ".sat") if half == "f16" else ("",)
        for (name, count), f, s in itertools.product(BINARY, ftz, sat):
            found.append((f"{name}{f}{s}.{kind}", kind, (kind,) * count))
        for f, s in itertools.product(ftz, (*sat, ".relu")):
            found.append((f"fma.rn{f}{s}.{kind}", kind, (kind,) * 3))
        for name, f in itertools.product(("neg", "abs"), ftz):
            found.append((f"{name}{f}.{kind}", kind, (kind,)))
        for name, nan, xor in itertools.product(
            ("min", "max"), ("", ".NaN"), ("", ".xorsign.abs")
        ):
            found.append((f"{name}{nan}{xor}.{kind}", kind, (kind, kind)))
        flushes = ".ftz" if half == "bf16" else ""
        found.append((f"ex2.approx{flushes}.{kind}", kind, (kind,)))
        found.append((f"tanh.approx.{kind}", kind, (kind,)))
    return found


def conversion_forms() -> list[Form]:
    """Conversions between floats, to and from integers, and with limits."""
    found: list[Form] = []
    for way in WAYS:
        for ftz, sat in itertools.product(("", ".ftz"), ("", ".sat")):
            found.append((f"cvt.{way}{ftz}{sat}.f32.f64", "f32", ("f64",)))
        found += [(f"cvt.{way}{sat}.f16.f64", "f16", ("f64",)) for sat in ("", ".sat")]
        found.append((f"cvt.{way}.bf16.f64", "bf16", ("f64",)))
        found.append((f"cvt.{way}.f16.bf16", "f16", ("bf16",)))
        found.append((f"cvt.{way}.bf16.f16", "bf16", ("f16",)))
        found.append((f"cvt.{way}.sat.f16.f32", "f16", ("f32",)))
        if way != "rn":
            found.append((f"cvt.{way}.f16.f32", "f16", ("f32",)))
        for kind in INTEGERS:
            found.append((f"cvt.{way}.f64.{kind}", "f64", (kind,)))
            found.append((f"cvt.{way}.sat.f32.{kind}", "f32", (kind,)))
            if way != "rn":
                found.append((f"cvt.{way}.f32.{kind}", "f32", (kind,)))
                found.append((f"cvt.{way}.f16.{kind}", "f16", (kind,)))
            if kind[1:] != "8":
                found.append((f"cvt.{way}.bf16.{kind}", "bf16", (kind,)))
    for half in ("f16", "bf16"):
        found.append((f"cvt.f64.{half}", "f64", (half,)))
        found.append((f"cvt.ftz.f32.{half}", "f32", (half,)))
        for way, m in itertools.product(
            ("rn", "rz"), (".relu", ".satfinite", ".relu.satfinite")
        ):
            found.append((f"cvt.{way}{m}.{half}.f32", half, ("f32",)))
            found.append((f"cvt.{way}{m}.{half}x2.f32", f"{half}x2", ("f32", "f32")))
    found.append(("cvt.ftz.f64.f32", "f64", ("f32",)))
    for way in ("rni", "rzi", "rmi", "rpi"):
        for kind in ("f16", "bf16", "f64"):
            found.append((f"cvt.{way}.{kind}.{kind}", kind, (kind,)))
            for to in INTEGERS:
                if kind != "bf16" or to[1:] != "8":
                    found.append((f"cvt.{way}.{to}.{kind}", to, (kind,)))
        found.append((f"cvt.{way}.sat.s32.f32", "s32", ("f32",)))
    for to, kind in itertools.product(INTEGERS, INTEGERS):
        narrows = int(to[1:]) < int(kind[1:])
        if narrows or (to[0] != kind[0] and int(to[1:]) == int(kind[1:])):
            found.append((f"cvt.sat.{to}.{kind}", to, (kind,)))
    for way in ("rna", "rn", "rz", "rna.satfinite", "rn.relu", "rz.relu"):
        found.append((f"cvt.{way}.tf32.f32", "f32", ("f32",)))
    for small in ("e4m3x2", "e5m2x2"):
        found.append((f"cvt.rn.satfinite.relu.{small}.f32", "u16", ("f32", "f32")))
        found.append((f"cvt.rn.relu.f16x2.{small}", "f16x2", ("u16",)))
        for relu in ("", ".relu"):
            opcode = f"cvt.rn.satfinite{relu}.{small}.f16x2"
            found.append((opcode, "u16", ("f16x2",)))
    return found


def pool(kind: str, position: int) -> U64:
    """Return the inputs of one type in one place among the sources."""
    rng = np.random.default_rng([sum(map(ord, kind)), position])
    if kind.endswith("x2"):
        low, high = (pool(kind[:-2], position + 3 * n) for n in (0, 1))
        return low | high << np.uint64(16)
    width = WIDTHS[kind]
    bits = rng.integers(0, 1 << 64, COUNT, dtype=np.uint64)
    if kind[0] in "su":
        bits >>= rng.integers(0, 64, COUNT).astype(np.uint64)
        bits ^= np.where(rng.integers(0, 2, COUNT), np.uint64(2**64 - 1), np.uint64(0))
        edges = [0, 1, 2**64 - 1, 1 << 63, 2**63 - 1, 2**24 + 1, 2**53 + 1, 65519]
        bits[: len(edges)] = edges
        return bits & np.uint64((1 << width) - 1)
    bits &= np.uint64((1 << width) - 1)
    fraction = np.uint64(FRACTION[kind])
    kept = bits & np.uint64((1 << int(fraction)) - 1 | 1 << width - 1)
    exponent = bits >> fraction
    near = kept | np.uint64(BIAS[kind] - 2) + exponent % np.uint64(5) << fraction
    tiny = kept | exponent % np.uint64(4) << fraction
    choice = rng.integers(0, 8, COUNT)
    bits = np.where(choice < 4, near, np.where(choice < 5, tiny, bits))
    special = np.array(corners(kind), np.uint64)
    pairs = np.arange(special.size**2)
    order = [special[pairs // special.size], special[pairs % special.size]]
    third = rng.permutation(np.resize(special, pairs.size))
    bits[: pairs.size] = [*order, third][position % 3]
    return bits


def sources(form: Form) -> list[U64]:
    """Return the three input arrays of a form."""
    kinds = form[2]
    found = [pool(kind, n) for n, kind in enumerate(kinds)]
    return [*found, *(np.zeros(COUNT, np.uint64) for _ in range(3 - len(kinds)))]


def kernel(number: int, form: Form) -> str:
    """Return an entry that executes one form on every element."""
    opcode, result, kinds = form
    lines = []
    for name, kind in zip("abc", kinds, strict=False):
        width = max(WIDTHS[kind], 16)
        move = "mov.b64" if width == 64 else f"cvt.u{width}.u64"
        lines.append(f".reg .b{width} %{name}; {move} %{name}, %in{name};")
    width = max(WIDTHS[result], 16)
    operands = ", ".join(f"%{name}" for name in "abc"[: len(kinds)])
    widen = "mov.b64" if width == 64 else f"cvt.u64.u{width}"
    lines.append(f".reg .b{width} %d; {opcode} %d, {operands}; {widen} %out, %d;")
    loads = "".join(
        f"ld.param.u64 %p, [k_{name}]; add.u64 %p, %p, %at; "
        f"ld.global.u64 %in{name}, [%p];\n"
        for name in "abc"
    )
    params = ", ".join(f".param .u64 k_{name}" for name in ("out", *"abc"))
    return (
        f".visible .entry k{number}({params}) {{\n"
        ".reg .b64 %ina, %inb, %inc, %out, %p, %at; .reg .b32 %t, %block;\n"
        "mov.u32 %t, %tid.x; mov.u32 %block, %ctaid.x;\n"
        "mad.lo.u32 %t, %block, 256, %t; mul.wide.u32 %at, %t, 8;\n"
        + loads
        + "\n".join(lines)
        + "\nld.param.u64 %p, [k_out]; add.u64 %p, %p, %at; st.global.u64 [%p], %out;\n"
        "ret; }\n"
    )


def write(folder: Path) -> None:
    """Assemble all kernels for sm_90a."""
    forms = float_forms() + conversion_forms()
    text = ".version 8.6\n.target sm_90a\n.address_size 64\n"
    text += "".join(kernel(i, form) for i, form in enumerate(forms))
    (folder / "kernels.ptx").write_text(text)
    ptxas = shutil.which("ptxas") or sys.exit("ptxas is not on the path")
    cubin = str(folder / "kernels.cubin")
    arguments = ["-arch=sm_90a", str(folder / "kernels.ptx"), "-o", cubin]
    subprocess.run([ptxas, *arguments], check=True)


def run(folder: Path) -> None:
    """Launch every kernel on the card, through the driver alone."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: object) -> None:
        if status := getattr(cuda, name)(*arguments):
            sys.exit(f"{name} gave {status}")

    context, module = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    image = (folder / "kernels.cubin").read_bytes()
    call("cuModuleLoadData", ctypes.byref(module), image)
    forms = float_forms() + conversion_forms()
    results = np.empty((len(forms), COUNT), np.uint64)
    nbytes = 8 * COUNT
    memory = [ctypes.c_uint64() for _ in range(4)]
    for each in memory:
        call("cuMemAlloc_v2", ctypes.byref(each), ctypes.c_size_t(nbytes))
    pointers = [ctypes.cast(ctypes.pointer(m), ctypes.c_void_p) for m in memory]
    arguments = (ctypes.c_void_p * 4)(*pointers)
    for number, form in enumerate(forms):
        for target, array in zip(memory[1:], sources(form), strict=True):
            source = np.ascontiguousarray(array).ctypes.data_as(ctypes.c_void_p)
            call("cuMemcpyHtoD_v2", target, source, ctypes.c_size_t(nbytes))
        function = ctypes.c_void_p()
        name = f"k{number}".encode()
        call("cuModuleGetFunction", ctypes.byref(function), module, name)
        shape = (COUNT // 256, 1, 1, 256, 1, 1)
        call("cuLaunchKernel", function, *shape, 0, None, arguments, None)
        target = results[number].ctypes.data_as(ctypes.c_void_p)
        call("cuMemcpyDtoH_v2", target, memory[0], ctypes.c_size_t(nbytes))
    np.savez_compressed(folder / "results.npz", results=results)


def keep(folder: Path) -> None:
    """Take 32 elements of each form, half of them corners, into the record."""
    forms = float_forms() + conversion_forms()
    with np.load(folder / "results.npz") as file:
        results = file["results"]
    inputs, outputs = [], []
    for number, form in enumerate(forms):
        rng = np.random.default_rng(number)
        places = np.concatenate(
            [rng.choice(576, KEPT // 2, False), rng.choice(COUNT, KEPT // 2, False)]
        )
        mask = np.uint64(0xFF if WIDTHS[form[1]] == 8 else 2**64 - 1)
        inputs.append(np.array(sources(form))[:, places])
        outputs.append(results[number][places] & mask)
    widths = [" ".join(str(max(WIDTHS[k], 16)) for k in (d, *s)) for _, d, s in forms]
    opcodes = [opcode for opcode, _, _ in forms]
    np.savez_compressed(
        RECORD,
        opcodes=np.array(opcodes),
        widths=np.array(widths),
        inputs=np.array(inputs),
        results=np.array(outputs),
    )


if __name__ == "__main__":
    {"write": write, "run": run, "keep": keep}[sys.argv[1]](Path(sys.argv[2]))
