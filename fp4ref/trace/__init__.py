"""trace: what every unit did, in order, and the memory at any step.

An `Event` names who did what: operands, bytes read and written, barrier change, frame
and source line. `events` has the records, `recorded` the trace and its memory,
`recorded_plan` what its kernel was planned to be, `recorded_result` what its epilogue
left beside D, `file` the form on disk, `recorder`
makes one while a machine runs, `timeline` shows what is in flight, and `perfetto` is
the form of another program. A saved trace needs only this room to be read.
"""

from fp4ref.trace.events import Barrier, Bytes, Dim3, Event, Kind, Range
from fp4ref.trace.recorded import FILE_SUFFIX, State, Trace
from fp4ref.trace.recorded_plan import RecordedPlan
from fp4ref.trace.recorded_result import RecordedResult
from fp4ref.trace.recorder import Recorder

__all__ = [
    "FILE_SUFFIX",
    "Barrier",
    "Bytes",
    "Dim3",
    "Event",
    "Kind",
    "Range",
    "RecordedPlan",
    "RecordedResult",
    "Recorder",
    "State",
    "Trace",
]
