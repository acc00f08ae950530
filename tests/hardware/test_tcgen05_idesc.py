"""tcgen05: the instruction descriptor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mma_tiles import UE4M3, UE8M0, idesc

from fp4ref.errors import (
    DescriptorFault,
    NotModelled,
)
from fp4ref.hardware.tcgen05 import InstrDescriptor
from fp4ref.numerics import ScaleFormat


@pytest.mark.parametrize(
    ("word", "n", "scale_format"),
    [
        (0x08200480, 128, UE4M3),
        (0x08100480, 64, UE4M3),
        (0x08300480, 192, UE4M3),
        (0x08400480, 256, UE4M3),
        (0x08A00480, 128, UE8M0),
    ],
)
def test_golden_idesc(word, n, scale_format):
    descriptor = InstrDescriptor(128, n, scale_format)
    assert descriptor.encode() == word
    assert InstrDescriptor.decode(word) == descriptor


@pytest.mark.parametrize(("word", "n"), [(0x10200480, 128), (0x10400480, 256)])
def test_golden_idesc_of_a_pair(word, n):
    """As CUTLASS passes them to 2SM MMAs of 256 x N."""
    descriptor = InstrDescriptor(256, n, UE4M3)
    assert descriptor.encode() == word
    assert InstrDescriptor.decode(word, 2) == descriptor
    with pytest.raises(DescriptorFault, match="M is 256"):
        InstrDescriptor.decode(word)


@pytest.mark.parametrize("m", [128, 256])
@pytest.mark.parametrize("n", range(8, 257, 8))
def test_a_pair_takes_n_in_steps_of_16(m, n):
    """PTX, table of matrix shapes: cta_group::2 of kind::mxf4nvf4."""
    if n % 16:
        with pytest.raises(DescriptorFault, match=f"N is {n}"):
            InstrDescriptor.decode(idesc(n, m), 2)
    else:
        assert InstrDescriptor.decode(idesc(n, m), 2).m == m


@given(
    st.integers(1, 32).map(lambda i: 8 * i),
    st.sampled_from(ScaleFormat),
    st.integers(0, 3),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
)
def test_idesc_round_trip(n, scale_format, a_id, b_id, negate_a, negate_b):
    d = InstrDescriptor(128, n, scale_format, a_id, b_id, negate_a, negate_b)
    word = idesc(
        n,
        ue8m0=int(scale_format is UE8M0),
        a_id=a_id,
        b_id=b_id,
        negate_a=negate_a,
        negate_b=negate_b,
    )
    assert d.encode() == word
    assert InstrDescriptor.decode(word) == d


GOOD = 0x08200480


@pytest.mark.parametrize(
    ("word", "error", "says"),
    [
        (GOOD | 1 << 2, NotModelled, "sparsity 1"),
        (GOOD | 1 << 31, NotModelled, "K size 1"),
        (GOOD & ~(3 << 27), DescriptorFault, "M is 0"),
        (GOOD | 3 << 27, DescriptorFault, "M is 384"),
        (GOOD & ~(0x3F << 17), DescriptorFault, "N is 0"),
        (idesc(264), DescriptorFault, "N is 264"),
        (GOOD | 1 << 15, DescriptorFault, "transpose"),
        (GOOD | 1 << 16, DescriptorFault, "transpose"),
        # E2M1 is 5 in mxf8f6f4, 1 here.
        (GOOD & ~(7 << 7) | 5 << 7, DescriptorFault, "element types 5 and 1"),
        (GOOD & ~(3 << 10), DescriptorFault, "element types 1 and 0"),
        (GOOD & ~(3 << 10) | 3 << 10, DescriptorFault, "element types 1 and 3"),
        *(
            (GOOD | 1 << bit, DescriptorFault, "reserved")
            for bit in (0, 1, 3, 6, 12, 24, 25, 26)
        ),
    ],
)
def test_refused_idesc(word, error, says):
    with pytest.raises(error, match=says):
        InstrDescriptor.decode(word)
