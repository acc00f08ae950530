"""silicon: what an H200 did with the kernel, as pictures and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drawing import figure
from wording import plain, row

from fp4ref.lessons import silicon
from fp4ref.lessons.page import Page
from fp4ref.lessons.silicon_faults import OFTEN, OnSilicon, on_silicon, reduced
from fp4ref.lessons.silicon_pictures import (
    descriptor_picture,
    flips_picture,
    parts_picture,
)

FILES = {
    "silicon_parts.svg": parts_picture,
    "silicon_descriptor.svg": descriptor_picture,
    "silicon_flips.svg": flips_picture,
}


def pictures() -> dict[str, str]:
    """The three pictures, by path."""
    return {f"_generated/{name}": make().html for name, make in FILES.items()}


def alt(picture: Page) -> str:
    """The picture's sentence for readers who do not see it."""
    return picture.html.partition("<title>")[2].partition("</title>")[0]


def _table(heads: Sequence[str], rows: Iterator[Sequence[str]]) -> list[str]:
    lines = [row(*heads), row(*["---"] * len(heads))]
    return [*lines, *(row(*map(plain, each)) for each in rows), ""]


def _picture(name: str) -> list[str]:
    """A picture, and under it the same as text."""
    made = FILES[name]()
    twin = ["", "The same as text:", "", "```text", made.text, "```"]
    return [figure(name, alt(made)), *twin, ""]


def _kernel() -> list[str]:
    found = silicon.kernel_runs()
    return [
        f"{found.cases} cases of configuration, shape and scheduler ran on "
        f"{silicon.card()}. Each of {found.launches:,} launches had every byte of "
        f"D, and of its scales, that the emulator has. In {found.delayed:,} of them "
        "every wait, arrival and operation came after a sleep of random length. A "
        "race would show as a second set of bits. There was one set for each case. "
        f"{silicon.age()}",
        "",
    ]


def _descriptors() -> list[str]:
    found = silicon.descriptors()
    count = sum(each for each, _ in found.values())
    rows = ((sort, str(n), str(same)) for sort, (n, same) in found.items())
    return [
        "`wgmma` of Hopper reads shared memory by a descriptor that is the sister "
        "of tcgen05's. A matrix with a single 1 finds out where an element was "
        f"read. So {count} descriptors were measured, element by element, and the "
        "machine's addressing gives the same places. Here is one of them.",
        "",
        *_picture("silicon_descriptor.svg"),
        *_table(("descriptors", "measured", "equal at every element"), rows),
        "With a *base offset* the rows of the pattern are counted from another "
        "address: the chunk is XORed with the row bits less the offset. That "
        "tcgen05 does all this too is an inference.",
        "",
    ]


def _gallery() -> list[str]:
    """The gallery's mistakes on the card: how many, which, and one reduced."""
    rows = on_silicon()
    rules = [each for each in rows if not each.of_data]
    hard = [each for each in rules if each.often != "never" or not each.soft]
    shown = [each for each in rules if each.often != "never"]
    some = [each for each in rules if each.often == "sometimes"]
    data = [each for each in rows if each.of_data]
    lines = [
        f"All {len(rows)} mistakes of the [gallery](faults.md) that change the GEMM "
        "ran on the H200, up to 100 times each, every time with other sleeps, and over "
        "memory full of NaN. "
        f"{len(data)} only move or change data: the card had another D in each "
        f"launch of {sum(each.often == 'always' for each in data)}. "
        f"The other {len(rules)} break a rule of waiting, fencing, counting or "
        f"freeing; {len(rules) - len(hard)} of them one of a unit that was soft and "
        f"has no such rule. Of the {len(hard)} that Hopper can show the card showed "
        f"{len(shown)}, {len(some)} of them in some launches only, and "
        f"{len(hard) - len(shown)} never: these kernels are wrong, and work on this "
        "card. "
        "The machine says each of them every time.",
        "",
    ]
    for each in reduced():
        wrong = each.wrong
        lines += [
            f"One wrong run was reduced on the card. *{each.fault.title}* "
            f"(`{each.fault.name}`): seed {each.seed} sleeps at {each.sleeps} places. "
            f"One is enough: {', '.join(each.kept)}. "
            f"Of {each.launches} launches each, {wrong['all']} were wrong with all "
            f"sleeps, {wrong['kept']} with this one alone, "
            f"{wrong['without one of them'][0]} with none in its place, and "
            f"{wrong['none']} without any.",
            "",
        ]
    ordered = sorted(rules, key=lambda each: OFTEN.index(each.often))
    heads = ("mistake", "wrong on the H200", "how", "the machine")
    return [*lines, *_table(heads, map(_gallery_row, ordered))]


def _gallery_row(each: OnSilicon) -> tuple[str, ...]:
    how = each.how or ("its unit was soft" if each.soft else "")
    wrong = f"{each.wrong} of {each.launches}"
    return f"{each.fault.name}: {each.fault.title}", wrong, how, each.machine


def page() -> str:
    """Everything that was recorded, pictures first."""
    lines = ["## What ran, and what was soft", "", *_picture("silicon_parts.svg")]
    lines += ["## The whole kernel", "", *_kernel()]
    lines += ["## Matrix descriptors", "", *_descriptors()]
    lines += ["## A bit flips", ""]
    lines += [
        "Between two operations of the soft tensor core one bit of A, B or their "
        "scales in shared memory was flipped. A formula says what D is then. A "
        "flip after the last reader changes nothing.",
        "",
        *_picture("silicon_flips.svg"),
    ]
    lines += ["## Mistakes on the card", ""]
    lines += [
        "A card shows a mistake when its luck runs out. The machine says it each "
        "time. These mistakes were put on the card; [the others](faults.md) ran on "
        "the machine alone.",
        "",
        *_table(("mistake", "on the H200", "on the machine"), iter(silicon.shown())),
    ]
    lines += ["## The gallery under sleeps", "", *_gallery()]
    lines += ["## What the checkers of CUDA say", ""]
    lines += _table(("tool", "it says", "what that is"), iter(silicon.checkers()))
    return "\n".join(lines)
