"""tables: what the package and the README say, as parts of pages."""

from __future__ import annotations

import re
from pathlib import Path

from evidence_links import linked
from wording import plain, row, stacked_table

from fp4ref.evidence.attested import facts
from fp4ref.evidence.fidelity import (
    RULES,
    Rule,
    known_share,
    of_default_gemm,
    of_machine,
    select,
    shares,
    standings,
    unwitnessed,
)
from fp4ref.gaps import GAPS
from fp4ref.gemm.choose import choose
from fp4ref.gemm.ladder import ladder
from fp4ref.lessons.outline import LESSONS

README = Path(__file__).parents[1] / "README.md"


def evidence() -> str:
    """Return what the README says a result rests on."""
    return _readme_section("What a result rests on")


def folders() -> str:
    """Return the README's table of folders."""
    section = _readme_section("Where things are")
    return "".join(re.findall(r"^\|.*\n", section, re.M))


def fidelity() -> str:
    """Return the fidelity table: shares, every rule, and what is not modelled."""
    blocks = [_shares(), "## What the default GEMM needs", _default_gemm()]
    blocks += ["## Rules", _rules(), "## Kernels that a wrong rule breaks"]
    blocks += [_witnesses(), "## Which outside witness each rule of the machine has"]
    blocks += [_of_machine(), "## Not modelled", _gaps()]
    return "\n\n".join(blocks) + "\n"


def attest() -> str:
    """Return the rungs of ``fp4ref attest``, with the rows that each shows."""
    rows = [("rung", "what it proves", "rows; on Hopper")]
    for each in facts().values():
        shown = dict.fromkeys(row for part in each.parts.values() for row in part)
        words = ", ".join(f"`{row}`" for row in shown) or "none"
        hopper = f"{each.on_hopper}: {each.why}" if each.why else each.on_hopper
        rows.append((f"`{each.name}`", plain(each.proves), f"{words}; {plain(hopper)}"))
    return stacked_table(rows) + "\n"


def family() -> str:
    """Return the ladder: each named configuration, with the lesson that explains it."""
    rows = [("step", "idea", "what it asks")]
    for each in ladder():
        asked = ", ".join(f"{name}={value!r}" for name, value in each.asked.items())
        idea = f"{each.idea} {_taught(each.name)}."
        rows.append((f"`{each.name}`", idea, _code(asked) if asked else "the default"))
    return stacked_table(rows) + "\n"


def choice(m: int = 16, n: int = 4096, k: int = 4096) -> str:
    """Return what `fp4ref.choose` says of one product."""
    call = f">>> print(fp4ref.choose({m}, {n}, {k}))"
    return f"```text\n{call}\n{choose(m, n, k)}\n```\n"


def _taught(step: str) -> str:
    """Where a step of the ladder is explained."""
    lesson = next(each for each in LESSONS.values() if step in each.steps)
    return f"[Notebook {lesson.number}](notebooks/{lesson.name}.ipynb)"


def _readme_section(heading: str) -> str:
    text = README.read_text("utf-8")
    found = re.search(rf"^## {heading}\n\n(.+?)(?=^## |\Z)", text, re.M | re.S)
    if found is None:
        raise ValueError(f"README.md has no section {heading!r}")
    return re.sub(r"\]\((?:docs|book)/(\w+\.md)\)", r"](\1)", found[1])


def _shares() -> str:
    lines = [row("evidence", "rules", "share"), row("---", "---:", "---:")]
    for kind, share in shares().items():
        count = len(select(evidence=kind))
        lines.append(row(kind.value, str(count), f"{100 * share:.1f} %"))
    return "\n".join(lines)


def _of_machine() -> str:
    """Return the rules of the machine by their outside witness."""
    found = of_machine()
    by_witness: dict[str, list[str]] = {}
    by_reason: dict[str, list[str]] = {}
    for id, witness in found.items():
        if witness:
            by_witness.setdefault(witness, []).append(f"`{id}`")
    for id, why in unwitnessed().items():
        by_reason.setdefault(why, []).append(f"`{id}`")
    without = sum(map(len, by_reason.values()))
    lines = [
        f"Of the {len(found)} rules whose code is in `hardware/`, an outside witness "
        f"fails {len(found) - without} when one of them alone is made wrong. The other "
        f"{without} are unwitnessed: a test of ours checks each, and nothing from "
        "outside; the second table says why.\n",
    ]
    for title, groups in (("witness", by_witness), ("why there is none", by_reason)):
        lines += [row(title, "rules", "which"), row("---", "---:", "---")]
        for each, ids in sorted(groups.items()):
            lines.append(row(each, str(len(ids)), ", ".join(ids)))
        lines.append("")
    return "\n".join(lines).rstrip("\n")


def _default_gemm() -> str:
    """Return the rules that the default GEMM needs, by what is known of them."""
    needed = of_default_gemm()
    lines = [
        f"{len(needed)} of the {len(RULES)} rules: with one of them made wrong, the "
        "job of `fp4ref walk` has other codes, other bits, another event or a fault. "
        f"{100 * known_share(needed):.1f} % are measured on sm_90, or an outside "
        "kernel fails without them.\n",
        row("what is known", "rules", "share", "which"),
        row("---", "---:", "---:", "---"),
    ]
    for each, rules in standings(needed).items():
        share = f"{100 * len(rules) / len(needed):.1f} %"
        ids = ", ".join(f"`{rule.id}`" for rule in rules)
        lines.append(row(each.value, str(len(rules)), share, ids))
    return "\n".join(lines)


def _rules() -> str:
    rows = [("operation", "rule", "evidence and test")]
    rows += [(plain(rule.operation), _text(rule), _why(rule)) for rule in RULES]
    return stacked_table(rows)


def _text(rule: Rule) -> str:
    if not rule.advisory:
        return plain(rule.rule)
    return f"{plain(rule.rule)} (counted as an advisory: {rule.advisory})"


def _why(rule: Rule) -> str:
    test = rule.checked_by.rpartition("::")[2]
    why = f"{rule.evidence.value}: {linked(rule.source)}. Test `{test}`"
    if not rule.killed_by:
        return why
    change = rule.mutation
    return (
        f"{why}. With {_code(change.wrong)} for {_code(change.right)} in "
        f"`{change.code}`, {plain(rule.killed_by)}"
    )


def _witnesses() -> str:
    """Return each rule that a compiled kernel needs, by kernel, and how it fails."""
    lines = [row("kernel", "without the rule", "operation", "rule"), row(*["---"] * 4)]
    for rule in sorted(RULES, key=lambda rule: rule.killed_by.partition(": ")[0]):
        if rule.killed_by:
            kernel, _, how = rule.killed_by.partition(": ")
            lines.append(row(*map(plain, (kernel, how, rule.operation, rule.rule))))
    return "\n".join(lines)


def _code(text: str) -> str:
    """One line of code for a table."""
    return f"`{' '.join(text.split())}`"


def _gaps() -> str:
    lines = [row("gap", "operation", "what", "its use"), row(*["---"] * 4)]
    for gap in GAPS:
        use = "refused by name" if gap.refused else "goes unseen"
        lines.append(row(gap.id, plain(gap.operation), plain(gap.what), use))
    return "\n".join(lines)
