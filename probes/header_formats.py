"""header_formats: E2M1 and UE8M0 as the CUDA headers convert on Hopper."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from fp4ref.device import Call, Pointer
from fp4ref.numerics import encode_e2m1, encode_ue8m0
from probes.convert import F32, U32, samples
from probes.probe import Case, Outputs, Probe, blank


def e2m1(x: F32) -> U32:
    """``__nv_cvt_float_to_fp4``, nearest even."""
    return encode_e2m1(x).astype(np.uint32)


def ue8m0_rp(x: F32) -> U32:
    """``__nv_cvt_float_to_e8m0``, up, saturating."""
    return encode_ue8m0(x, "rp").astype(np.uint32)


def ue8m0_rz(x: F32) -> U32:
    """``__nv_cvt_float_to_e8m0``, toward zero, saturating."""
    return encode_ue8m0(x, "rz").astype(np.uint32)


MODELS: dict[str, Callable[[F32], U32]] = {
    "e2m1": e2m1,
    "ue8m0_rp": ue8m0_rp,
    "ue8m0_rz": ue8m0_rz,
}


def cases() -> Iterator[Case]:
    """Every conversion, on samples."""
    for seed, name in enumerate(MODELS):
        x = samples(20 + seed)
        call = Call(
            f"sample_{name}",
            {"in": x.view(np.uint8), "out": blank(4 * x.size)},
            (Pointer("in"), Pointer("out"), np.uint32(x.size)),
        )
        why = "the header converts through float64, or rounds to bfloat16 by .rp or .rz"
        yield Case(name, call, ("out",), on_ptx=why)


def emulate(case: Case) -> Outputs:
    """The same by `fp4ref.numerics`."""
    x = case.call.buffers["in"].view(np.float32)
    return {"out": MODELS[case.name](x).view(np.uint8)}


PROBE = Probe(
    "header_formats",
    tuple(cases()),
    emulate,
    cuda_headers=True,
    files=("probe.cuh", "all_inputs.cuh"),
)
