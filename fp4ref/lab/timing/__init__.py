"""timing: what a timed trace says, and what its times would be on another machine.

`graph` finds what every event of a trace comes after, `replay` its times by any
durations, `paths` the critical path and who waits for what, `what_if` a thousand
machines at once::

    trace = fp4ref.run(a, b, schedule="timed").trace
    replay = Replay(Graph(trace))
    replay.end                                # clocks of the whole run
    Replay(Graph(trace), durations).end       # on another machine, in the same order
    critical_path(replay), stalls(replay)
"""
