"""your_kernel: kernels that are not this book's, for its lesson and page on `check`.

`REVERSE` is written by hand. Triton's text is compiled where Triton is installed and
never stored; elsewhere `report` shows what was recorded of it
(``data/check_triton.json``, written by ``python -m fp4ref.lessons.your_kernel``).
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fp4ref.arguments import require_choice
from fp4ref.evidence.check import Check, Launch, check, launch_arrays, launch_triton
from fp4ref.files.whole_file import write_text
from fp4ref.numerics import ScaleFormat, matmul_block_scaled
from fp4ref.tensors.block_scaled import BlockScaled
from fp4ref.tensors.quantize import quantize

RECORD = "check_triton.json"
M, N, K = 128, 64, 256
_BARRIER = "    bar.sync 0;\n"

REVERSE = f"""\
.version 8.8
.target sm_100a
.address_size 64
.visible .entry reverse(.param .u64 .ptr .global .align 4 x)
.reqntid 64
{{
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b32 tile[64];

    ld.param.u64 %rd1, [x];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;       // &x[tid]
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, tile;
    add.u32 %r4, %r3, %r2;          // &tile[tid]
    xor.b32 %r5, %r2, 252;
    add.u32 %r5, %r5, %r3;          // &tile[63 - tid]

    st.shared.u32 [%r4], 0;
    bar.sync 0;
    ld.global.u32 %r6, [%rd1];
    st.shared.u32 [%r4], %r6;
{_BARRIER}\
    ld.shared.u32 %r7, [%r5];
    st.global.u32 [%rd1], %r7;
    ret;
}}
"""
"""64 numbers in reverse order, through shared memory."""


def reverse(*, barrier: bool = True) -> str:
    """Return the text, or the text without its second barrier."""
    head, _, tail = REVERSE.rpartition(_BARRIER)
    return REVERSE if barrier else head + tail


def reverse_launch(text: str) -> Launch:
    """Return its launch on 0 to 63, with what it should leave."""
    x = np.arange(64, dtype=np.uint32)
    return launch_arrays(text, (1,), [x], expected={0: x[::-1].copy()})


class Edit(NamedTuple):
    """A change of Triton's text: a pattern, and what stands in its place."""

    pattern: str
    by: str


EDITS = {
    "as compiled": Edit("$^", ""),
    "no proxy fence": Edit(r"fence\.proxy\.async\S*;", ""),
    "no commit": Edit(r"@%\w+ tcgen05\.commit[^;]*;", ""),
    "TMEM kept": Edit(r"(@%\w+ )?tcgen05\.dealloc\S+ [^;]*;", ""),
}
"""What the lesson does to it."""


class Shown(NamedTuple):
    """A report, and where it comes from."""

    origin: str
    status: str
    text: str


def has_triton() -> bool:
    """Whether Triton is installed, so that the kernel can be compiled here."""
    return find_spec("triton") is not None


@cache
def compiled() -> Any:
    """Return what `triton.compile` made of `scaled_gemm`; no GPU is needed for it."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    from fp4ref.lessons.triton_kernel import scaled_gemm

    constants = {"BLOCK_M": M, "BLOCK_N": N, "BLOCK_K": 128}
    signature = {
        **dict.fromkeys(("a_ptr", "sfa_ptr", "b_ptr", "sfb_ptr"), "*u8"),
        **{"sfa_ptr": "*fp8e4nv", "sfb_ptr": "*fp8e4nv", "d_ptr": "*fp32"},
        **dict.fromkeys("NK", "i32"),
        **dict.fromkeys(constants, "constexpr"),
    }
    source = ASTSource(scaled_gemm, signature, constexprs=constants)
    return compile(source, target=GPUTarget("cuda", 100, 32))


@cache
def operands() -> tuple[BlockScaled, BlockScaled]:
    """Return A (128, 256) and B (64, 256) in NVFP4."""
    rng = np.random.default_rng(22)
    a, b = (quantize(rng.standard_normal((n, K), np.float32)) for n in (M, N))
    return a, b


def meaning(a: BlockScaled, b: BlockScaled) -> NDArray[np.float32]:
    """Return what the kernel should leave: A B.T by the MMA's arithmetic."""
    return matmul_block_scaled(
        a.codes,
        b.codes,
        a.scales,
        b.scales,
        scale_format=ScaleFormat.UE4M3,
        vec_size=16,
    )


def checked(edit: str, *, packed_b: NDArray[np.uint8] | None = None) -> Check:
    """Check the compiled kernel, changed by one of `EDITS`.

    Parameters
    ----------
    packed_b
        The bytes that are passed as B, (64, 128); those of `operands` by default.
    """
    a, b = operands()
    text, _ = re.subn(EDITS[edit].pattern, EDITS[edit].by, compiled().asm["ptx"])
    kernel = SimpleNamespace(asm={"ptx": text}, metadata=compiled().metadata)
    passed_b = b.packed() if packed_b is None else packed_b
    d = np.zeros((M, N), np.float32)
    arguments = [a.packed(), a.scales, passed_b, b.scales, d, N, K]
    launch = launch_triton(kernel, (1, 1), arguments, expected={4: meaning(a, b)})
    return check(kernel, launch, schedules=("eager", "late"))


def report(edit: str) -> Shown:
    """Return the report on the kernel: made now, or recorded.

    Raises
    ------
    InputError
        There is no such edit.
    """
    require_choice(edit, "edit", tuple(EDITS))
    if has_triton():
        import triton

        found = checked(edit)
        return Shown(f"now, triton {triton.__version__}", found.status, found.report())
    return Shown(*record()["reports"][edit])


def swapped(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return packed codes with the nibbles of every byte exchanged."""
    return packed << np.uint8(4) | packed >> np.uint8(4)


def wrong_d() -> tuple[str, NDArray[np.float32]]:
    """Return where it comes from, and the D of a launch with B's nibbles exchanged.

    Without Triton it is what the kernel means on the same bytes: its arithmetic.
    """
    _, b = operands()
    if has_triton():
        outputs = checked("as compiled", packed_b=swapped(b.packed())).outputs or {}
        return "the kernel", next(d for d in outputs.values() if d.shape == (M, N))
    codes = b.codes.reshape(N, -1, 2)[..., ::-1].reshape(N, K)
    a = operands()[0]
    d = matmul_block_scaled(
        a.codes,
        codes,
        a.scales,
        b.scales,
        scale_format=ScaleFormat.UE4M3,
        vec_size=16,
    )
    return "its meaning; no triton here", d


def kernel_source() -> str:
    """Return the Python of the Triton kernel, with its line numbers."""
    lines = _source().splitlines()
    first = lines.index("@triton.jit")
    return "\n".join(f"{i:3}  {line}" for i, line in enumerate(lines, 1) if i > first)


def _source() -> str:
    found = resources.files("fp4ref.lessons").joinpath("triton_kernel.py")
    return found.read_text("utf-8")


def source_digest() -> str:
    """Return sixteen digits of the SHA-256 of the kernel's file, as the record has."""
    return hashlib.sha256(_source().encode()).hexdigest()[:16]


@cache
def record() -> dict[str, Any]:
    """Return what was recorded: the digest of the source, and a report of each edit."""
    text = resources.files("fp4ref.data").joinpath(RECORD).read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def main(day: str) -> None:
    """Record the reports; `day` as 2026-11-29."""
    import triton

    origin = f"recorded on {day}, triton {triton.__version__}"
    rows = {edit: Shown(origin, *report(edit)[1:]) for edit in EDITS}
    path = Path(__file__).parents[1] / "data" / RECORD
    found = {"source": source_digest(), "reports": rows}
    write_text(path, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    import datetime

    main(datetime.date.today().isoformat())
