"""numerics: what the bits mean.

`elements` is the table of formats and `formats` has the conversions of PTX; `quantize`
makes blocks of codes, and `dot` multiplies them as the tensor core does. `dot_unscaled`
does so for the formats without block scales, `dot_mxf8f6f4` for those with one scale
for 32 elements. `arithmetic` and `activation` are the float32 operations of the
epilogue.
Nothing here imports Numba before the first product.
"""

from fp4ref.numerics.activation import gelu, relu, silu
from fp4ref.numerics.arithmetic import add_f32, div_f32, fma_f32, mul_f32
from fp4ref.numerics.decoded_operands import Operand, decode_a, decode_b
from fp4ref.numerics.dot import (
    matmul_block_scaled,
    mma_block_scaled,
    mma_decoded,
)
from fp4ref.numerics.dot_mxf8f6f4 import matmul_mxf8f6f4
from fp4ref.numerics.dot_unscaled import matmul_unscaled
from fp4ref.numerics.elements import ElementFormat, ScaleFormat
from fp4ref.numerics.formats import (
    decode_e2m1,
    decode_ue4m3,
    decode_ue8m0,
    encode_bf16,
    encode_e2m1,
    encode_f16,
    encode_ue4m3,
    encode_ue8m0,
    pack_e2m1,
    unpack_e2m1,
)
from fp4ref.numerics.quantize import (
    amax_global_scale,
    dequantize_blocks,
    quantize_blocks,
)

__all__ = [
    "ElementFormat",
    "Operand",
    "ScaleFormat",
    "add_f32",
    "amax_global_scale",
    "decode_a",
    "decode_b",
    "decode_e2m1",
    "decode_ue4m3",
    "decode_ue8m0",
    "dequantize_blocks",
    "div_f32",
    "encode_bf16",
    "encode_e2m1",
    "encode_f16",
    "encode_ue4m3",
    "encode_ue8m0",
    "fma_f32",
    "gelu",
    "matmul_block_scaled",
    "matmul_mxf8f6f4",
    "matmul_unscaled",
    "mma_block_scaled",
    "mma_decoded",
    "mul_f32",
    "pack_e2m1",
    "quantize_blocks",
    "relu",
    "silu",
    "unpack_e2m1",
]
