"""other_texts: kernels of other people, what forms each needs and what it does here.

    python conformance/other_texts.py FOLDER

FOLDER has a checkout of each repository of other_texts.toml as OWNER+NAME, at the
commit that is named there. CuTe DSL of the version that its author needs is in the
Python that CUTE_DSL_PYTHON names. What is missing is said and skipped. Each file is
compiled to PTX as it is. A kernel with a launch runs under three schedules, and its
results are compared with NumPy in float64. Rewrites docs/other_kernels.md if no file
is missing.
"""

from __future__ import annotations

import argparse
import re
import struct
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from other_compilers import compiled
from other_matmuls import (
    BF16,
    Mapped,
    product,
    product_in_halves,
    scaled_product,
    scaled_product_of_tensors,
)

from fp4ref.errors import Fp4refError, NotModelled
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.ptx import Program, launch
from fp4ref.ptx.run.loader import load
from fp4ref.ptx.run.registry import translate

LIST = Path(__file__).with_suffix(".toml")
PAGE = Path(__file__).parents[1] / "docs" / "other_kernels.md"
SCHEDULES: tuple[str | int, ...] = ("eager", "late", 1)


@dataclass(frozen=True)
class Case:
    """What a kernel is launched with.

    Attributes
    ----------
    arguments
        In the order of the parameters: a number, or an array in global memory.
    expected
        Index of an argument to its values in float64, and the largest error.
    """

    arguments: list[Any]
    expected: dict[int, tuple[NDArray[np.float64], float]]


def _sgemm() -> Case:
    rng = np.random.default_rng(1)
    a, b, c = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((128, 32), (32, 128), (128, 128))
    )
    alpha, beta = np.float32(0.5), np.float32(3)
    wide = [x.astype(np.float64) for x in (a, b, c)]
    want = 0.5 * (wide[0] @ wide[1]) + 3 * wide[2]
    # 32 sums in float32, each of at most half a unit of the largest partial sum, and
    # three roundings of alpha, beta and their sum.
    bound = 35 * 2.0**-24 * float((np.abs(wide[0]) @ np.abs(wide[1])).max() + 20)
    sizes = [np.int32(x) for x in (128, 128, 32)]
    return Case([*sizes, alpha, a, b, beta, c], {7: (want, bound)})


def _softmax() -> Case:
    x = np.random.default_rng(2).standard_normal((8, 160)).astype(np.float32) * 4
    power = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    want = power / power.sum(axis=1, keepdims=True)
    out = np.zeros_like(x)
    return Case([out, x, np.int32(8), np.int32(160)], {0: (want, 1e-6)})


def _layernorm() -> Case:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((8, 256)).astype(np.float32)
    weight, bias = (rng.standard_normal(256).astype(np.float32) for _ in range(2))
    wide = x.astype(np.float64)
    mean = wide.mean(axis=1)
    rstd = 1 / np.sqrt(wide.var(axis=1) + 1e-5)
    want = (wide - mean[:, None]) * rstd[:, None] * weight + bias
    out, of_mean, of_rstd = (np.zeros(n, np.float32) for n in (x.size, 8, 8))
    return Case(
        [out, of_mean, of_rstd, x, weight, bias, np.int32(8), np.int32(256)],
        {0: (want, 1e-5), 1: (mean, 1e-6), 2: (rstd, 1e-5)},
    )


def _gelu() -> Case:
    x = np.random.default_rng(4).standard_normal(2048).astype(BF16)
    wide = x.astype(np.float64)
    inner = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
    want = 0.5 * wide * (1 + np.tanh(inner))
    # Half a unit of bf16 at 4, the largest value, and a little for tanh.
    return Case([np.zeros(2048, BF16), x, np.int32(2048)], {0: (want, 0.0085)})


def _residual() -> Case:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(2048).astype(BF16) for _ in range(2))
    want = a.astype(np.float64) + b.astype(np.float64)
    # Rounded once: the bits of bf16.
    want = want.astype(np.float32).astype(BF16).astype(np.float64)
    return Case([np.zeros(2048, BF16), a, b, np.int32(2048)], {0: (want, 0.0)})


def _minimum() -> Case:
    x = np.random.default_rng(6).standard_normal(512).astype(np.float32)
    want = np.full(4, x.min(), np.float64)
    clocks = np.zeros(8, np.int64)
    return Case([x, np.zeros(4, np.float32), clocks], {1: (want, 0.0)})


def _sum_of_a_grid() -> Case:
    """Small integers: every sum is exact. The first CTA adds all at the end."""
    x = np.random.default_rng(7).integers(-9, 10, 2048).astype(np.float32)
    by_cta = x.reshape(-1, 2, 128).sum(axis=(0, 2), dtype=np.float64)
    want = np.array([by_cta.sum(), by_cta[1]])
    return Case([x, np.zeros(2, np.float32), np.uint32(2048)], {1: (want, 0.0)})


CASES: dict[str, Callable[[Mapping[str, Any]], Case]] = {
    "sgemm": lambda spec: _sgemm(),
    "softmax": lambda spec: _softmax(),
    "layernorm": lambda spec: _layernorm(),
    "gelu": lambda spec: _gelu(),
    "residual": lambda spec: _residual(),
    "minimum": lambda spec: _minimum(),
    "sum of a grid": lambda spec: _sum_of_a_grid(),
    "product": lambda spec: Case(*product(spec)),
    "product in halves": lambda spec: Case(*product_in_halves(spec)),
    "scaled product": lambda spec: Case(*scaled_product(spec)),
    "scaled product of tensors": lambda spec: Case(*scaled_product_of_tensors(spec)),
}


def forms(program: Program) -> tuple[int, list[str]]:
    """Return how many different opcodes a kernel has, and those that are refused."""
    known = {each.opcode for each in program.instructions}
    block = program.entry.directives.get("reqntid", (32, 1, 1))
    whole = (*block, 1, 1)[:3]
    params = bytes(program.param_nbytes)
    try:
        translate(load(Machine(1), program, params, (whole[0], whole[1], whole[2])))
    except NotModelled as refused:
        return len(known), sorted({form.opcode for form in refused.forms})
    return len(known), []


def _three(sizes: list[int]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def run(program: Program, spec: dict[str, Any], case: Case, schedule: str | int) -> str:
    """Launch a kernel; return what its results are, or the fault."""
    on = Machine(2, make_schedule(schedule), "shipped")
    params, places = b"", {}
    for i, argument in enumerate(case.arguments):
        if isinstance(argument, Mapped):
            address = on.gmem.upload(f"argument {i}", argument.array.reshape(-1))
            data, alignment = argument.at(address).to_bytes(), argument.alignment
        elif isinstance(argument, np.ndarray):
            places[i] = on.gmem.upload(f"argument {i}", argument.reshape(-1))
            data, alignment = struct.pack("<Q", places[i]), 8
        else:
            data, alignment = argument.tobytes(), argument.itemsize
        params = params.ljust(-(-len(params) // alignment) * alignment, b"\0") + data
    try:
        launch(
            on,
            program,
            _three(spec["grid"]),
            _three(spec["block"]),
            params,
            cluster=_three(spec.get("cluster", [1])),
            smem_nbytes=spec.get("smem", 0),
        )
    except Fp4refError as fault:
        return str(fault).splitlines()[0]
    for i, (want, bound) in case.expected.items():
        array = case.arguments[i]
        found = on.gmem.contents(places[i], array.nbytes).view(array.dtype)
        error = float(np.abs(found.astype(np.float64) - want.reshape(-1)).max())
        if not error <= bound:
            return f"wrong: {error:.3g} from NumPy, and {bound:.3g} is the bound"
    exact = all(bound == 0 for _, bound in case.expected.values())
    return "equal" if exact else "equal within the bound"


def listed() -> list[dict[str, Any]]:
    """Return the files of the list."""
    found: list[dict[str, Any]] = []
    for file in tomllib.loads(LIST.read_text())["file"]:
        found += [
            file | {"path": each} for each in file.get("paths", [file.get("path")])
        ]
    return found


def name_of(spec: Mapping[str, Any], entry: str) -> str:
    """Return a kernel's name out of its entry's, and the note about it."""
    name = spec["match"].lstrip("0123456789").split("ILi")[0]
    whole = re.match(r"_Z(\d+)", entry)
    if whole and name not in entry[: whole.end()]:
        name = entry[whole.end() :][: int(whole[1])]
    return name + ", " * ("note" in spec) + str(spec.get("note", ""))


def author_of(file: Mapping[str, Any]) -> str:
    """Return the repository, the commit and the path of a file."""
    return f"{file['repository']} {file['commit'][:8]}, {file['path']}"


def rows(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Return kernel, author, forms and result, of every kernel of the list."""
    for file in listed():
        author = author_of(file)
        print(author, flush=True)
        try:
            module = compiled(folder, file)
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace").strip().splitlines()
            result = f"its compiler refuses it: {said[0] if said else ''}"
            yield Path(file["path"]).name, author, "", result
            continue
        if module is None:
            continue
        for spec in file["kernels"]:
            names = [name for name in module.entries if spec["match"] in name]
            if not names:
                yield spec["match"], author, "", "no such entry in the PTX"
                continue
            program = Program.of(module, names[0])
            count, missing = forms(program)
            told = f"{count} opcodes"
            if missing:
                result = f"refused: {', '.join(missing)}"
            elif "grid" not in spec:
                result = "every form is known; not launched"
            else:
                case = CASES[file["check"]](spec)
                result = _said(
                    {each: run(program, spec, case, each) for each in SCHEDULES}
                )
            name = name_of(spec, names[0])
            yield name, author, told, result
            print(f"  {name}: {result}", flush=True)


def _said(results: Mapping[str | int, str]) -> str:
    """Return one result for all schedules, or each with its schedules."""
    found: dict[str, list[str]] = {}
    for schedule, result in sorted(results.items(), key=lambda each: each[1]):
        found.setdefault(result, []).append(str(schedule))
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{', '.join(by)}: {result}" for result, by in found.items())


NOTES = """
The products of learn-cuda and of gpu-mode-kernels are written by hand for sm_100a, with
no library, and ran on B200s: their authors have the times. Their operands make every
sum exact, so "equal" is every bit. `matmul_tmem_kernel` has M = 64 and A in TMEM. The
product of gpu-mode-kernels and the four of gn-kernels, which their author wrote with
CuTe DSL, are NVFP4. Those of cuda_hgemm are of another time: `wmma` and `mma.sync` in
FP16, with up to four stages of `cp.async`; every bit too.

What is not equal is so by its author's text, and was read there:

- `softmax_forward_kernel4` puts each warp's sum where other warps may still read the
  maximum: a barrier is missing between the two. The schedules here show it.
- `sgemmVectorize` with tiles of 64 has 64 threads. They load half of a tile of A and
  of B, and then read all of it.
- `matmul_v1` and `v2` of learn-cuda wait on one mbarrier for the copies and for the
  MMAs, `v3` on one for each, and nothing keeps the four warps together: one that waits
  can be lapped by two phases, as in CuTe's tutorial 02. Later versions have roles.

Two things are taken here as their authors' B200s take them. `matmul_v5` to `v7` add 128
to the TMEM lane in the second CTA of a pair, where PTX has 128 lanes in all:
`ordering="shipped"` counts from 0 again (`lanes-of-a-pair`). `matmul_tmem_kernel` loads
32 lanes where M = 64 gives 16 a value, and drops the others (`ld-unset-lanes`); it also
reads 16 rows behind A for nothing, so A has them here.
"""


def render(found: list[tuple[str, str, str, str]]) -> str:
    """Write the page."""
    lines = [
        "# Kernels of other people",
        "",
        "What each needs and does, compiled from its author's file for sm_100a, under",
        "eager, late and seed 1. The bounds are those of a float32 sum in any order or",
        "of what the kernel stores. Kernels of CUTLASS, CuTe DSL and Triton are on the",
        "[conformance page](conformance.md). Made by",
        "`conformance/other_texts.py`, which is given a folder of checkouts; none of",
        "these texts is in this repository.",
        "",
        "| kernel | author | forms | result |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in r) + " |" for r in found
    ]
    ran = sum(result.startswith("equal") for *_, result in found)
    known = sum(bool(told) and "refused" not in result for _, _, told, result in found)
    summary = (
        f"{len(found)} kernels: {ran} run and are equal, {known} have known forms."
    )
    return "\n".join([*lines, "", summary]) + "\n" + NOTES


def main() -> None:
    """Rewrite the page, or print it if a file of the list is not there."""
    parser = argparse.ArgumentParser(description="Kernels of other people, run.")
    parser.add_argument("folder", type=Path, help="has a checkout of each repository")
    found = list(rows(parser.parse_args().folder))
    missing = {author_of(file) for file in listed()} - {row[1] for row in found}
    if missing:
        print(render(found))
        sys.exit(
            f"{PAGE.name} is not rewritten, not there: {'; '.join(sorted(missing))}"
        )
    PAGE.write_text(render(found))


if __name__ == "__main__":
    main()
