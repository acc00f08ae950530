"""triage: a wrong D beside its inputs, and the usual mistake that explains it.

`case` checks the inputs, `overview` says where D differs, and `search` tries the
`mistakes` of the list: a `Reading` of what a kernel does, changed by one or two of
them, is held against the dump.
"""

from fp4ref.evidence.triage.mistakes import MISTAKES
from fp4ref.evidence.triage.report import Explained, Named, Triage, UnlikeD
from fp4ref.evidence.triage.triage import triage

__all__ = ["MISTAKES", "Explained", "Named", "Triage", "UnlikeD", "triage"]
