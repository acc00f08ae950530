"""argument_kinds: what each public function takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from wrong_arguments import FLOATS, Public

import fp4ref
from fp4ref import layout, numerics, oracle, viz
from fp4ref.evidence.check import Launch
from fp4ref.gemm.config import FIELDS
from fp4ref.layout import Layout, SwizzledScales, SwizzleMode
from fp4ref.numerics import ElementFormat, ScaleFormat, decode_a, decode_b


def _codes(*shape: int) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape), dtype=np.uint8).reshape(shape) % 16


def _ones(*shape: int) -> np.ndarray[Any, Any]:
    return np.full(shape, 0x38, np.uint8)


F32 = np.linspace(-3, 3, 32, dtype=np.float32).reshape(2, 16)
UE4M3 = {"scale_format": ScaleFormat.UE4M3, "vec_size": 16}
MMA = {
    "a": _codes(2, 64),
    "b": _codes(3, 64),
    "sfa": _ones(2, 4),
    "sfb": _ones(3, 4),
    "c": np.zeros((2, 3), np.float32),
}
MMA_KINDS = {
    **dict.fromkeys(("a", "b", "sfa", "sfb"), "codes"),
    **{"c": "float32", "scale_format": "choice", "vec_size": "whole"},
}
DECODED = {
    "a": decode_a(MMA["a"], MMA["sfa"], **UE4M3),  # type: ignore[arg-type]
    "b": decode_b(MMA["b"], MMA["sfb"], **UE4M3),  # type: ignore[arg-type]
    "c": MMA["c"],
}
SCALES = np.full((2, 4), 0x38, np.uint8)
ROW_MAJOR = Layout((4, 8), (8, 1))


def functions_of_numerics() -> Iterator[Public]:
    """Everything callable in `fp4ref.numerics`."""
    n = numerics
    for call in (n.gelu, n.relu, n.silu, n.encode_bf16, n.encode_f16, n.encode_e2m1):
        yield _public(call, {"x": (F32, "float32")})
    for call in (n.encode_ue4m3, n.amax_global_scale):
        yield _public(call, {"x": (F32, "float32")})
    yield _public(n.encode_ue8m0, {"x": (F32, "float32"), "rounding": ("rz", "choice")})
    for call in (n.mul_f32, n.add_f32, n.div_f32):
        yield _public(call, {"a": (F32, "float32"), "b": (F32, "float32")})
    yield _public(n.fma_f32, dict.fromkeys("abc", (F32, "float32")))
    for call in (n.decode_e2m1, n.decode_ue4m3, n.decode_ue8m0, n.pack_e2m1):
        yield _public(call, {"codes": (_codes(2, 16), "codes")})
    yield _public(n.unpack_e2m1, {"packed": (_codes(2, 16), "codes")})
    for name, call in (("a", n.decode_a), ("b", n.decode_b)):
        arguments = {
            name: (MMA[name], "codes"),
            f"sf{name}": (MMA[f"sf{name}"], "codes"),
            "scale_format": (ScaleFormat.UE4M3, "choice"),
            "vec_size": (16, "whole"),
        }
        yield _public(call, arguments)
    for call in (n.mma_block_scaled, n.matmul_block_scaled):
        yield Public(call, MMA | UE4M3, MMA_KINDS, {"c": (None,)})
    kinds = {"a": "operand", "b": "operand", "c": "float32"}
    yield Public(n.mma_decoded, DECODED, kinds, {"c": (None,)})
    elements = dict.fromkeys(("a_format", "b_format"), ElementFormat.E4M3)
    elements |= {"a": _codes(2, 32), "b": _codes(3, 32), "c": MMA["c"]}
    kinds = dict.fromkeys(("a_format", "b_format"), "choice")
    kinds |= {"a": "integer codes", "b": "integer codes", "c": "float32"}
    yield Public(n.matmul_unscaled, elements, kinds, {"c": (None,)})
    yield Public(
        n.matmul_mxf8f6f4,
        elements | {"sfa": _codes(2, 1), "sfb": _codes(3, 1)},
        kinds | {"sfa": "codes", "sfb": "codes"},
        {"c": (None,)},
    )
    yield _public(
        n.quantize_blocks,
        {
            "z": (F32, "float32"),
            "norm": (1.0, "number"),
            "scale_format": (ScaleFormat.UE4M3, "choice"),
            "vec_size": (16, "whole"),
            "element_format": ("e2m1", "choice"),
        },
    )
    yield _public(
        n.dequantize_blocks,
        {
            "codes": (_codes(2, 16), "codes"),
            "scales": (_ones(2, 1), "codes"),
            "scale_format": (ScaleFormat.UE4M3, "choice"),
            "dtype": ("float64", "choice"),
            "element_format": ("e2m1", "choice"),
        },
    )


def functions_of_layout() -> Iterator[Public]:
    """Everything callable in `fp4ref.layout`."""
    yield from functions_of_the_algebra()
    yield from functions_of_scales()


def functions_of_the_algebra() -> Iterator[Public]:
    """Layouts, and what makes others of them."""
    la = layout
    for call in (la.coalesce, la.left_inverse, la.right_inverse):
        yield _public(call, {"layout": (ROW_MAJOR, "layout")})
    yield _public(
        la.complement, {"layout": (Layout(4, 2), "layout"), "cotarget": (16, "whole")}
    )
    yield _public(la.composition, {"a": (ROW_MAJOR, "layout"), "b": ((2, 4), "tiler")})
    yield _public(la.make_layout, {"layouts": (ROW_MAJOR, "layout")})
    for call in (
        *(la.logical_divide, la.zipped_divide, la.tiled_divide, la.flat_divide),
    ):
        yield _public(
            call, {"layout": (ROW_MAJOR, "layout"), "tiler": ((2, 4), "tiler")}
        )
    yield Public(
        la.local_tile,
        {"layout": ROW_MAJOR, "tiler": (2, 4), "coord": (1, None)},
        {"layout": "layout", "tiler": "tiler", "coord": "int_tuple"},
        {"coord": ((2, None),)},
    )
    yield Public(
        la.crd2idx,
        {"crd": (1, 2), "shape": (4, 8), "stride": (8, 1)},
        dict.fromkeys(("crd", "shape", "stride"), "int_tuple"),
        {"stride": (None,)},
    )
    yield _public(la.idx2crd, {"idx": (5, "whole"), "shape": ((4, 8), "int_tuple")})
    yield Public(
        la.Layout,
        {"shape": (4, 8), "stride": (8, 1)},
        dict.fromkeys(("shape", "stride"), "int_tuple"),
        {},
    )
    yield _public(
        la.Swizzle,
        {"bits": (3, "whole"), "base": (4, "whole"), "shift": (3, "whole")},
    )
    yield _public(
        la.swizzled_offsets,
        {
            "mode": (SwizzleMode.B128, "whole"),
            "rows": (8, "whole"),
            "row_bytes": (128, "whole"),
        },
    )


def functions_of_scales() -> Iterator[Public]:
    """Where scale factors lie in memory and TMEM."""
    la = layout
    yield _public(
        la.element_scale_layout,
        {"rows": (128, "whole"), "k": (64, "whole"), "sf_vec_size": (16, "whole")},
    )
    for call in (la.padded_shape, la.scale_layout, la.sf_nbytes):
        yield _public(call, {"rows": (130, "whole"), "cols": (5, "whole")})
    scale = {"row": (4, "whole"), "col": (3, "whole"), "num_cols": (4, "whole")}
    yield _public(la.sf_offset, scale)
    for call in (la.sfb_column_shift, la.sfb_start):
        yield _public(call, {"tile_n": (64, "whole"), "n_tile": (1, "whole")})
    yield _public(la.sfb_smem_rows, {"tile_n": (64, "whole")})
    yield Public(la.swizzle_scales, {"scales": SCALES}, {"scales": "codes"}, {})
    yield _public(la.tmem_scale_position, {"row": (3, "whole"), "s": (1, "whole")})
    flat = layout.swizzle_scales(SCALES)
    for call, name in ((la.unswizzle_scales, "flat"), (SwizzledScales, "data")):
        yield _public(
            call, {name: (flat, "codes"), "rows": (2, "whole"), "cols": (4, "whole")}
        )
    yield _public(la.scale_atom, {"crd": ((3, 1), "int_tuple")})
    yield from functions_of_scale_layouts()


def functions_of_scale_layouts() -> Iterator[Public]:
    """Scales in an order that has a name."""
    la = layout
    for call in (la.layout_nbytes, la.scale_offsets):
        yield _public(
            call,
            {
                "rows": (130, "whole"),
                "cols": (5, "whole"),
                "layout": ("8x4", "choice"),
            },
        )
    laid_out = la.LaidOutScales.of(SCALES, "8x4")
    yield _public(
        la.LaidOutScales,
        {
            "data": (laid_out.data, "codes"),
            "rows": (2, "whole"),
            "cols": (4, "whole"),
            "layout": ("8x4", "choice"),
        },
    )


def _public(call: Callable[..., Any], arguments: dict[str, tuple[Any, str]]) -> Public:
    good = {name: value for name, (value, _) in arguments.items()}
    return Public(call, good, {name: kind for name, (_, kind) in arguments.items()}, {})


X = np.linspace(-3, 3, 64, dtype=np.float32).reshape(2, 32)
QA = fp4ref.quantize(X)
RUN = fp4ref.run(QA, QA)
KERNEL = fp4ref.run(QA, QA, backend="ptx")
LATE = fp4ref.run(QA, QA, schedule="late")


def functions_of_fp4ref() -> Iterator[Public]:
    """Everything callable in `fp4ref`, and the two roads of `fp4ref.oracle`."""
    yield from functions_that_plan()
    yield from functions_that_check()
    yield from functions_that_multiply()
    yield from functions_that_make_operands()
    yield Public(
        planned,
        {
            "tile_m": 128,
            "tile_n": 128,
            "tile_k": 256,
            "norm_constant": 1.0,
            "beta": 0.0,
        },
        {
            **dict.fromkeys(("tile_m", "tile_n", "tile_k"), "whole"),
            **dict.fromkeys(("stages", "c_stages", "d_stages", "subtile_n"), "whole"),
            **dict.fromkeys(("accumulator_stages", "clc_stages"), "whole"),
            **dict.fromkeys(("cta_group", "cluster_m", "cluster_n"), "whole"),
            **dict.fromkeys(("k_group", "raster_swizzle", "splits"), "whole"),
            **dict.fromkeys(("norm_constant", "beta"), "number"),
            **dict.fromkeys(
                ("operand_format", "b_format", "loader", "mma_loop"), "choice"
            ),
            **dict.fromkeys(("store", "element_wise", "tmem_load"), "choice"),
            **{"swap_ab": "flag", "fusion": "config"},
            **dict.fromkeys(("reuse_smem_c", "delay_tma_store"), "flag"),
            **dict.fromkeys(("d_format", "sfd_format", "c_format"), "choice"),
            **dict.fromkeys(("activation", "scheduler", "raster"), "choice"),
            **{"bias": "flag", "scale_buffers": "whole"},
            **dict.fromkeys(("staging", "release", "warp_order"), "choice"),
            **dict.fromkeys(("unroll", "epilogue_warps"), "whole"),
            **{"prefetch_tile": "flag"},
        },
        dict.fromkeys(("stages", "c_format", "activation"), (None,))
        | dict.fromkeys(("tile_k", "b_format"), (None,)),
    )


def planned(**asked: Any) -> fp4ref.Plan:
    """Plan what is asked: a configuration by itself takes anything."""
    return fp4ref.plan(fp4ref.GemmConfig.nvfp4(**asked))


planned.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in FIELDS
)


def functions_that_multiply() -> Iterator[Public]:
    """Products and runs, and what is said about them."""
    two = {"a": (QA, "block_scaled"), "b": (QA, "block_scaled")}
    yield _public(fp4ref.matmul, two | {"report": (False, "flag")})
    yield _public(fp4ref.compare, {"a": (RUN, "run"), "b": (RUN, "run")})
    yield _public(fp4ref.certify, {"run": (RUN, "run")})
    yield Public(
        fp4ref.explore,
        {"run": RUN, "ring": "mainloop", "reduction": True, "most_states": 1000},
        {"run": "run", "ring": "choice", "reduction": "flag", "most_states": "whole"},
        {"ring": (None,), "reduction": (True,)},
    )
    accumulators = {"accumulators": (np.zeros((2, 2), np.float32), "float32")}
    yield _public(oracle.bound, two | accumulators)
    optional = dict.fromkeys(("c", "bias", "config", "alpha"), (None,))
    optional["arguments"] = ({}, None)
    config = fp4ref.GemmConfig.nvfp4(c_format="f32", beta=1.0, bias=True)
    good = {
        **{"a": QA, "b": QA, "config": config},
        **{"c": np.zeros((2, 2), np.float32), "bias": np.zeros(2, np.float32)},
        "alpha": 0.5,
        "arguments": {},
    }
    kinds = {
        **{"a": "block_scaled", "b": "block_scaled", "config": "config"},
        **{"c": "float32", "bias": "float32", "alpha": "number"},
        "arguments": "table",
    }
    yield Public(
        oracle.expected,
        good | {"rules": {}},
        kinds | {"rules": "table"},
        optional | {"rules": ({}, {"a": 1}, None)},
    )
    yield Public(
        fp4ref.triage,
        {k: v for k, v in good.items() if k != "arguments"}
        | {"d": np.zeros((2, 2), np.float32), "sfd": None},
        {k: v for k, v in kinds.items() if k != "arguments"}
        | {"d": "float32", "sfd": "codes"},
        optional | {"sfd": (None,), "config": ()},
    )
    more = {"backend": "emulator", "ordering": "ptx", "sms": 1, "tiles": [(0, 0)]}
    yield Public(
        fp4ref.run,
        good | more | {"schedule": "late", "trace": False, "races": "off"},
        kinds
        | dict.fromkeys(("backend", "ordering", "schedule", "races"), "choice")
        | {"sms": "whole", "tiles": "wholes", "trace": "flag"},
        optional | {"schedule": (-1, 0, 3, 10**30), "tiles": (None,)},
    )


def functions_that_check() -> Iterator[Public]:
    """Somebody's kernel: this one ends at once."""
    text = ".version 8.8\n.target sm_100a\n.address_size 64\n.entry k() { ret; }\n"
    lists = {"schedules": ["eager"], "orderings": ["ptx"]}
    yield Public(
        fp4ref.check,
        {"kernel": text, "launch": Launch((1, 1, 1), (32, 1, 1), ())}
        | lists
        | {"steps": 100, "seconds": 60.0, "trace": False},
        {"kernel": "kernel", "launch": "launch", "steps": "whole", "trace": "flag"}
        | dict.fromkeys(lists, "schedules")
        | {"seconds": "number"},
        {"steps": (3, 10**30), "seconds": (1.5, 3, 10**30)},
    )


def functions_that_plan() -> Iterator[Public]:
    """What follows from a configuration, and which one to take."""
    yield Public(
        fp4ref.plan,
        {"config": fp4ref.GemmConfig()},
        {"config": "config"},
        {"config": (None,)},
    )
    sizes = dict.fromkeys(("m", "n", "k", "batches"), "whole")
    yield Public(
        fp4ref.choose,
        dict.fromkeys(sizes, 128) | {"operand_format": "nvfp4"},
        sizes | {"operand_format": "choice"},
        {},
    )


def functions_that_make_operands() -> Iterator[Public]:
    """Block-scaled matrices."""
    yield Public(
        fp4ref.quantize,
        {
            "x": X,
            **{"format": "nvfp4", "recipe": "cutlass", "global_scale": 1.0},
            **{"scale_format": "ue4m3", "global_scale_convention": "encode"},
            **{"nonfinite": "drop", "hadamard_size": 16},
            "random_bits": np.zeros(X.shape, np.uint8),
        },
        {
            "x": "float32",
            **{"format": "choice", "recipe": "choice", "global_scale": "number"},
            **{"scale_format": "choice", "global_scale_convention": "choice"},
            **{"nonfinite": "choice", "hadamard_size": "whole"},
            "random_bits": "codes",
        },
        {
            "global_scale": (None,),
            "scale_format": (None,),
            **dict.fromkeys(("nonfinite", "hadamard_size", "random_bits"), (None,)),
            "x": (FLOATS[2], FLOATS[3]),
        },
    )
    yield Public(
        fp4ref.BlockScaled,
        {
            **{"codes": QA.codes, "scales": QA.scales, "format": "nvfp4"},
            **{"scale_format": "ue4m3", "global_scale": 2.0},
        },
        {
            **{"codes": "codes", "scales": "scales", "format": "choice"},
            **{"scale_format": "choice", "global_scale": "number"},
        },
        {"global_scale": (None,), "scale_format": (None,)},
    )
    yield Public(
        fp4ref.BlockScaled.from_packed,
        {
            **{"packed": QA.packed(), "scales": QA.scales, "format": "nvfp4"},
            **{"scale_format": "ue4m3", "global_scale": 2.0},
            **{"global_scale_convention": "encode", "nibble_order": "low_first"},
        },
        {
            **{"packed": "codes", "scales": "scales", "format": "choice"},
            **{"scale_format": "choice", "global_scale": "number"},
            **{"global_scale_convention": "choice", "nibble_order": "choice"},
        },
        {"global_scale": (None,), "scale_format": (None,)},
    )


def functions_of_viz() -> Iterator[Public]:
    """Everything callable in `fp4ref.viz`."""
    yield _public(viz.fault, {"error": (fp4ref_fault(), "fault")})
    codes = {"a": _codes(64), "b": _codes(64), "sfa": _ones(4), "sfb": _ones(4)}
    yield Public(
        viz.microscope,
        codes | {"c": 0.0},
        dict.fromkeys(codes, "few codes") | {"c": "number"},
        {},
    )
    yield Public(
        viz.play,
        {
            **{"run": RUN, "kernel": KERNEL, "view": "timeline"},
            **{"views": ["timeline", "tmem"], "step": 3, "sms": [0], "tiles": 1},
            **{"pace": "milestones", "schedules": [LATE]},
        },
        {
            **{"run": "run", "kernel": "run", "view": "choice", "views": "names"},
            "schedules": "runs",
            **{"step": "whole", "sms": "wholes", "tiles": "whole", "pace": "choice"},
        },
        {"kernel": (None,)},
    )
    yield Public(
        viz.quantiser,
        {
            **{"values": F32[0], "recipe": "cutlass", "global_scale": 1.0},
            **{"largest": 8.0, "view": "recipes"},
        },
        {
            **{"values": "numbers", "recipe": "choice", "global_scale": "number"},
            **{"largest": "number", "view": "choice"},
        },
        {"values": (None,), "largest": (None,)},
    )
    yield _public(viz.scale_journey, {"rows": (128, "whole"), "k": (256, "whole")})
    yield _public(viz.swizzle, {"mode": ("128B", "choice")})


def fp4ref_fault() -> Exception:
    """A fault of the machine."""
    from fp4ref.errors import MisalignedAddress

    return MisalignedAddress("address 3", rule="multiples of 16")


RESULTS = {
    *("Comparison", "Plan", "Run", "Trace", "ScaleFormat", "doctor", "oracle"),
    "GemmConfig",  # it only asks; `planned` stands for it
    *("ElementFormat", "Operand", "SwizzleMode", "TmemScalePosition", "Player"),
    *("RaggedScales", "PANEL_NBYTES"),
}
"""What a function gives back, what takes no argument, enumerations, constants."""

PUBLIC = [
    *functions_of_numerics(),
    *functions_of_layout(),
    *functions_of_fp4ref(),
    *functions_of_viz(),
]


def name_of(public: Public) -> str:
    """The name that a failing test shows."""
    return getattr(public.call, "__qualname__", repr(public.call))


def parameters(public: Public) -> set[str]:
    """Names of its parameters."""
    return set(inspect.signature(public.call).parameters)
