"""traced: document 003's kernel as its own trace has it, tile after tile.

`recorded` traces the kernel in the emulator and keeps one steady tile, `tile` cuts it
out, `changes` has what the document's kernels do otherwise, `events` works off many
tiles by any durations, and `steady` counts the cycles that the document gives::

    steps = restarts(recorded.tile("baseline"))
    steady(steps, Durations.of(), Options())["K-loop"]
"""
