"""trees: CUTLASS's fused kernels and our trees of the same meaning, bit for bit.

A kernel of CUTLASS stores D by columns. Its buffers, read by rows, are those of the
transposed product: so the tree runs with B for A, and its rows are CUTLASS's columns.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fp4ref import GemmConfig, Run
from fp4ref import run as emulate
from fp4ref.cutlass.examples import example_source
from fp4ref.cutlass.execute import CutlassRun, execute_example
from fp4ref.gemm.fusion.expression import acc, alpha, beta, build, c, fma
from fp4ref.gemm.fusion.operations import operation

E4M3 = ml_dtypes.float8_e4m3fn
Shape = tuple[int, int, int]
Schedule = str | int

SCALES = {
    **{"alpha": 0.75, "beta": 0.5, "scale_a": 0.5, "scale_b": 0.25},
    **{"scale_c": 2.0, "scale_d": 0.5, "scale_aux": 0.25},
}
"""With them each number of the example's own check is exact before its conversion."""
PLAIN = {**dict.fromkeys(SCALES, 1.0), "beta": 0.0}
"""Those of the example by itself."""

_BIAS = {
    "uint64_t seed;": "uint64_t seed;\n"
    "cutlass::HostTensor<ElementBias, cutlass::layout::PackedVectorLayout> bias;",
    "fusion_args.bias_ptr = nullptr;": "bias.resize(cutlass::make_Coord(options.m));\n"
    "  for (int i = 0; i < options.m; ++i)\n"
    "    bias.host_data()[i] = ElementBias(0.25f * (i % 23) - 2.5f);\n"
    "  bias.sync_device();\n"
    "  fusion_args.bias_ptr = bias.device_data();",
    "using unused_t = decltype(D);": "using unused_t = decltype(D);\n"
    "  auto Bias = cute::make_tensor(bias.host_data(), options.m);",
    "unused_t, // bias": "decltype(Bias), // bias",
    "epilogue_params.Aux = Aux;": "epilogue_params.Aux = Aux;\n"
    "  epilogue_params.Bias = Bias;",
}
"""What makes of example 70 one with a bias of rows; the example leaves it out."""


def biased_70(folder: Path) -> Path:
    """Write example 70 with a bias, in its own check too."""
    text = example_source("70-fp8").read_text()
    for old, new in _BIAS.items():
        assert text.count(old) == 1, f"example 70 has changed: {old}"
        text = text.replace(old, new)
    changed = folder / "70_blackwell_fp8_gemm_with_a_bias.cu"
    changed.write_text(text)
    return changed


def buffer(found: CutlassRun, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an allocation as an array; it may be longer."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return found.allocation(name)[:count].view(dtype).reshape(shape)


def our_70(
    found: CutlassRun, shape: Shape, scales: Mapping[str, float], has_bias: bool
) -> Run:
    """Run our tree of example 70's meaning on what its buffers hold."""
    m, n, k = shape
    epilogue = operation(
        "ScaledLinCombPerColBiasEltActAmaxAux", element="e4m3", d="e4m3"
    )
    bias = np.zeros(m, np.float32)
    if has_bias:
        bias = buffer(found, "bias", (m,), np.float16).astype(np.float32)
    return emulate(
        buffer(found, "B", (n, k), E4M3),
        buffer(found, "A", (m, k), E4M3),
        c=buffer(found, "C", (n, m), E4M3),
        alpha=scales["alpha"],
        config=GemmConfig(epilogue=epilogue).replace(operand_format="e4m3"),
        arguments={"bias": bias, **{x: y for x, y in scales.items() if x != "alpha"}},
        trace=False,
    )


def differing_70(
    found: CutlassRun,
    shape: Shape,
    scales: Mapping[str, float] = PLAIN,
    has_bias: bool = False,
) -> dict[str, int]:
    """Count the bytes of D, aux and the two maxima that our tree makes otherwise."""
    m, n, _ = shape
    ours = our_70(found, shape, scales, has_bias)
    pairs = {
        "D": (ours.d, buffer(found, "D", (n, m), E4M3)),
        "aux": (ours.aux["aux"], buffer(found, "aux", (n, m), E4M3)),
        "largest D": (
            ours.reductions["amax_d"],
            buffer(found, "largest D", (), np.float32),
        ),
        "largest aux": (
            ours.reductions["amax_aux"],
            buffer(found, "largest aux", (), np.float32),
        ),
    }
    return {name: _differ(*both) for name, both in pairs.items()}


def _differ(ours: NDArray[Any], theirs: NDArray[Any]) -> int:
    """Count bytes."""
    both = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (ours, theirs))
    return int(np.not_equal(*both).sum())


def wide_contents(shape: Shape, seed: int) -> dict[str, bytes]:
    """Operands, C and bias of example 70 of many sizes, so that some of D saturates."""
    m, n, k = shape
    rng = np.random.default_rng(seed)
    extents = {"A": (m, k), "B": (n, k), "C": (n, m), "bias": (m,)}
    found = {}
    for name, extent in extents.items():
        x = 48 * rng.standard_normal(extent) * np.exp2(rng.integers(-8, 1, extent))
        found[name] = x.astype(np.float16 if name == "bias" else E4M3).tobytes()
    return found


def cutlass_70(schedules: tuple[Schedule, ...], shape: Shape) -> None:
    """Example 70 with all scales and a bias: its own check, then wide operands.

    Raises
    ------
    AssertionError, HardwareFault
        It does not pass its own check, or our tree has other bits.
    """
    more = [f"--{name}={value}" for name, value in SCALES.items()]
    with tempfile.TemporaryDirectory() as folder:
        source = biased_70(Path(folder))
        for schedule in schedules:
            for contents in (None, wide_contents(shape, 70)):
                found = execute_example(
                    *("70-fp8", *shape),
                    more=more,
                    source=source,
                    contents=contents,
                    schedule=schedule,
                    trace=False,
                )
                if found.result.fault:
                    raise found.result.fault
                where = f"{shape}, {schedule}"
                assert contents or found.result.passed, found.result.problems
                wrong = differing_70(found, shape, SCALES, has_bias=True)
                assert not any(wrong.values()), f"{where}: {wrong}"
                if contents:
                    m, n, _ = shape
                    full = buffer(found, "D", (n, m), E4M3) == E4M3(448)
                    assert 0.01 < full.mean() < 0.99, f"{where}: {full.mean()}"


KERNELS_OF_71 = range(10)


def differing_71(found: CutlassRun, shape: Shape, kernel: int) -> int:
    """Count the bytes of a kernel's D that our tree makes otherwise."""
    m, n, k = shape
    epilogue = build(fma(beta, c, alpha * acc), d="f16", c="f16")

    def of(name: str, *extents: int) -> Any:
        return buffer(found, f"{name} of kernel {kernel}", extents, np.float16)

    ours = emulate(
        *(of("B", n, k), of("A", m, k)),
        c=of("C", n, m),
        alpha=0.75,
        arguments={"beta": 0.5},
        config=GemmConfig(epilogue=epilogue).replace(operand_format="f16"),
        trace=False,
    )
    return _differ(ours.d, of("D", n, m))


def cutlass_71(schedules: tuple[Schedule, ...], shape: Shape) -> None:
    """Example 71: its own check of ten kernels, and our tree of their meaning.

    Raises
    ------
    AssertionError, HardwareFault
        A kernel does not pass its own check, or our tree has other bits.
    """
    for schedule in schedules:
        found = execute_example("71", *shape, schedule=schedule, trace=False)
        if found.result.fault:
            raise found.result.fault
        assert found.result.passed, found.result.output
        wrong = {i: differing_71(found, shape, i) for i in KERNELS_OF_71}
        assert not any(wrong.values()), f"{shape}, {schedule}: {wrong}"
