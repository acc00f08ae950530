"""tiles: which output tile next; each tile scheduler is one file."""
