"""outside_lanes: other checkers' programs of threads and words of memory.

They are after TIRx-Harness's tests, the litmus tests of the paper on mixed proxies
(NVlabs/mixedproxy, ISCA 2022), the microbenchmarks of ScoR (ISCA 2020), and a test
of the language Exo.
"""

from __future__ import annotations

from outside_programs import RACECHECK, LaneProgram

LITMUS = "NVlabs mixedproxy, tests/"
EXO = "Exo, tests/cuda/test_cuda_sync.py::test_Sm80_commit_group_async_proxy"
SCOR = "ScoR, microbenchmarks/src/"


def _spin(label: str, load: str, word: str, until: str = "eq.u32 %p7, %r8, 0") -> str:
    return f"{label}: {load} %r8, [{word}]; setp.{until}; @%p7 bra {label};"


MESSAGES = {
    "both of the GPU": ("st.release.gpu", "ld.acquire.gpu", ""),
    "both of the cluster": ("st.release.cluster", "ld.acquire.cluster", ""),
    "relaxed store": ("st.relaxed.gpu", "ld.acquire.gpu", ""),
    "relaxed load": ("st.release.gpu", "ld.relaxed.gpu", ""),
    "plain": ("st", "ld", ""),
    "fences": ("fence.acq_rel.gpu; st.volatile", "ld.volatile", "fence.acq_rel.gpu;"),
    "fence after the store": (
        "st.volatile.global.u32 [%rd3], 1; fence.acq_rel.gpu; st.volatile",
        "ld.volatile",
        "fence.acq_rel.gpu;",
    ),
}


def message(variant: str) -> str:
    """Data and a flag between two CTAs that are in no cluster together."""
    store, load, after = MESSAGES[variant]
    if variant == "fence after the store":
        store, word = "st.volatile", "%rd2"
        done = "fence.acq_rel.gpu;"
    else:
        word, done = "%rd2", ""
    return f"""
        @!%p1 bra END;
        @%p3 bra TAKE;
        st.global.u32 [%rd1], 41;
        {store}.global.u32 [{word}], 1;
        {done}
        bra END;
    TAKE:
        {_spin("W", f"{load}.global.u32", word)}
        {after}
        ld.global.u32 %r9, [%rd1];
    """


def sequence(variant: str) -> str:
    """A release, a read-modify-write by another CTA, an acquire by a third."""
    release = "st.release.gpu.global.u32 [%rd2], 1;"
    if variant == "relaxed head":
        release = "atom.relaxed.gpu.global.add.u32 %r9, [%rd2], 1;"
    last = _spin("V", "ld.acquire.gpu.global.u32", "%rd2")
    if variant == "relaxed head":
        last = "ld.relaxed.gpu.global.u32 %r8, [%rd2];"
    return f"""
        @!%p1 bra END;
        @%p2 bra FIRST;
        @%p3 bra SECOND;
        {_spin("W", "ld.acquire.gpu.global.u32", "%rd4")}
        {last}
        ld.global.u32 %r9, [%rd1];
        bra END;
    FIRST:
        st.global.u32 [%rd1], 53;
        {release}
        st.relaxed.gpu.global.u32 [%rd3], 1;
        bra END;
    SECOND:
        {_spin("U", "ld.acquire.gpu.global.u32", "%rd3")}
        atom.relaxed.gpu.global.add.u32 %r9, [%rd2], 1;
        st.relaxed.gpu.global.u32 [%rd4], 1;
    """


def counted(scope: str) -> str:
    """Two CTAs, in no cluster together, add to a word."""
    return f"@%p1 atom.relaxed.{scope}.global.add.u32 %r9, [%rd2], 1;"


def torn(_: str) -> str:
    """A word of eight bytes, and a relaxed store to its upper half by another CTA."""
    return f"""
        @!%p1 bra END;
        @%p3 bra SECOND;
        st.release.gpu.global.u64 [%rd2], 1;
        st.relaxed.gpu.global.u32 [%rd3], 1;
        bra END;
    SECOND:
        {_spin("U", "ld.relaxed.gpu.global.u32", "%rd3")}
        st.relaxed.gpu.global.u32 [%rd2+4], 0;
    """


LANES = {
    "another lane wrote": (1, "", "", 0),
    "another lane wrote, bar.warp.sync": (1, "bar.warp.sync -1;", "", 0),
    "another lane reads": (0, "", "", 1),
    "another lane reads, bar.warp.sync": (0, "", "bar.warp.sync -1;", 1),
}


def lanes(variant: str) -> str:
    """A flag between two warps, set and read by lane 0, and data of some lane."""
    writer, before, after, reader = LANES[variant]
    return f"""
        setp.ge.u32 %p4, %r3, 32;
        and.b32 %r5, %r3, 31;
        setp.eq.u32 %p5, %r5, 0;
        @%p4 bra TAKE;
        setp.eq.u32 %p6, %r5, {writer};
        @%p6 st.global.u32 [%rd1], 31;
        {before}
        @%p5 st.release.cluster.global.u32 [%rd2], 1;
        bra END;
    TAKE:
        @!%p5 bra JOIN;
        {_spin("W", "ld.acquire.cluster.global.u32", "%rd2")}
    JOIN:
        {after}
        setp.eq.u32 %p6, %r5, {reader};
        @%p6 ld.global.u32 %r9, [%rd1];
    """


def fence_lane(lane: int) -> str:
    """Lane 1 stores by bulk copy what another warp wrote; some lane fences."""
    return f"""
        setp.ge.u32 %p4, %r3, 32;
        and.b32 %r5, %r3, 31;
        setp.eq.u32 %p5, %r5, 0;
        setp.eq.u32 %p6, %r5, 1;
        @%p4 bra TAKE;
        @%p5 st.shared.v4.u32 [%r2], {{1, 2, 3, 4}};
        @%p5 mbarrier.arrive.shared::cta.b64 _, [%r1];
        bra END;
    TAKE:
        @!%p6 bra JOIN;
    W:  mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1], 0;
        @!%p7 bra W;
    JOIN:
        setp.eq.u32 %p5, %r5, {lane};
        @%p5 fence.proxy.async.shared::cta;
        @!%p6 bra END;
        cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 16;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
    """


def early_fence(lane: int) -> str:
    """The writer's own warp: lane 0 writes and releases, a lane of it fences."""
    return f"""
        setp.ge.u32 %p4, %r3, 32;
        and.b32 %r5, %r3, 31;
        setp.eq.u32 %p5, %r5, 0;
        @%p4 bra TAKE;
        setp.eq.u32 %p6, %r5, {lane};
        @%p6 st.shared.v4.u32 [%r2], {{1, 2, 3, 4}};
        @%p5 fence.proxy.async.shared::cta;
        @%p5 st.release.cta.global.u32 [%rd2], 1;
        bra END;
    TAKE:
        @!%p5 bra END;
        {_spin("W", "ld.acquire.cta.global.u32", "%rd2")}
        cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 16;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
    """


def snapshot(again: bool) -> str:
    """A word that is written before an arrival, and perhaps once more after it."""
    return f"""
        setp.eq.u32 %p4, %r3, 32;
        @%p4 bra TAKE;
        @!%p1 bra END;
        st.shared.u32 [%r2], 1;
        mbarrier.arrive.shared::cta.b64 _, [%r1];
        {"st.shared.u32 [%r2], 2;" if again else ""}
        bra END;
    TAKE:
    W:  mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r1], 0;
        @!%p7 bra W;
        ld.shared.u32 %r9, [%r2];
    """


def cumulative(_: str) -> str:
    """ISA2: two flags, of the CTA and of the GPU, between three threads."""
    return f"""
        setp.eq.u32 %p4, %r3, 32;
        @%p3 bra THIRD;
        @%p4 bra SECOND;
        @!%p1 bra END;
        st.global.u32 [%rd1], 42;
        st.release.cta.global.u32 [%rd2], 1;
        bra END;
    SECOND:
        {_spin("U", "ld.acquire.cta.global.u32", "%rd2")}
        st.release.gpu.global.u32 [%rd3], 1;
        bra END;
    THIRD:
        @!%p1 bra END;
        {_spin("W", "ld.acquire.gpu.global.u32", "%rd3")}
        ld.global.u32 %r9, [%rd1];
    """


def fenced_flag(scope: str) -> str:
    """ScoR: data, a fence, and a flag that two CTAs exchange."""
    return f"""
        @!%p1 bra END;
        @%p3 bra TAKE;
        st.volatile.global.u32 [%rd1], 1;
        fence.acq_rel.{scope};
        atom.relaxed.gpu.global.exch.b32 %r9, [%rd2], 1;
        bra END;
    TAKE:
    W:  atom.relaxed.gpu.global.exch.b32 %r8, [%rd2], 0;
        setp.eq.u32 %p7, %r8, 0; @%p7 bra W;
        fence.acq_rel.gpu;
        ld.global.u32 %r9, [%rd1];
    """


def exchanged(scope: str) -> str:
    """ScoR: two CTAs exchange a word."""
    return f"@%p1 atom.relaxed.{scope}.global.exch.b32 %r9, [%rd1], 1;"


def copied_by_lanes(fence: str) -> str:
    """Exo: a copy by cp.async, waited for, then stored by a bulk copy."""
    return f"""
        @!%p1 bra END;
        cp.async.ca.shared.global [%r2], [%rd2], 16;
        cp.async.commit_group;
        cp.async.wait_group 0;
        {fence}
        cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 16;
        cp.async.bulk.commit_group;
        cp.async.bulk.wait_group 0;
    """


PROGRAMS = {
    "fence and flag": LaneProgram(
        f"{SCOR}race_interblock_blkfence_raw.cu, norace_interblock_fence_raw.cu",
        fenced_flag,
        {"cta": "error", "gpu": "clean"},
        ctas=2,
    ),
    "exchange": LaneProgram(
        f"{SCOR}race_interblock_blkatom.cu, norace_interblock_atom.cu",
        exchanged,
        {"cta": "error", "gpu": "clean"},
        ctas=2,
    ),
    "message between CTAs": LaneProgram(
        f"{RACECHECK}test_native_global_scoped_hb.py",
        message,
        {
            "both of the GPU": "clean",
            "both of the cluster": "error",
            "relaxed store": "error",
            "relaxed load": "error",
            "plain": "error",
            "fences": "clean",
            "fence after the store": "error",
        },
        ctas=2,
    ),
    "message in a cluster": LaneProgram(
        f"{RACECHECK}test_native_global_scoped_hb_matrix.py",
        message,
        {"both of the cluster": "clean"},
        ctas=2,
        cluster=2,
    ),
    "release sequence": LaneProgram(
        f"{RACECHECK}test_native_global_scoped_hb_matrix.py",
        sequence,
        {"released head": "clean", "relaxed head": "error"},
        ctas=3,
    ),
    "atomics of two CTAs": LaneProgram(
        f"{RACECHECK}test_native_global_scoped_hb_matrix.py",
        counted,
        {"cluster": "error", "gpu": "clean"},
        ctas=2,
    ),
    "store to half a word": LaneProgram(
        f"{RACECHECK}test_native_global_scoped_hb_matrix.py",
        torn,
        {"upper half": "error"},
        ctas=2,
    ),
    "lanes and a flag": LaneProgram(
        f"{RACECHECK}test_native_global_scoped_hb_matrix.py",
        lanes,
        {
            "another lane wrote": "error",
            "another lane wrote, bar.warp.sync": "clean",
            "another lane reads": "error",
            "another lane reads, bar.warp.sync": "clean",
        },
    ),
    "proxy fence of a lane": LaneProgram(
        f"{RACECHECK}test_native_proxy_async_fence.py",
        fence_lane,
        {0: "error"},
    ),
    "proxy fence of the releasing lane": LaneProgram(
        f"{RACECHECK}test_native_shared_publication.py",
        early_fence,
        {0: "clean", 1: "error"},
    ),
    "written after the arrival": LaneProgram(
        f"{RACECHECK}test_native_racecheck_arrive_snapshot.py",
        snapshot,
        {False: "clean", True: "error"},
    ),
    "cp.async before a bulk store": LaneProgram(
        EXO,
        copied_by_lanes,
        {"": "error", "fence.proxy.async.shared::cta;": "clean"},
    ),
    "litmus ISA2": LaneProgram(
        f"{LITMUS}ISA2.test", cumulative, {"asserted": "clean"}, ctas=2
    ),
}
