"""float_pairs: ``add``, ``sub``, ``mul`` and ``fma`` of two float32 in 64 bits.

Each half is the scalar operation. Source: PTX, add, sub, mul and fma ``.f32x2``.
"""

from __future__ import annotations

import numpy as np

from fp4ref.ptx.instructions.elementwise import elementwise
from fp4ref.ptx.instructions.floating import nearest
from fp4ref.ptx.instructions.rounded import directed
from fp4ref.ptx.run.registry import Action, Form, instruction
from fp4ref.ptx.run.state import Lanes, LaunchContext
from fp4ref.ptx.text.syntax import Instruction

_DIRECTED = ".(?P<way>rz|rm|rp)(?P<ftz>.ftz)?"


@instruction("add", "sub", "mul", form="(.rn)?(?P<ftz>.ftz)?.f32x2", operands=3)
@instruction("fma.rn", form="(?P<ftz>.ftz)?.f32x2", operands=4)
@instruction("add", "sub", "mul", form=f"{_DIRECTED}.f32x2", operands=3)
@instruction("fma", form=f"{_DIRECTED}.f32x2", operands=4)
def arithmetic(context: LaunchContext, each: Instruction, form: Form) -> Action:
    """Build an operation on both halves."""
    function = directed(form) if form.get("way") else nearest(form)

    def both(*sources: Lanes) -> Lanes:
        # A pair is two neighbours in memory, the lower half first.
        halves = (np.ascontiguousarray(x).view(np.float32) for x in sources)
        return function(*halves).view(np.uint64)

    return elementwise(context, each, both, "b64")
