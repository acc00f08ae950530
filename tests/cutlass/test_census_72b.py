"""CUTLASS 72b: its census sums to its listing, and is the one that is recorded."""

from __future__ import annotations

import pytest

from fp4ref.cuda_kernel.sass import Listing, disassemble, opcode
from fp4ref.cuda_kernel.sass_census import census
from fp4ref.cuda_kernel.sass_words import count_words
from fp4ref.cutlass.examples import assemble_example
from fp4ref.device.compile import CompileError
from fp4ref.lab.cutlass_72b import compilers, measure, recorded


def test_two_counters_agree_with_each_other_and_with_the_record(example_72b) -> None:
    cubin = assemble_example("72b")
    try:
        listing = Listing(disassemble(cubin))
    except CompileError as error:
        pytest.skip(str(error))
    words = [opcode(each) for each in listing.instructions]
    second = count_words(cubin)
    assert second.total() == len(words) == census(listing).total
    for word in ("UTCCP", "UTCBAR", "UTMALDG", "R2UR", "BRA", "LDTM", "SYNCS"):
        assert second[word] == words.count(word) > 0
    assert second["MMA"] == words.count("UTCOMMA") == 4
    made = {"compilers": compilers()} | measure(cubin)
    if made["compilers"][:-1] == recorded()["compilers"][:-1]:  # but the host's
        assert measure(cubin).items() <= recorded().items()


def test_the_record_sums_to_all_instructions() -> None:
    found = recorded()
    assert sum(cell["instructions"] for cell in found["cells"]) == found["instructions"]
    mma = found["per_k_tile"]["MMA"]
    assert (mma["scale copy"], mma["MMA"], mma["commit"]) == (8, 4, 1)
    assert sum(mma.values()) == 66
