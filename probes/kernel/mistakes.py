"""mistakes: ways in which the soft tensor core can decode wrongly, and a race.

Each is a line of ``kernel/soft_hardware`` and what stands in its place. The card and
the ptx backend must both give another D.
"""

from __future__ import annotations

from dataclasses import dataclass

from fp4ref.cuda_kernel.sources import SOFT_HARDWARE, kernel_root


@dataclass(frozen=True)
class Mistake:
    """Texts of one file, each of which stands there once, and what replaces them."""

    name: str
    file: str
    right: str
    wrong: str

    @property
    def path(self) -> str:
        """The file, from the repository's root."""
        return f"{SOFT_HARDWARE}/{self.file}"

    def changed(self) -> dict[str, str]:
        """Return the changed text by its path."""
        text = (kernel_root() / self.path).read_text(encoding="utf-8")
        assert text.count(self.right) == 1, (self.name, text.count(self.right))
        return {self.path: text.replace(self.right, self.wrong)}


MISTAKES = (
    Mistake(
        "the stride offset at half its size",
        "tensor_core.cuh",
        "stride = (desc >> 32 & 0x3fff) << 4",
        "stride = (desc >> 32 & 0x3fff) << 3",
    ),
    Mistake(
        "the swizzle by the next row bits",
        "tensor_core.cuh",
        "(address >> 7 & (chunks - 1)) << 4",
        "(address >> 8 & (chunks - 1)) << 4",
    ),
    Mistake(
        "the scale-factor id of A two bits too low",
        "tensor_core.cuh",
        "a_id = op.idesc >> 29 & 3, b_id = op.idesc >> 4 & 3;\n#pragma unroll 1\n"
        "    for (u32 quarter",
        "a_id = op.idesc >> 27 & 3, b_id = op.idesc >> 4 & 3;\n#pragma unroll 1\n"
        "    for (u32 quarter",
    ),
    Mistake(
        "never adds to D",
        "tensor_core.cuh",
        "op.accumulate ? tmem_read(d, j) : 0;\n"
        "            tmem_write(d, j, multiply_rows",
        "0;\n            tmem_write(d, j, multiply_rows",
    ),
    Mistake(
        "half of N",
        "tensor_core.cuh",
        "n = (op.idesc >> 17 & 63) << 3;\n    const bool power",
        "n = (op.idesc >> 17 & 63) << 2;\n    const bool power",
    ),
    Mistake(
        "the TMEM lane at half its size",
        "tensor_core_queue.cuh",
        "(taddr >> 16 & 127) + lane",
        "(taddr >> 17 & 63) + lane",
    ),
)

RACE = Mistake(
    "a word that two warps write",
    "tensor_core_queue.cuh",
    "    if (count == 0) mbarrier_try_wait(base + UNIT_EMPTY",
    "    unit_st(base + UNIT + 56, count);\n"
    "    if (count == 0) mbarrier_try_wait(base + UNIT_EMPTY",
)
"""One half; `race` adds the other, and nothing orders the two stores."""

_OTHER_HALF = Mistake(
    "the unit's store",
    "tensor_core.cuh",
    "        const u32 count = work.count;\n",
    "        const u32 count = work.count;\n"
    "        if (elect_sync()) unit_st(base + UNIT + 56, batch);\n",
)


def race() -> dict[str, str]:
    """Return the files with the planted race, whose word is `UNIT` + 56."""
    return RACE.changed() | _OTHER_HALF.changed()
