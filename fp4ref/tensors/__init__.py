"""tensors: block-scaled tensors, and their product outside the kernel.

`block_format` says what goes together, `block_scaled` holds a matrix, `quantize` makes
one by a recipe of `recipes`, `global_scales` one with a global scale for each part,
`losses` warns of what that loses, and `product` multiplies two. `checkpoint` reads
weights from disk, and `layer_error` compares the recipes on them.
"""
