"""epilogue: an accumulator becomes a tile of D: load, visit the formula, store."""
