"""lesson_11: exercises on what a checkpoint stores."""

from __future__ import annotations

import numpy as np

from fp4ref.lessons.exercise import exercise
from fp4ref.lessons.made_up_checkpoint import weights
from fp4ref.numerics import decode_e2m1
from fp4ref.tensors.quantize import quantize


@exercise(
    "11.1",
    title="Bytes of a layer in NVFP4",
    hints=(
        "Two codes lie in a byte.",
        "Every 16 elements of a row have a scale of one byte.",
        "There is one float32 for the whole layer.",
    ),
    why=(
        "Half a byte for each element, a byte for 16 of them, and one float32 for the "
        "whole layer."
    ),
    # No global scale; a code a byte; scales for 32; two bytes a scale; no scales.
    wrong=(9_437_184, 17_825_796, 8_912_900, 10_485_764, 8_388_608),
)
def layer_nbytes() -> int:
    """Count the bytes of a small layer, and take 256 x 16 as many."""
    q = quantize(weights(256, 0), recipe="modelopt", global_scale="auto")
    rows, columns = q.shape
    times = 4096 // rows * (4096 // columns)
    return (q.packed().nbytes + q.scales.nbytes) * times + np.float32(0).nbytes


def _stored(amax: float, tensor: str) -> float:
    decode = amax / 2688
    return decode if tensor == "weight_scale_2" else 1 / decode


@exercise(
    "11.2",
    title="A multiplier or a divisor",
    frames=("7.7",),
    hints=(
        "The largest value shall have the largest scale, 448, and the largest code, 6.",
        "One convention stores what the decoded values are multiplied by.",
        "weight_scale_2 is amax / (448 * 6); the other is its inverse.",
    ),
    # The two exchanged; always the multiplier; 448 alone; 6 alone.
    wrong=(
        lambda amax, tensor: 1 / _stored(amax, tensor),
        lambda amax, tensor: amax / 2688,
        lambda amax, tensor: 6 * _stored(amax, tensor),
        lambda amax, tensor: _stored(448 * amax, tensor),
    ),
    cases=lambda: [
        (amax, tensor)
        for amax in (2688.0, 42.0, 10.5)
        for tensor in ("weight_scale_2", "weight_global_scale")
    ],
)
def global_scale(amax: float, tensor: str) -> float:
    """Quantise one value by the library whose tensor it is, and ask for its scale."""
    q = quantize(np.full((1, 16), amax, np.float32), "nvfp4", global_scale="auto")
    assert q.global_scale is not None
    return 1 / q.global_scale if tensor == "weight_scale_2" else q.global_scale


@exercise(
    "11.3",
    title="A tie that one of them sees",
    frames=("7.7",),
    hints=(
        "4.6875 / 1.875 is 2.5, halfway between 2 and 3.",
        "A tie goes to the even code; 2 has code 4, 3 has code 5.",
        "CUTLASS multiplies by 1 / 1.875 in float32, which is a little too much.",
    ),
    # Both see the tie; neither; exchanged; codes in place of values.
    wrong=([2.0, 2.0], [3.0, 3.0], [2.0, 3.0], [5, 4]),
)
def codes_of_a_tie() -> list[float]:
    """Quantise the block by both."""
    x = np.zeros((1, 16), np.float32)
    x[0, :2] = 11.25, 4.6875
    found = [quantize(x, recipe=name) for name in ("cutlass", "modelopt")]
    return [float(decode_e2m1(q.codes)[0, 1]) for q in found]
