"""timing: a clock for the machine, the schedule ``"timed"``.

The units do what they always do and in an order that is allowed anyway, so the bits are
those of every other schedule; only the order, and two times in each event, come from
here. `durations` are the numbers, `work` the rules, `l2` what a load finds in cache,
`clock` the simulation.

How to use it::

    run = fp4ref.run(a, b, schedule="timed")     # published values
    event = run.trace.events[100]
    event.start, event.end                       # clocks from the first instruction

    slow = Durations.of(corner=Corner.SLOW)      # or .of().changed(mbarrier_wake=54)
    fp4ref.run(a, b, schedule=slow)              # or Machine(sms, Timed(slow))

`event.start` and `event.end` of a landing are when all that it takes had begun on it,
and when it landed; it is in flight from the end of its issue,
``trace.events[event.issued].end``. Of a wait they are when it began and when the warp
went on. ``trace.meta["timing"]`` has the numbers with which the trace was made;
`Durations.from_dict` reads them. Times are no multiple of anything, and events are in
the order of time but for the operations that a warp does between two waits.

None of it was measured by this project, and a row of the parameters whose source begins
with "not published" is an assumption.
"""

from fp4ref.hardware.timing.clock import Timed
from fp4ref.hardware.timing.durations import Durations

__all__ = ["Durations", "Timed"]
