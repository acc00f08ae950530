"""sass_words: a second count of a kernel's instructions, from its bytes.

It shares nothing with the listing's parser: an instruction is 16 bytes of the cubin's
code, and the lowest nine bits say which it is.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from typing import Final

INSTRUCTION_NBYTES: Final = 16
_CODE_BITS: Final = 0x1FF
_SECTION: Final = "<IIQQQQ"
_SECTION_NBYTES: Final = 64

# fmt: off
CODES: Final = {
    0x002: "MOV", 0x003: "P2R", 0x005: "CS2R", 0x007: "SEL", 0x008: "FSEL",
    0x009: "FMNMX", 0x00B: "FSETP", 0x00C: "ISETP", 0x010: "IADD3", 0x011: "LEA",
    0x012: "LOP3", 0x016: "PRMT", 0x019: "SHF", 0x01C: "PLOP3", 0x020: "FMUL",
    0x021: "FADD", 0x023: "FFMA", 0x024: "IMAD", 0x025: "IMAD", 0x027: "IMAD",
    0x02D: "PREEXIT", 0x02E: "ACQBULK", 0x02F: "ELECT", 0x030: "HADD2", 0x031: "HFMA2",
    0x036: "VIADD", 0x03E: "F2FP", 0x045: "I2FP", 0x046: "VIADDMNMX", 0x048: "VIMNMX",
    0x04C: "UVIRTCOUNT", 0x076: "FMNMX3", 0x082: "UMOV", 0x086: "VOTEU", 0x087: "USEL",
    0x08C: "UISETP", 0x090: "UIADD3", 0x091: "ULEA", 0x092: "ULOP3", 0x096: "UPRMT",
    0x099: "USHF", 0x09C: "UPLOP3", 0x0A4: "UIMAD", 0x0A5: "UIMAD", 0x0BD: "UFLO",
    0x0CA: "R2UR", 0x102: "FCHK", 0x105: "F2I", 0x108: "MUFU", 0x118: "NOP",
    0x119: "S2R", 0x11A: "DEPBAR", 0x11D: "BAR", 0x141: "BSYNC", 0x143: "CALL",
    0x144: "CALL", 0x145: "BSSY", 0x147: "BRA", 0x148: "WARPSYNC", 0x149: "BRX",
    0x14D: "EXIT", 0x14E: "LEPC", 0x150: "RET", 0x15C: "BPT", 0x15D: "NANOSLEEP",
    0x181: "LDG", 0x182: "LDC", 0x184: "LDS", 0x186: "STG", 0x188: "STS", 0x189: "SHFL",
    0x18C: "ATOMS", 0x192: "MEMBAR", 0x1A7: "SYNCS", 0x1AC: "LDCU", 0x1B2: "SYNCS",
    0x1B4: "UTMALDG", 0x1B5: "UTMASTG", 0x1B7: "UTMACMDFLUSH", 0x1B9: "UTMACCTL",
    0x1C3: "S2UR", 0x1C4: "REDUX", 0x1C6: "FENCE", 0x1CA: "UGETNEXTWORKID",
    0x1E3: "UTCATOMSWS", 0x1E7: "UTCCP", 0x1E9: "UTCBAR", 0x1EA: "MMA", 0x1EE: "LDTM",
}
# fmt: on
"""First words by code, as compiled kernels show them; MMAs of all kinds share one."""


def count_words(cubin: bytes) -> Counter[str]:
    """Count the instructions of a cubin by first word; an unknown code by itself."""
    return Counter(CODES.get(code, f"0x{code:03x}") for code in codes(cubin))


def codes(cubin: bytes) -> Iterator[int]:
    """Yield the code of each instruction, as it lies in the file."""
    for start, nbytes in _code_sections(cubin):
        for at in range(start, start + nbytes, INSTRUCTION_NBYTES):
            yield struct.unpack_from("<H", cubin, at)[0] & _CODE_BITS


def _code_sections(cubin: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and size of each section of code in the ELF file."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    count, names = struct.unpack_from("<HH", cubin, 0x3C)
    sections = [
        struct.unpack_from(_SECTION, cubin, table + _SECTION_NBYTES * i)
        for i in range(count)
    ]
    for name, _, _, _, start, nbytes in sections:
        if cubin.startswith(b".text.", sections[names][4] + name):
            yield start, nbytes
