"""Parts 1, 3 and 4. config: tile shapes, stage counts and the maps of SMEM and TMEM.

Everything is computed from the real budget: 232,448 bytes of shared memory and 512 TMEM
columns. What does not fit is refused with the rule. Source of the budget formula:
CUTLASS ``sm100_blockscaled_umma_builder.inl`` and ``sm100_pipeline_carveout.inl``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Literal

import numpy as np

from fp4ref.errors import ConfigError
from fp4ref.hardware.mma_operands import SF_ROWS
from fp4ref.hardware.shared_memory import NBYTES as SMEM_NBYTES
from fp4ref.hardware.smem import SmemDescriptor
from fp4ref.hardware.tcgen05 import CP_NBYTES, MMA_K, InstrDescriptor
from fp4ref.hardware.tensor_map import DataType
from fp4ref.hardware.tmem import COLUMNS
from fp4ref.layout import SwizzleMode
from fp4ref.numerics import ScaleFormat

TILE_M = 128
TILE_K = 256
SF_VEC_SIZE = 16
SUBTILE_N = 32
"""Columns of D that the epilogue handles at a time."""

K_BLOCKS = TILE_K // MMA_K
SF_COLUMNS = 4
"""TMEM columns of the scales of 128 rows and one K=64 block."""

WARP_THREADS = 32
EPILOGUE_WARPS = 4
EPILOGUE_THREADS = EPILOGUE_WARPS * WARP_THREADS
CTA_WARPS = 8
CTA_THREADS = CTA_WARPS * WARP_THREADS

CARVEOUT_NBYTES = 160
"""Barriers, CLC responses and TMEM pointer in CUTLASS's budget formula."""

STAGE_BARRIER_NBYTES = 128
"""A stage's two barriers in the budget formula of CUTLASS 4.2.2 and later, which rounds
them up. 4.2.0 and 4.2.1 take their 16 bytes: 36,880 for a stage of 128 x 128 x 256, not
36,992."""


class WarpRole(Enum):
    """CUTLASS's ``WarpCategory``: which warp does what."""

    MMA = 0
    SCHEDULER = 1
    MAINLOOP_LOAD = 2
    EPILOGUE_LOAD = 3
    EPILOGUE = 4


class NamedBarrierId(Enum):
    """Ids of the CTA's named barriers; 0 is ``__syncthreads``."""

    CTA = 0
    EPILOGUE = 1
    TMEM_ALLOCATION = 6


Format = Literal["f32", "bf16", "f16", "nvfp4"]
Activation = Literal["relu", "gelu", "silu"]

_DATA_TYPE: dict[str, DataType] = {
    "f32": DataType.FLOAT32,
    "bf16": DataType.BFLOAT16,
    "f16": DataType.FLOAT16,
    "nvfp4": DataType.U4_ALIGN8B,
}
_SWIZZLE: dict[int, SwizzleMode] = {
    128: SwizzleMode.B128,
    64: SwizzleMode.B64,
    16: SwizzleMode.NONE,
}
"""Swizzle of an epilogue subtile by the bytes of its row."""


_GAPS = {
    "tile_n": "gemm-tile",
    "d_format": "gemm-output",
    "c_format": "gemm-output",
    "activation": "gemm-activation",
    "scheduler": "gemm-scheduler",
    "raster": "gemm-scheduler",
}
"""Choices that other kernels have more of, and their rows in the list of gaps."""


@dataclass(frozen=True)
class GemmConfig:
    """What is compiled into the kernel.

    Parameters
    ----------
    tile_n
        Columns of the CTA tile: 64 or 128. Rows are 128, K is 256.
    d_format
        Output elements; ``"nvfp4"`` adds block scales SFD.
    sfd_format, norm_constant
        Scale type of SFD, and the constant of the CUTLASS recipe.
    c_format
        Elements of C; None when the kernel has no C.
    alpha
        None takes ``1 / (global scale of A * global scale of B)``.
    beta
        0 means that C is not read.
    bias
        Whether a float32 vector of length N is added.
    scheduler
        ``"clc"`` or ``"static"``.
    raster
        Which dimension of the tile grid runs fastest.
    stages
        Mainloop stages; None takes as many as fit.
    scale_buffers
        Sets of scale columns in TMEM. 2 stays inside the PTX text; 1 is what CUTLASS
        does and needs ``ordering="shipped"``.

    Raises
    ------
    ConfigError
        The machine cannot run it; the message has the rule.
    """

    tile_n: int = 128
    d_format: Format = "f32"
    sfd_format: ScaleFormat = ScaleFormat.UE4M3
    norm_constant: float = 1.0
    c_format: Literal["f32", "bf16", "f16"] | None = None
    alpha: float | None = None
    beta: float = 0.0
    bias: bool = False
    activation: Activation | None = None
    scheduler: Literal["clc", "static"] = "clc"
    raster: Literal["m", "n"] = "m"
    stages: int | None = None
    c_stages: int = 2
    d_stages: int = 2
    accumulator_stages: int = 2
    clc_stages: int = 2
    scale_buffers: int = 2

    @classmethod
    def example_72b(cls, **changes: Any) -> GemmConfig:
        """Configuration of CUTLASS example 72b: the default GEMM of the frame index.

        f32 C with beta 0, D = E2M1 with UE8M0 SFD and norm constant 2. C keeps its
        four stages of shared memory, which leaves four mainloop stages, as in CUTLASS,
        where D lies in C's memory; here D has two stages of its own. The raster
        runs along M, as in the document; 72b's own heuristic takes N on square
        problems.
        """
        settings: dict[str, Any] = {
            "d_format": "nvfp4",
            "sfd_format": ScaleFormat.UE8M0,
            "norm_constant": 2.0,
            "c_format": "f32",
            "c_stages": 4,
            "alpha": 1.0,
        }
        return cls(**settings | changes)

    def __post_init__(self) -> None:
        choices: list[tuple[str, object, tuple[object, ...]]] = [
            ("tile_n", self.tile_n, (64, 128)),
            ("d_format", self.d_format, tuple(_DATA_TYPE)),
            ("c_format", self.c_format, (None, "f32", "bf16", "f16")),
            ("activation", self.activation, (None, "relu", "gelu", "silu")),
            ("scheduler", self.scheduler, ("clc", "static")),
            ("raster", self.raster, ("m", "n")),
            ("scale_buffers", self.scale_buffers, (1, 2)),
            ("bias", self.bias, (False, True)),
        ]
        if not isinstance(self.sfd_format, ScaleFormat):
            raise ConfigError("sfd_format is ScaleFormat.UE4M3 or ScaleFormat.UE8M0")
        for name, value, legal in choices:
            if type(value) not in {type(v) for v in legal} or value not in legal:
                words = ", ".join(str(v) for v in legal)
                raise ConfigError(
                    f"{name}={value!r}: this kernel takes one of {words}",
                    gap=_GAPS.get(name, ""),
                )
        self._check_stages()
        self._check_numbers()
        if self.beta != 0 and self.c_format is None:
            raise ConfigError(
                f"beta={self.beta} without C; set c_format, or leave beta at 0"
            )
        if self.accumulator_stages * self.tile_n > COLUMNS:
            raise ConfigError(
                f"accumulator_stages={self.accumulator_stages}: accumulators of tile_n="
                f"{self.tile_n} columns need more than the {COLUMNS} TMEM columns. Use "
                "fewer"
            )
        tmem = self.tmem
        if tmem.end > COLUMNS:
            raise ConfigError(
                f"accumulator_stages={self.accumulator_stages} of tile_n={self.tile_n} "
                f"columns and scale_buffers={self.scale_buffers} need {tmem.end} TMEM "
                f"columns of {COLUMNS}. Use fewer accumulator stages"
            )
        if self.most_stages < 2:
            raise ConfigError(
                f"c_stages={self.c_stages}, d_stages={self.d_stages}: an epilogue of "
                f"{self.epilogue_nbytes} bytes leaves room for "
                f"{max(self.most_stages, 0)} mainloop stages, and the ring needs 2. "
                "Use fewer C and D stages"
            )
        if self.mainloop_stages < 2:
            raise ConfigError(
                f"stages={self.stages}: the ring needs at least 2; "
                f"{self.most_stages} fit"
            )
        if self.smem.end > SMEM_NBYTES:
            counts = ("c_stages", "d_stages", "accumulator_stages", "clc_stages")
            others = ", ".join(f"{name}={getattr(self, name)}" for name in counts)
            raise ConfigError(
                f"stages={self.mainloop_stages} of {self.stage_nbytes} bytes and an "
                f"epilogue of {self.epilogue_nbytes} bytes ({others}) end at "
                f"{self.smem.end}; a CTA has {SMEM_NBYTES} bytes. At most "
                f"{self.most_stages} stages fit"
            )

    def _check_stages(self) -> None:
        """Raise `ConfigError` unless every stage count is a positive integer."""
        counts = ["c_stages", "d_stages", "accumulator_stages", "clc_stages"]
        if self.stages is not None:
            counts.append("stages")
        for name in counts:
            value = getattr(self, name)
            if type(value) is not int or (value < 1 and name != "stages"):
                raise ConfigError(f"{name}={value!r}: an integer of at least 1")

    def _check_numbers(self) -> None:
        """Raise `ConfigError` unless the constants are finite in float32."""
        given = {"norm_constant": self.norm_constant, "beta": self.beta}
        if self.alpha is not None:
            given["alpha"] = self.alpha
        for name, value in given.items():
            real = isinstance(value, int | float | np.floating | np.integer)
            with np.errstate(over="ignore"):
                if not real or not np.isfinite(np.float32(value)):
                    raise ConfigError(
                        f"{name}={value!r}: a number that is finite in float32"
                    )
        if not np.float32(self.norm_constant) > 0:
            raise ConfigError(
                f"norm_constant={self.norm_constant}: a positive number is needed"
            )

    @property
    def loads_c(self) -> bool:
        """Whether C is read: it exists and beta is not 0."""
        return self.c_format is not None and self.beta != 0

    @property
    def sf_rows_b(self) -> int:
        """Rows of SFB in a stage: whole blocks of 128 rows."""
        return -(-self.tile_n // 128) * 128

    @property
    def a_nbytes(self) -> int:
        """A of one stage, packed E2M1."""
        return TILE_M * TILE_K // 2

    @property
    def b_nbytes(self) -> int:
        """B of one stage, packed E2M1."""
        return self.tile_n * TILE_K // 2

    @property
    def sfa_nbytes(self) -> int:
        """SFA of one stage: one scale for each row and 16 elements."""
        return TILE_M * TILE_K // SF_VEC_SIZE

    @property
    def sfb_nbytes(self) -> int:
        """SFB of one stage."""
        return self.sf_rows_b * TILE_K // SF_VEC_SIZE

    @property
    def stage_tx_bytes(self) -> int:
        """Bytes that a stage's four loads credit to its full barrier. Frame 5.4.8."""
        return self.a_nbytes + self.b_nbytes + self.sfa_nbytes + self.sfb_nbytes

    @property
    def stage_nbytes(self) -> int:
        """A stage in CUTLASS 4.2.2's budget formula: its data and its barriers."""
        return self.stage_tx_bytes + STAGE_BARRIER_NBYTES

    @property
    def c_subtile_nbytes(self) -> int:
        """One C stage: 128 x 32 elements."""
        return TILE_M * SUBTILE_N * self.c_type.bits // 8 if self.c_format else 0

    @property
    def d_subtile_nbytes(self) -> int:
        """One D stage: 128 x 32 elements."""
        return TILE_M * SUBTILE_N * self.d_type.bits // 8

    @property
    def epilogue_nbytes(self) -> int:
        """Shared memory of the C and D stages, which are apart in this kernel."""
        return (
            self.c_stages * self.c_subtile_nbytes
            + self.d_stages * self.d_subtile_nbytes
        )

    @property
    def most_stages(self) -> int:
        """Mainloop stages that fit. Frame 1.1.

        This kernel keeps D apart from C. CUTLASS lets D reuse C's memory, so that its
        epilogue is smaller: for example 72b 67,584 bytes instead of 69,632, and four
        stages beside either; for bf16 C and D, with four C stages, 33,792 instead of
        49,152, and five stages where this kernel has four.
        """
        free = SMEM_NBYTES - CARVEOUT_NBYTES - self.epilogue_nbytes
        return free // self.stage_nbytes

    @property
    def mainloop_stages(self) -> int:
        """Mainloop stages in use."""
        return self.most_stages if self.stages is None else self.stages

    @property
    def c_type(self) -> DataType:
        """TMA element type of C."""
        return _DATA_TYPE[self.c_format or "f32"]

    @property
    def d_type(self) -> DataType:
        """TMA element type of D."""
        return _DATA_TYPE[self.d_format]

    @staticmethod
    def subtile_swizzle(data_type: DataType) -> SwizzleMode:
        """Swizzle of a 128 x 32 subtile in shared memory."""
        return _SWIZZLE[SUBTILE_N * data_type.bits // 8]

    @property
    def subtiles(self) -> int:
        """Epilogue subtiles of a tile."""
        return self.tile_n // SUBTILE_N

    @property
    def clc_consumers(self) -> int:
        """Threads that read each CLC answer. Frame 1.10.

        Scheduler, load, MMA and four epilogue warps; the epilogue load warp if it
        works.
        """
        warps = 3 + EPILOGUE_WARPS + self.loads_c
        return warps * WARP_THREADS

    @cached_property
    def smem(self) -> SmemMap:
        """Offsets in shared memory."""
        return SmemMap.of(self)

    @cached_property
    def tmem(self) -> TmemMap:
        """Columns in TMEM."""
        return TmemMap.of(self)

    def idesc(self, scale_format: ScaleFormat) -> int:
        """Instruction descriptor of the tile's MMA."""
        return InstrDescriptor(TILE_M, self.tile_n, scale_format).encode()


@dataclass(frozen=True, slots=True)
class SmemMap:
    """Byte offsets from the CTA's shared base. Barriers first, then 1024-aligned tiles.

    The barrier part is in CUTLASS's order. Each ring has its full barriers, then its
    empty ones.
    """

    mainloop_full: int
    mainloop_empty: int
    c_full: int
    c_empty: int
    load_order: int
    clc_full: int
    clc_empty: int
    accumulator_full: int
    accumulator_empty: int
    throttle_full: int
    throttle_empty: int
    clc_response: int
    tmem_pointer: int
    d: int
    c: int
    a: int
    b: int
    sfa: int
    sfb: int
    end: int

    @classmethod
    def of(cls, config: GemmConfig) -> SmemMap:
        """Lay out the parts one after another."""
        at = 0
        offsets: dict[str, int] = {}

        def place(name: str, nbytes: int, alignment: int = 8) -> None:
            nonlocal at
            at = -(-at // alignment) * alignment
            offsets[name] = at
            at += nbytes

        rings = [
            ("mainloop", config.mainloop_stages),
            ("c", config.c_stages),
            ("load_order", 0),
            ("clc", config.clc_stages),
            ("accumulator", config.accumulator_stages),
            ("throttle", config.clc_stages),
        ]
        for name, stages in rings:
            if name == "load_order":
                place(name, 8)
                continue
            place(f"{name}_full", 8 * stages)
            place(f"{name}_empty", 8 * stages)
        place("clc_response", 16 * config.clc_stages, 16)
        place("tmem_pointer", 4)
        stages = config.mainloop_stages
        place("d", config.d_stages * config.d_subtile_nbytes, 1024)
        place("c", config.c_stages * config.c_subtile_nbytes, 1024)
        place("a", stages * config.a_nbytes, 1024)
        place("b", stages * config.b_nbytes, 1024)
        place("sfa", stages * config.sfa_nbytes, 128)
        place("sfb", stages * config.sfb_nbytes, 128)
        return cls(**offsets, end=at)


@dataclass(frozen=True, slots=True)
class TmemMap:
    """Columns of the accumulators and of the scale buffers. Frames 4.3 and 4.4."""

    accumulators: tuple[int, ...]
    sfa: tuple[int, ...]
    sfb: tuple[int, ...]
    end: int

    @classmethod
    def of(cls, config: GemmConfig) -> TmemMap:
        """Accumulators from column 0, then (SFA, SFB) for each buffer."""
        n = config.tile_n
        at = config.accumulator_stages * n
        sfa, sfb = [], []
        for _ in range(config.scale_buffers):
            sfa.append(at)
            at += K_BLOCKS * TILE_M // SF_ROWS
            sfb.append(at)
            at += K_BLOCKS * config.sf_rows_b // SF_ROWS
        accumulators = tuple(i * n for i in range(config.accumulator_stages))
        return cls(accumulators, tuple(sfa), tuple(sfb), at)


def operand_descriptor(address: int) -> int:
    """Matrix descriptor of an A or B stage: K-major, 128-byte swizzle.

    The leading offset has no meaning here; CUTLASS writes 1 (16 bytes).
    """
    return SmemDescriptor(address, 16, 1024, SwizzleMode.B128).encode()


def scale_descriptor(address: int) -> int:
    """Matrix descriptor of a scale atom for ``tcgen05.cp``: rows of 16 bytes."""
    return SmemDescriptor(address, 16, 128, SwizzleMode.NONE).encode()


K_BLOCK_STEP = MMA_K // 2 >> 4
"""Added to an operand descriptor for each K=64 block: 32 bytes."""

SF_BLOCK_STEP = CP_NBYTES >> 4
"""Added to a scale descriptor for each K=64 block: 512 bytes."""
