"""CUTLASS's named operations: bits, bounds in float64, ties, and registers."""

from __future__ import annotations

import re
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from test_trees import bits, needs_nvrtc
from tree_bound import near

import fp4ref
from fp4ref import GemmConfig
from fp4ref.cuda_kernel.build import compile_kernel
from fp4ref.cuda_kernel.sass import disassemble, figures
from fp4ref.cutlass.toolchain import missing_packages
from fp4ref.errors import ConfigError
from fp4ref.evidence import oracle
from fp4ref.gemm.fusion.arguments import TensorArgument, VectorArgument
from fp4ref.gemm.fusion.expression import aux, aux_load, build, gelu_erf
from fp4ref.gemm.fusion.launch_arguments import arguments_of
from fp4ref.gemm.fusion.operations import OPERATIONS, REFUSED, operation
from fp4ref.gemm.plan import plan

M, N, K = 40, 50, 64
NAMES = sorted(OPERATIONS)
DTYPES: dict[str, Any] = {
    **{"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16},
    **{"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2},
}
MOST = {"e4m3": 448, "e5m2": 57344}
"""Of formats that saturate."""
TODAY = date.today().toordinal()
MOST_REGISTERS = 255
"""What a thread can have; ptxas spills what goes beyond."""


def config_of(name: str, **options: Any) -> GemmConfig:
    return GemmConfig(epilogue=operation(name, **options))


def launch(config: GemmConfig, seed: int) -> dict[str, Any]:
    """Operands, C and what the operation's nodes take, all finite."""
    rng = np.random.default_rng(seed)
    a, b = (fp4ref.quantize(rng.standard_normal((n, K), np.float32)) for n in (M, N))
    c = None
    if (asked := config.epilogue.c_format) is not None:
        c = rng.standard_normal((M, N), np.float32).astype(DTYPES[asked])
    arguments: dict[str, Any] = {"beta": 0.75}
    for each in arguments_of(plan(config).fusion).values():
        if isinstance(each, VectorArgument):
            length = (1, M, N)[each.axis]
            arguments[each.name] = rng.standard_normal(length, np.float32)
        elif isinstance(each, TensorArgument):
            tensor = rng.standard_normal((M, N)).astype(ml_dtypes.bfloat16)
            arguments[each.name] = tensor
        elif each.name.startswith("scale_"):
            arguments[each.name] = float(2.0 ** rng.integers(-2, 3)) * 1.25
    if "ScalarBroadcast<&GemmParams::scalar_beta" not in repr(config.epilogue.fusion):
        del arguments["beta"]
    return {"a": a, "b": b, "c": c, "arguments": arguments, "alpha": 0.375}


def check_bits(name: str, backend: Any, **options: Any) -> None:
    config = config_of(name, **options)
    given = launch(config, NAMES.index(name))
    run = fp4ref.run(**given, config=config, backend=backend, trace=False)
    assert bits(run) == bits(oracle.expected(**given, config=config))


def check_bound(name: str) -> None:
    """D as float32 is as near to float64 as its nodes let it be."""
    options: dict[str, Any] = {"activation": gelu_erf}
    if not name.endswith("BlockScaleFactor"):
        options["d"] = "f32"
    config = config_of(name, **options)
    given = launch(config, NAMES.index(name))
    accumulators = fp4ref.run(
        given["a"], given["b"], alpha=1.0, config=GemmConfig(), trace=False
    ).d
    tree = plan(config).fusion
    exact = near(tree, accumulators, given["c"], given["alpha"], given["arguments"])
    plain = GemmConfig(epilogue=build(tree, d="f32", c=config.epilogue.c_format))
    z = fp4ref.run(**given, config=plain, trace=False).d
    assert np.all(abs(z - exact.value) <= exact.error)
    assert exact.error.max() < 1e-3


def test_the_names_are_those_of_cutlass() -> None:
    if missing := missing_packages(["nvidia-cutlass"]):
        pytest.skip(f"needs {missing}")
    (header,) = (
        file.locate()
        for file in metadata.files("nvidia-cutlass") or ()
        if file.as_posix().endswith("include/cutlass/epilogue/fusion/operations.hpp")
    )
    named = set(re.findall(r"(?m)^struct (\w+)", Path(str(header)).read_text()))
    assert named - {"FusionOperation"} == {*NAMES, "LinCombTopKSoftmaxCol"}
    assert len(NAMES) == 25


@pytest.mark.parametrize("name", [*REFUSED, "NoSuchOperation"])
def test_what_is_not_computed_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}': .*Source: CUTLASS"):
        operation(name)


def test_a_grouped_fragment_and_a_d_without_scales_are_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"groups_per_tile=2: .*Use groups_per_tile=1"
    ):
        operation("LinearCombinationGroupedWgrad", groups_per_tile=2)
    with pytest.raises(ConfigError, match=r"LinCombBlockScaleFactor with d='f16'"):
        operation("LinCombBlockScaleFactor", d="f16")
    with pytest.raises(ConfigError, match=r"d=\['nvfp4'\]"):
        operation("LinCombBlockScaleFactor", d=["nvfp4"])
    with pytest.raises(ConfigError, match=r"activation='relu': a function"):
        operation("LinCombEltAct", activation="relu")  # type: ignore[arg-type]


def some(count: int) -> list[str]:
    """Some operations, others each day."""
    return [NAMES[(TODAY * count + i) % len(NAMES)] for i in range(count)]


@pytest.mark.parametrize("name", some(4))
def test_emulator_and_oracle_have_the_same_bits(name: str) -> None:
    options: dict[str, Any] = {"element": ("bf16", "e4m3", "e5m2")[TODAY % 3]}
    if "DeEltAct" in name:
        options["element"] = "bf16"
    if not name.endswith("BlockScaleFactor"):
        options["d"] = ("f16", "e4m3", "e5m2")[(TODAY + NAMES.index(name)) % 3]
    check_bits(name, "emulator", **options)


@needs_nvrtc
@pytest.mark.parametrize("name", some(1))
def test_the_compiled_kernel_has_the_same_bits(name: str) -> None:
    check_bits(name, "ptx")


@pytest.mark.rotating(2)
@needs_nvrtc
@pytest.mark.parametrize("name", NAMES)
def test_no_operation_spills(name: str) -> None:
    """Compiled for sm_100a, with tiles of 128 x 128."""
    config = config_of(name, element="e4m3")
    assert (plan(config).tile_m, config.tile.n) == (128, 128)
    compiled = compile_kernel(config)
    found = figures(compiled.cubin, disassemble(compiled.cubin))
    assert found.spill_instructions == 0
    assert found.registers <= MOST_REGISTERS


@pytest.mark.parametrize("name", some(2))
def test_d_is_as_near_to_float64_as_its_nodes_let_it_be(name: str) -> None:
    check_bound(name)


def test_a_scaled_operation_takes_its_maxima_before_its_scales() -> None:
    """By hand: each sum is exact in float64, and rounded once."""
    options = {"element": "e4m3", "d": "e5m2"}
    config = config_of("ScaledLinCombPerRowBiasEltActAmaxAux", **options)
    given = launch(config, 0)
    plain = {"alpha": 1.0, "config": GemmConfig(), "trace": False}
    products = fp4ref.run(given["a"], given["b"], **plain).d.astype(np.float64)
    given["alpha"] = 0.5
    given["arguments"] |= {
        **{"scale_a": 2.0, "scale_b": 0.25, "scale_c": 4.0, "beta": 0.125},
        **{"scale_d": 1e5, "scale_aux": 64.0},
    }
    bias, c = given["arguments"]["bias"][:, None], given["c"].astype(np.float64)
    z = (0.5 * c + (0.25 * products + bias).astype(np.float32)).astype(np.float32)
    y = np.maximum(z, 0)
    run = fp4ref.run(**given, config=config, trace=False)
    d = np.clip(y * np.float32(1e5), 0, 57344).astype(ml_dtypes.float8_e5m2)
    stored = np.clip(z * np.float32(64), -448, 448).astype(ml_dtypes.float8_e4m3fn)
    assert np.array_equal(run.d, d)
    assert np.array_equal(run.aux["aux"], stored)
    assert run.reductions == {"amax_d": y.max(), "amax_aux": abs(z).max()}
    without = config_of("ScaledLinCombPerRowBiasEltActAmaxAux", d="f16")
    names = [each.name for each in arguments_of(plan(without).fusion).values()]
    assert not {"scale_d", "amax_d", "scale_aux", "amax_aux"} & {*names}


@pytest.mark.soak
@needs_nvrtc
@pytest.mark.parametrize("name", NAMES)
def test_every_operation(name: str) -> None:
    options: dict[str, Any] = {"element": "bf16" if "DeEltAct" in name else "e4m3"}
    for backend in ("emulator", "ptx"):
        check_bits(name, backend, **options)
        if not name.endswith("BlockScaleFactor"):
            check_bits(name, backend, **options, d="e4m3")
    check_bound(name)


def ties(dtype: Any) -> NDArray[np.float32]:
    """Every tie between two numbers of a format, its neighbours, and what is beyond."""
    count = 1 << 8 * np.dtype(dtype).itemsize
    codes = np.arange(count, dtype=np.uint32).astype(f"u{np.dtype(dtype).itemsize}")
    with np.errstate(invalid="ignore"):
        numbers = codes.view(dtype).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    middle = ((numbers[1:] + numbers[:-1]) / 2).astype(np.float32)
    up, down = (np.nextafter(middle, np.float32(end)) for end in (np.inf, -np.inf))
    most = np.float32(numbers[-1])
    with np.errstate(over="ignore"):  # of bfloat16 the second is infinity already
        beyond = np.array([most, most * 1.07, most * 1.5, 1e30, np.inf], np.float32)
    return np.concatenate([middle, up, down, beyond, -beyond]).astype(np.float32)


def converted_ties(d: Any, element: Any) -> None:
    """D and an aux tensor of D's ties, passed in: `ml_dtypes` converts too."""
    x = ties(DTYPES[d])
    columns = 512
    x = np.resize(x, (-(-x.size // columns), columns))
    x = np.where(np.isnan(x), np.float32(0), x)
    config = GemmConfig(epilogue=build(aux_load("x") | aux("y", element), d=d))
    a, b = (fp4ref.quantize(np.ones((n, 64), np.float32)) for n in x.shape)
    run = fp4ref.run(a, b, arguments={"x": x}, config=config, trace=False)
    for found, name in ((run.d, d), (run.aux["y"], element)):
        most = np.float32(MOST.get(name, np.inf))
        with np.errstate(over="ignore"):
            want = np.clip(x, -most, most).astype(DTYPES[name])
        assert np.array_equal(found.view(np.uint8), want.view(np.uint8))


@pytest.mark.parametrize(("d", "element"), [("e4m3", "e5m2"), ("e5m2", "e4m3")])
def test_every_tie_of_fp8_is_rounded_as_ml_dtypes_does(d: Any, element: Any) -> None:
    converted_ties(d, element)


@pytest.mark.soak
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_every_tie_of_16_bits_is_rounded_as_ml_dtypes_does(element: Any) -> None:
    converted_ties(element, element)
