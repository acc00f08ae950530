"""load: how a stage is filled, and in which order the load warps start."""
