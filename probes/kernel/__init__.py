"""kernel: the whole kernel on the soft tensor core: mistakes, flipped bits, a race."""
