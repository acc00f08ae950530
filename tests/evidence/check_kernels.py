"""check_kernels: small kernels written by hand, right and wrong, and how to launch them.

Nothing in them comes from this project's kernel. A wrong text has the mark ``//!`` at
the line that is to be named. It differs from the right one in what stands after
``|``: ``"right || wrong"`` is one line of either.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fp4ref.evidence.check import Launch, launch_arrays, tensor_map

HEAD = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k({params})
{{
    .reg .pred %p<8>;
    .reg .b16 %h<8>;
    .reg .b32 %r<64>;
    .reg .f32 %f<16>;
    .reg .b64 %rd<32>;
    .shared .align 1024 .b8 data[4096];
    .shared .align 8 .b64 bar[4];
    .shared .align 4 .b32 taddr;
    mov.u32 %r0, %tid.x;
    shr.u32 %r1, %r0, 5;
    and.b32 %r2, %r0, 31;
    setp.eq.u32 %p0, %r0, 0;
    mov.u32 %r3, data;
    mov.u32 %r4, bar;
    mov.u32 %r7, taddr;
    shl.b32 %r5, %r0, 2;
    add.u32 %r6, %r3, %r5;
    mov.b64 %rd5, map;
    cvta.param.u64 %rd5, %rd5;
    mov.u32 %r20, 0;
"""


@dataclass(frozen=True)
class Case:
    """A pair of kernels.

    Attributes
    ----------
    lines
        ``right || wrong`` where they differ; an empty side has no line.
    finding
        What the wrong one is called.
    out
        What the right one leaves in its buffer of 256 words, if it has one.
    """

    name: str
    lines: str
    finding: str
    threads: int = 64
    grid: int = 1
    cluster: int = 1
    out: Any = None
    options: dict[str, Any] = field(default_factory=dict)

    def text(self, wrong: bool) -> str:
        body = []
        for line in self.lines.strip("\n").splitlines():
            parts = line.split("||")
            part = parts[-1 if wrong else 0].rstrip()
            if part.strip():
                body.append(part if wrong else part.replace("//!", ""))
        head = HEAD.format(
            params=".param .u64 .ptr .global .align 16 out,\n"
            "    .param .align 64 .b8 map[128]"
        )
        return head + "\n".join(body) + "\n    ret;\n}\n"

    def line(self) -> int:
        """Line of the wrong text that has the mark."""
        lines = self.text(True).splitlines()
        (found,) = [i for i, line in enumerate(lines, 1) if "//!" in line]
        return found

    def launch(self, wrong: bool) -> Launch:
        out = np.zeros(256, np.uint32)
        return launch_arrays(
            self.text(wrong),
            (self.grid,),
            [out, tensor_map(out, "uint32", [256], [], [64])],
            block=(self.threads,),
            cluster=(self.cluster,),
            expected=None if self.out is None else {0: np.asarray(self.out, "u4")},
        )


POINTER = "    ld.param.u64 %rd1, [out];\n    cvta.to.global.u64 %rd1, %rd1;\n"
STORE = """
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r9;
"""
INIT = """
    @%p0 mbarrier.init.shared::cta.b64 [%r4], {count};
    @%p0 fence.mbarrier_init.release.cluster;
    bar.sync 0;
"""
WAIT = """
WAIT{n}:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], {parity};{mark}
    @!%p2 bra WAIT{n};
"""
TMEM = """
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra NOALLOC;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r7], {columns};{mark}
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
NOALLOC:
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    ld.shared.u32 %r8, [%r7];
"""
FREE = """
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @%p1 bra NOFREE;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 32;
NOFREE:
"""


def wait(parity: int = 0, mark: str = "", n: int = 0) -> str:
    return WAIT.format(parity=parity, mark=mark, n=n)


def padded(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found = np.zeros(256, np.uint32)
    found[: values.size] = values
    return found


T64 = np.arange(64)

PAIRS = [
    Case(
        "a barrier left out",
        """
    st.shared.u32 [%r6], %r20;
    bar.sync 0;
    st.shared.u32 [%r6], %r0;
    bar.sync 0; ||
    xor.b32 %r8, %r5, 252;
    add.u32 %r8, %r8, %r3;
    ld.shared.u32 %r9, [%r8]; || ld.shared.u32 %r9, [%r8]; //!
"""
        + STORE,
        "missing synchronisation",
        out=padded(T64[::-1]),
    ),
    Case(
        "lanes of a warp without bar.warp.sync",
        """
    st.shared.u32 [%r6], %r0;
    bar.warp.sync -1; ||
    xor.b32 %r8, %r5, 4;
    add.u32 %r8, %r8, %r3;
    ld.shared.u32 %r9, [%r8]; || ld.shared.u32 %r9, [%r8]; //!
"""
        + STORE,
        "missing lane order",
        threads=32,
        out=padded(np.arange(32) ^ 1),
    ),
    Case(
        "shared memory that nothing wrote",
        """
    st.shared.u32 [%r6], %r0; ||
    bar.sync 0;
    ld.shared.u32 %r9, [%r6]; || ld.shared.u32 %r9, [%r6]; //!
"""
        + STORE,
        "UninitialisedRead",
        out=padded(T64),
    ),
    Case(
        "an arrival that never comes",
        INIT.replace("{count};", "1; || @%p0 mbarrier.init.shared::cta.b64 [%r4], 2;")
        + """
    @%p0 mbarrier.arrive.shared::cta.b64 _, [%r4]; || @%p0 mbarrier.arrive.shared::cta.b64 _, [%r4]; //!
"""
        + wait()
        + "    mov.u32 %r9, 7;"
        + STORE,
        "DeadlockError",
        out=padded(np.full(64, 7)),
    ),
    Case(
        "too many bytes expected",
        INIT.format(count=1)
        + POINTER
        + """
    @!%p0 bra COPIED;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 256; || mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 272; //!
    cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r3], [%rd5, {%r20}], [%r4];
COPIED:
"""
        + wait()
        + "    ld.shared.u32 %r9, [%r6];\n    add.u32 %r9, %r9, 3;"
        + STORE,
        "DeadlockError",
        out=padded(np.full(64, 3)),
    ),
    Case(
        "a wait for the wrong parity",
        INIT.format(count=1)
        + """
    @%p0 mbarrier.arrive.shared::cta.b64 _, [%r4];
W: || W:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0; || mov.u32 %r30, 0;
    @!%p2 bra W; || mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
    mov.u32 %r9, 7; || @!%p2 bra W;
V: || V:
    mov.u32 %r10, 7; || mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 1; //!
    mov.u32 %r11, 7; || @!%p2 bra V;
    mov.u32 %r9, 7;
"""
        + STORE,
        "DeadlockError",
        out=padded(np.full(64, 7)),
    ),
    Case(
        "an mbarrier used before its init is visible",
        """
    @%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
    @%p0 fence.mbarrier_init.release.cluster; ||
    bar.sync 0; ||
    setp.eq.u32 %p3, %r0, 32;
    @%p3 mbarrier.arrive.shared::cta.b64 _, [%r4]; || @%p3 mbarrier.arrive.shared::cta.b64 _, [%r4]; //!
""",
        "mbarrier used before its init is visible",
    ),
    Case(
        "more arrivals than are awaited",
        INIT.format(count=1)
        + """
    @%p0 mbarrier.arrive.shared::cta.b64 _, [%r4]; || setp.lt.u32 %p0, %r0, 2;
    || @%p0 mbarrier.arrive.shared::cta.b64 _, [%r4]; //!
""",
        "MbarrierFault",
    ),
    Case(
        "a bulk store without a proxy fence",
        """
    st.shared.u32 [%r6], %r0;
    fence.proxy.async.shared::cta; ||
    bar.sync 0;
"""
        + POINTER
        + """
    @!%p0 bra STORED;
    cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd5, {%r20}], [%r3]; || cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd5, {%r20}], [%r3]; //!
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
STORED:
""",
        "MissingProxyFence",
        out=padded(T64),
    ),
    Case(
        "the source of a bulk store used again too early",
        """
    st.shared.u32 [%r6], %r0;
    fence.proxy.async.shared::cta;
    bar.sync 0;
"""
        + POINTER
        + """
    @!%p0 bra STORED;
    cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd5, {%r20}], [%r3];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0; ||
    st.shared.u32 [%r3], 99; || st.shared.u32 [%r3], 99; //!
    cp.async.bulk.wait_group 0;
STORED:
""",
        "async lifetime not drained",
        out=padded(T64),
    ),
    Case(
        "one element too far",
        POINTER
        + """
    mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r0; || st.global.u32 [%rd3+800], %r0; //!
""",
        "OutOfBounds",
        out=padded(T64),
    ),
    Case(
        "a vector access that is not aligned",
        """
    st.shared.u32 [%r6], %r0;
    bar.sync 0;
    ld.shared.v2.u32 {%r9, %r10}, [%r3]; || ld.shared.v2.u32 {%r9, %r10}, [%r3+4]; //!
    mov.u32 %r9, %r0;
"""
        + STORE,
        "MisalignedAddress",
        out=padded(T64),
    ),
    Case(
        "an aligned barrier reached by half of a warp",
        """
    setp.lt.u32 %p1, %r2, 16;
    bar.sync 0; || @%p1 bar.sync 0; //!
    mov.u32 %r9, 1;
"""
        + STORE,
        "PartialWarp",
        out=padded(np.ones(64)),
    ),
    Case(
        "a register that one path does not set",
        """
    setp.lt.u32 %p1, %r2, 16;
    mov.u32 %r9, 5; || @%p1 mov.u32 %r9, 5;
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r0, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r9; || st.global.u32 [%rd3], %r9; //!
""",
        "UndefinedRegister",
        out=padded(np.full(64, 5)),
    ),
    Case(
        "TMEM that is never freed",
        TMEM.format(
            columns=32,
            mark=" || tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r7], 32; //!",
        )
        + FREE.replace(
            "    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 32;",
            "    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r8, 32; ||",
        ),
        "ExitFault",
    ),
    Case(
        "48 columns of TMEM",
        TMEM.format(
            columns=32,
            mark=" || tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r7], 48; //!",
        )
        + FREE,
        "TmemAllocationFault",
    ),
    Case(
        "lanes of TMEM that belong to another warp",
        TMEM.format(columns=32, mark="")
        + """
    shl.b32 %r9, %r1, 21;
    add.u32 %r9, %r9, %r8;
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {%r0}; || tcgen05.st.sync.aligned.32x32b.x1.b32 [%r8], {%r0}; //!
    tcgen05.wait::st.sync.aligned;
"""
        + FREE,
        "LaneQuarterViolation",
    ),
    Case(
        "an MMA whose descriptors are empty",
        TMEM.format(columns=32, mark="")
        + """
    mov.u64 %rd4, 0;
    mov.u32 %r10, 0x08040010;
    setp.eq.u32 %p4, %r10, 0;
    || @%p0 tcgen05.mma.cta_group::1.kind::f16 [%r8], %rd4, %rd4, %r10, %p4; //!
"""
        + FREE,
        "DescriptorFault",
    ),
    Case(
        "a flag in global memory that is not released",
        """
    ld.param.u64 %rd1, [out];
    mov.u32 %r10, %ctaid.x;
    setp.ne.u32 %p4, %r10, 0;
    @!%p0 bra END;
    @%p4 bra READ;
    st.global.u32 [%rd1+64], 11;
    st.release.gpu.global.u32 [%rd1], 1; || st.relaxed.gpu.global.u32 [%rd1], 1;
    bra END;
READ:
    ld.acquire.gpu.global.u32 %r11, [%rd1];
    setp.eq.u32 %p5, %r11, 0;
    @%p5 bra READ;
    ld.global.u32 %r12, [%rd1+64]; || ld.global.u32 %r12, [%rd1+64]; //!
    st.global.u32 [%rd1+68], %r12;
END:
""",
        "missing synchronisation",
        grid=2,
    ),
    Case(
        "a peer's memory read without a cluster barrier",
        """
    st.shared.u32 [%r6], %r20;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    mov.u32 %r10, %cluster_ctarank;
    st.shared.u32 [%r6], %r10;
    barrier.cluster.arrive.release.aligned; ||
    barrier.cluster.wait.acquire.aligned; ||
    xor.b32 %r11, %r10, 1;
    mapa.shared::cluster.u32 %r12, %r6, %r11;
    ld.shared::cluster.u32 %r9, [%r12]; || ld.shared::cluster.u32 %r9, [%r12]; //!
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    setp.eq.u32 %p4, %r10, 0;
    @!%p4 bra END;
"""
        + STORE
        + "END:",
        "missing synchronisation",
        grid=2,
        cluster=2,
        out=padded(np.ones(64)),
    ),
]
"""Each a mistake, and beside it the same kernel without it."""
