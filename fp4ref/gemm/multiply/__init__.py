"""multiply: how a stage becomes products: the copies of its scales, and the MMAs."""
