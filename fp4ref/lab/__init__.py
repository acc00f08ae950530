"""lab: why a kernel has the speed it has, without a B200.

`parameters` are published figures, each with its range; `workload` is what a kernel
does, `bounds` the shortest time in which a machine of these figures can do it. `banks`
counts how many passes an access to shared memory takes. Nothing here was measured on a
B200: a figure is *documented*, or of a *model* and then a band between both ends of
every published range.
"""
