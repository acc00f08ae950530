"""banks: passes of shared memory's banks, as a Hopper card counts them."""
