"""run: a warp's registers and operands, memory, and who translates what."""
