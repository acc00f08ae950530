"""frames: the index of the 91 frames."""
