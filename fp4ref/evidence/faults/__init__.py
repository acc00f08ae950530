"""faults: the gallery of mistakes that kernels make.

`gallery` reads the rows and finds one by name; `change` makes one line of the emulator,
the kernel or a program wrong; `operands` makes A and B of a GEMM, and `formulas` its
tree; `small_program` runs a small kernel; `catch` runs a mistake or its clean twin and
says what catches it; `place` finds the statement that a fault names; `kinds`, `reports`
and `riddles` are for those who look at the gallery.
"""

from fp4ref.evidence.faults.catch import Catch, disagreement, run_fault, run_twin
from fp4ref.evidence.faults.gallery import GALLERY, Caught, Fault, Form, fault

__all__ = [
    "GALLERY",
    "Caught",
    "Fault",
    "Form",
    "Catch",
    "disagreement",
    "fault",
    "run_fault",
    "run_twin",
]
