"""timing: cycles of barriers and copies on a Hopper card; the kernel without MMAs."""
