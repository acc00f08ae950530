"""tensors: block-scaled tensors, and their product outside the kernel.

`block_format` says what goes together, `block_scaled` holds a matrix, `quantize` makes
one, `losses` warns of what that loses, and `product` multiplies two.
"""
