"""tcgen05: scale copies."""

from __future__ import annotations

import numpy as np
import pytest
from mma_tiles import (
    MEMORY,
    SF_AT,
    SF_WORD,
    SFA,
    SFB,
    commit_and_wait,
    easy_scales,
    put_memory,
    with_tmem,
)
from on_machine import TILE, launch, machine

from fp4ref.errors import (
    ClusterFault,
    DescriptorFault,
    TmemAllocationFault,
    UninitialisedRead,
)
from fp4ref.hardware import tcgen05


def test_b22_cp_lands_in_all_four_quarters():
    got = []

    def steps(warp):
        tcgen05.cp(warp, SFA, SF_WORD | SF_AT >> 4)
        tcgen05.cp(warp, SFB, (SF_WORD | SF_AT >> 4) + 0x20)
        yield from commit_and_wait(warp)
        got.append(warp.tmem.cells.copy().view(np.uint8).reshape(128, 512, 4))

    launch(machine("late"), with_tmem(steps), setup=put_memory)
    source = MEMORY[SF_AT - TILE :]
    for block, column in ((0, SFA), (512, SFB)):
        for r in range(32):
            for c in range(16):
                for lane in (r, r + 32, r + 64, r + 96):
                    cell = got[0][lane, column + c // 4, c % 4]
                    assert cell == source[block + 16 * r + c]
    # Scale (33, 2) of a 128x4 atom.
    assert got[0][1, SFA + 1, 2] == source[33 % 32 * 16 + 33 // 32 * 4 + 2]


@pytest.mark.parametrize("leading", [0, 8, 64])
def test_cp_leading_offset_is_ignored(leading):
    def steps(warp):
        tcgen05.cp(warp, SFA, 0x00004008 << 32 | leading << 16 | SF_AT >> 4)
        yield from commit_and_wait(warp)
        np.testing.assert_array_equal(
            warp.tmem.cells[:32, SFA : SFA + 4],
            MEMORY[SF_AT - TILE :][:512].view("<u4").reshape(32, 4),
        )

    launch(machine(), with_tmem(steps), setup=put_memory)


@pytest.mark.parametrize(
    ("error", "says", "arguments"),
    [
        (
            ClusterFault,
            "has executed tcgen05.alloc.cta_group::1",
            (SFA, SF_WORD, "32x128b.warpx4", 2),
        ),
        (DescriptorFault, "to lane 32", (32 << 16 | SFA, SF_WORD | SF_AT >> 4)),
        (TmemAllocationFault, "not all allocated", (510, SF_WORD | SF_AT >> 4)),
        (UninitialisedRead, "never written", (SFA, SF_WORD | 0x30000 >> 4)),
    ],
)
def test_refused_cp(error, says, arguments):
    with pytest.raises(error, match=says):
        launch(
            machine(), with_tmem(lambda w: tcgen05.cp(w, *arguments)), setup=put_memory
        )


def test_the_scale_id_bits_of_an_address_are_not_an_address():
    def steps(warp):
        easy_scales(warp)
        tcgen05.cp(warp, 2 << 30 | 0x180, SF_WORD | SF_AT >> 4)
        yield from commit_and_wait(warp)
        assert warp.tmem.written.reshape(128, 512, 4)[:, 0x180:0x184].all()

    launch(machine(), with_tmem(steps), setup=put_memory)
