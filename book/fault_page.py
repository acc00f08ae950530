"""fault_page: the gallery of mistakes by kind, from its rows."""

from __future__ import annotations

from collections import Counter
from inspect import getdoc

from notebook_pages import link_to
from wording import anchor, index_entries, plain, row

from fp4ref.errors import Fp4refError
from fp4ref.evidence.faults import GALLERY, Caught, Fault, Form
from fp4ref.evidence.faults.kinds import KINDS
from fp4ref.evidence.faults.riddles import RIDDLES
from fp4ref.lessons.outline import LESSONS

CAUGHT = {
    "rule": "a rule of the machine",
    "compare": "`compare`",
    "advisory": "an advisory",
    "review": "a review",
}
"""Words for who catches a mistake."""

FORMS = {"emulator": "emulator", "ptx": "compiled code"}
RIDDLE_NOTEBOOK = "14_riddles"


def page() -> str:
    """Return the map of the gallery and its counts, then one entry for each mistake."""
    blocks = [_counts(), _map()]
    for kind, what in KINDS.items():
        if not (found := _of_kind(kind)):
            continue
        blocks.append(f"({kind_anchor(kind)})=\n## {kind}. {plain(what)}")
        blocks += [_entry(each) for each in found if each.kinds[0] == kind]
        if others := [_link(each) for each in found if each.kinds[0] != kind]:
            blocks.append(f"Of this kind too: {', '.join(others)}.")
    return "\n\n".join(blocks) + "\n"


def fault_anchor(name: str) -> str:
    """Return ``fault-expect-too-few``."""
    return f"fault-{anchor(name)}"


def kind_anchor(kind: int) -> str:
    """Return ``fault-kind-5``."""
    return f"fault-kind-{kind}"


def _counts() -> str:
    """How many mistakes there are, by who catches them."""
    forms = (next(iter(each.forms.values())) for each in GALLERY.values())
    found = Counter(form.caught.by for form in forms)
    lines = [row("caught by", "mistakes"), row("---", "---:")]
    lines += [row(words, str(found[by])) for by, words in CAUGHT.items()]
    return "\n".join([*lines, row("all", str(len(GALLERY)))])


def _map() -> str:
    """Every kind with links to its mistakes; one of two kinds is under both."""
    return "\n".join(
        f"**[{kind}](#{kind_anchor(kind)}). {plain(what)}**\n"
        f": {', '.join(map(_link, _of_kind(kind)))}\n"
        for kind, what in KINDS.items()
        if _of_kind(kind)
    )


def _of_kind(kind: int) -> list[Fault]:
    return [each for each in GALLERY.values() if kind in each.kinds]


def _link(each: Fault) -> str:
    return f"[{each.name}](#{fault_anchor(each.name)})"


def _entry(each: Fault) -> str:
    command = f"fp4ref faults {each.name} --answer"
    fields = {
        "Symptom": plain(each.symptom),
        "Caught by": _caught(each),
        "Look at": plain(each.evidence),
        "Cause": plain(each.cause),
        "Remedy": plain(each.remedy),
        "Seen in": _reports(each),
        "Kinds": ", ".join(f"[{kind}](#{kind_anchor(kind)})" for kind in each.kinds),
        "Run it": f"`{command}`, a {plain(each.subject_in_words)}",
        "Riddle": _riddle(each),
    }
    lines = [
        f"({fault_anchor(each.name)})=",
        f"### {plain(each.title)}",
        "",
        index_entries([each.name]),
        "",
        *(f"{name}\n: {text}\n" for name, text in fields.items() if text),
    ]
    blocks = [_change(name, form) for name, form in each.forms.items()]
    return "\n".join(lines) + "\n" + "\n\n".join(blocks)


def _caught(each: Fault) -> str:
    """Who catches it; in both forms where they differ."""
    found = {name: _by(form.caught) for name, form in each.forms.items()}
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    return "; ".join(f"in the {FORMS[name]} {words}" for name, words in found.items())


def _by(caught: Caught) -> str:
    says = f', which says "{plain(caught.says)}"' if caught.says else ""
    if caught.by == "rule":
        meaning = plain(_meaning(caught.what))
        return f"{CAUGHT[caught.by]}, `{caught.what}`{says}. {meaning}"
    if caught.by == "compare":
        return f"{CAUGHT[caught.by]}, first at {plain(caught.what)}{says}"
    return f"{CAUGHT[caught.by]}: {plain(caught.what)}{says}"


def _meaning(name: str) -> str:
    """First sentence of the documentation of a fault's class."""
    classes = [Fp4refError]
    for kind in classes:
        classes += kind.__subclasses__()
    (found,) = {kind for kind in classes if kind.__name__ == name}
    return (getdoc(found) or "").partition("\n")[0]


def _reports(each: Fault) -> str:
    """Public reports, with links to their threads."""
    found = []
    for report in each.reports:
        links = [
            f"[{thread}](https://github.com/{thread.replace('#', '/issues/')})"
            for thread in report.threads
        ]
        where = f" ({', '.join(links)})" if links else ""
        found.append(f"{plain(report.what)}{where}")
    return "; ".join(found)


def _riddle(each: Fault) -> str:
    for number, riddle in enumerate(RIDDLES, 1):
        if riddle.fault.name == each.name:
            return f"number {number} of {link_to(LESSONS[RIDDLE_NOTEBOOK])}"
    return ""


def _change(name: str, form: Form) -> str:
    """The changed line, as a difference from wrong to right."""
    change = form.change
    pairs = (("-", change.wrong), ("+", change.right))
    lines = [
        f"{sign} {line}".rstrip()
        for sign, text in pairs
        for line in text.strip("\n").split("\n")
        if line.strip()
    ]
    place = f"Mended in the {FORMS[name]}, `{change.line}`:"
    return "\n".join([place, "", "```diff", *lines, "```"])
