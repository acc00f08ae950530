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
        return together(self)


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
        "a_id = op.idesc >> 29 & 3, b_id = op.idesc >> 4 & 3;\n    if (",
        "a_id = op.idesc >> 27 & 3, b_id = op.idesc >> 4 & 3;\n    if (",
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


@dataclass(frozen=True)
class PairMistake:
    """A mistake of a pair, and what makes the peer so late that it shows.

    It does where a stage is used again: before that it may hold what an earlier launch
    left, which is the same.
    """

    wrong: Mistake
    late: Mistake | None = None

    @property
    def name(self) -> str:
        """Name of the mistake."""
        return self.wrong.name

    def changed(self) -> dict[str, str]:
        """Return the changed texts by path."""
        return together(*(each for each in (self.late, self.wrong) if each))


def together(*changes: Mistake) -> dict[str, str]:
    """Return the texts of all files with every change, by path."""
    found: dict[str, str] = {}
    for each in changes:
        text = found.get(each.path)
        if text is None:
            text = (kernel_root() / each.path).read_text(encoding="utf-8")
        assert text.count(each.right) == 1, (each.name, text.count(each.right))
        found[each.path] = text.replace(each.right, each.wrong)
    return found


LATE_BYTES = Mistake(
    "the peer's loads come late",
    "tma.cuh",
    "    return CTA_GROUP == 1 ?",
    "    u32 rank;\n"
    '    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));\n'
    "    if (CTA_GROUP == 2 && rank % 2) __nanosleep(20000);\n"
    "    return CTA_GROUP == 1 ?",
)
LATE_UNIT = Mistake(
    "the peer's unit is late",
    "tensor_core.cuh",
    "        for (u32 i = 0; i < count; ++i) {\n            const Operation& op",
    "        if (!leads) __nanosleep(20000);\n"
    "        for (u32 i = 0; i < count; ++i) {\n            const Operation& op",
)
LATENESS = LATE_BYTES, LATE_UNIT
"""With these alone D is right."""

PAIR_MISTAKES = (
    PairMistake(
        Mistake(
            "all of B from the own CTA",
            "cta_pair.cuh",
            ': "r"(in_pair<2>(address, part))',
            ': "r"(address)',
        )
    ),
    PairMistake(
        Mistake(
            "bytes told before they came",
            "mbarrier.cuh",
            "mbarrier_try_wait<true>(base + offset, phases >> offset / 8 & 1);",
            "",
        ),
        LATE_BYTES,
    ),
    PairMistake(
        Mistake(
            "a commit that does not wait for the peer's unit",
            "tensor_core.cuh",
            "        join_units<CTA_GROUP>(batch);\n"
            "        const Operation& last = operations[count - 1];\n"
            "        if (leads && last.what == COMMIT) unit_commit<IN_CLUSTER>(last);",
            "        const Operation& last = operations[count - 1];\n"
            "        if (leads && last.what == COMMIT) unit_commit<IN_CLUSTER>(last);\n"
            "        join_units<CTA_GROUP>(batch);",
        ),
        LATE_UNIT,
    ),
)

RACE = Mistake(
    "a word that two warps write",
    "tensor_core_queue.cuh",
    "    if (count == 0) acquire_batch<CTA_GROUP>(batch);",
    "    shared_st(base + UNIT_RACE, count);\n"
    "    if (count == 0) acquire_batch<CTA_GROUP>(batch);",
)
"""One half; `race` adds the other, and nothing orders the two stores."""

_OTHER_HALF = Mistake(
    "the unit's store",
    "tensor_core.cuh",
    "        if (count == 0) return;\n",
    "        if (count == 0) return;\n"
    "        if (elect_sync()) shared_st(base + UNIT_RACE, batch);\n",
)


def race() -> dict[str, str]:
    """Return the files with the planted race, whose word is `UNIT_RACE`."""
    return RACE.changed() | _OTHER_HALF.changed()
