"""faults: the gallery of mistakes that kernels make.

`gallery` reads the rows and finds one by name; `change` makes one line of the emulator,
the kernel or a program wrong; `program` runs a small program; `outcome` runs a mistake
or its clean twin and says what catches it; `place` finds the statement that a fault
names.
"""

from fp4ref.evidence.faults.gallery import GALLERY, Caught, Fault, Form, fault
from fp4ref.evidence.faults.outcome import Outcome, disagreement, run_fault, run_twin

__all__ = [
    "GALLERY",
    "Caught",
    "Fault",
    "Form",
    "Outcome",
    "disagreement",
    "fault",
    "run_fault",
    "run_twin",
]
