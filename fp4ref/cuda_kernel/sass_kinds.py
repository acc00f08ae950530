"""sass_kinds: what an instruction of a listing is for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from fp4ref.cuda_kernel.sass import bare

DESCRIPTOR: Final = "descriptor"
OTHER: Final = "other"

_BY_PREFIX: Final = (
    ("scale copy", ("UTCCP",)),
    ("commit", ("UTCBAR",)),
    ("TMEM", ("LDTM", "STTM", "UTCATOMSWS", "FENCE.VIEW.ASYNC.T", "UTCSHIFT")),
    ("MMA", ("UTCOMMA", "UTCQMMA", "UTCHMMA", "UTCIMMA")),
    ("wait", ("SYNCS.PHASECHK", "NANOSLEEP")),
    ("barrier", ("SYNCS", "BAR", "UCGABAR", "ACQBULK", "PREEXIT", "B2R")),
    ("TMA load", ("UTMALDG", "UTMAPF", "UTMACCTL", "UTMACMDFLUSH", "UBLKCP", "LDGSTS")),
    ("TMA store", ("UTMASTG", "UTMAREDG")),
    ("work", ("UGETNEXTWORKID",)),
    ("R2UR", ("R2UR",)),
    ("fence", ("MEMBAR", "FENCE", "ERRBAR", "CCTL", "CGAERRBAR", "LDGDEPBAR")),
    ("fence", ("DEPBAR", "LEPC", "UCCTL")),
    ("constant", ("LDCU", "LDC", "ULDC")),
    ("shared", ("LDS", "STS", "STSM", "ATOMS", "STAS", "UBLKRED", "UVIRTCOUNT")),
    ("global", ("LDG", "STG", "ATOMG", "ATOM", "REDG", "RED", "LD", "ST")),
    ("local", ("LDL", "STL")),
    ("predicate", ("ISETP", "UISETP", "FSETP", "DSETP", "HSETP2", "PLOP3", "UPLOP3")),
    ("predicate", ("VOTE", "VOTEU", "P2R", "R2P", "UP2UR", "UR2UP", "ELECT", "FSET")),
    (
        "branch",
        ("BRA", "BRX", "BRXU", "BSSY", "BSYNC", "BREAK", "BREV", "BMOV", "CALL"),
    ),
    ("branch", ("RET", "EXIT", "BPT", "WARPSYNC", "YIELD", "ENDCOLLECTIVE", "JMP")),
    ("select", ("SEL", "USEL", "FSEL", "VIMNMX", "UVIMNMX", "FMNMX", "VIADDMNMX")),
    ("select", ("FMNMX3", "VIMNMX3")),
    ("move", ("MOV", "UMOV", "IMAD.MOV", "S2R", "S2UR", "CS2R", "CS2UR", "SHFL")),
    ("move", ("UR2R", "REDUX", "CREDUX", "MOVM")),
    (
        "convert",
        ("F2FP", "F2F", "F2I", "I2F", "I2FP", "UI2FP", "UF2FP", "I2IP", "FRND"),
    ),
    ("float", ("FADD", "FMUL", "FFMA", "MUFU", "FCHK", "HADD2", "HMUL2", "HFMA2")),
    ("float", ("FADD2", "FMUL2", "FFMA2", "DADD", "DMUL", "DFMA", "UFMUL", "UFADD")),
    ("integer", ("IADD3", "UIADD3", "IADD", "UIADD", "IMAD", "UIMAD", "LEA", "ULEA")),
    ("integer", ("VIADD", "LOP3", "ULOP3", "SHF", "USHF", "PRMT", "UPRMT", "IABS")),
    ("integer", ("SGXT", "USGXT", "BMSK", "UBMSK", "POPC", "UPOPC", "FLO", "UFLO")),
    ("integer", ("BREV", "UBREV", "LOP", "IDP", "IMNMX", "UIABS")),
    ("padding", ("NOP",)),
)
"""Kinds by the start of the first word, whole parts of it; the first that fits."""

KINDS: Final = tuple(
    dict.fromkeys((DESCRIPTOR, *(kind for kind, _ in _BY_PREFIX), OTHER))
)

_GDESC: Final = re.compile(r"gdesc\[UR(\d+)\]")
_WRITES: Final = re.compile(r"UR(\d+)\b")
_STORES: Final = ("UTC", "UTM", "SYNCS", "BRA", "BRX", "UBLK", "UCGA")
"""Instructions whose first uniform register is read, not written."""


def kind_by_name(word: str) -> str:
    """Return the kind that follows from an instruction's first word alone."""
    for kind, starts in _BY_PREFIX:
        if any(word == each or word.startswith(f"{each}.") for each in starts):
            return kind
    return OTHER


def kinds(instructions: Sequence[str]) -> list[str]:
    """Return the kind of each instruction, in the listing's order.

    What writes a uniform register that is next read as a matrix descriptor, in the
    order of the listing, is of the kind ``descriptor``, whatever it is called.
    """
    found = [kind_by_name(bare(each).split()[0]) for each in instructions]
    awaited: set[int] = set()
    for at in range(len(instructions) - 1, -1, -1):
        text = bare(instructions[at])
        if written := _written(text):
            if awaited & set(written):
                found[at] = DESCRIPTOR
            if not instructions[at].startswith("@"):
                awaited -= set(written)
        for pair in map(int, _GDESC.findall(text)):
            awaited |= {pair, pair + 1}
    return found


def _written(text: str) -> range:
    """Return the uniform registers that an instruction writes; most write none."""
    word, _, operands = text.partition(" ")
    if word.startswith(_STORES):
        return range(0)
    first = operands.split(",")[0].strip()
    if word.startswith(("SYNCS", "UISETP", "UPLOP3", "VOTEU")):
        return range(0)
    if not (name := _WRITES.fullmatch(first)):
        return range(0)
    size = {"64": 2, "128": 4}.get(word.split(".")[1] if "." in word else "", 1)
    return range(int(name[1]), int(name[1]) + size)
