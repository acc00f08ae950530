"""emulated: the forms on the executor."""

from __future__ import annotations

from fp4ref.device.launch import parameter_block
from fp4ref.errors import NotModelled
from fp4ref.hardware.machine import Machine
from fp4ref.ptx import Program, launch, parse
from fp4ref.ptx.run.loader import load
from fp4ref.ptx.run.registry import translate
from fp4ref.trace import Bytes
from probes.forms.catalogue import Form
from probes.forms.inputs import BLOCK
from probes.forms.memory_shapes import PARAM_NBYTES

_MOST_PARAM_NBYTES = PARAM_NBYTES + 128


def accepts(form: Form) -> bool:
    """Return whether the executor translates every instruction of a form's kernel."""
    program = Program.of(parse(form.text()), "form")
    block = bytes(_MOST_PARAM_NBYTES)
    try:
        translate(load(Machine(sms=1), program, block, (BLOCK, 1, 1)))
    except NotModelled:
        return False
    return True


def run(form: Form) -> dict[str, Bytes]:
    """Execute a form over all inputs; return its outputs by name."""
    call = form.call()
    machine = Machine(sms=form.shape.cluster)
    addresses = {n: machine.gmem.upload(n, d) for n, d in call.buffers.items()}
    block = parameter_block(call.params, addresses.__getitem__, lambda m, at: b"")
    program = Program.of(parse(form.text()), call.entry)
    launch(machine, program, call.grid, call.block, block.data, cluster=call.cluster)
    return {
        name: machine.gmem.contents(addresses[name], call.buffers[name].size)
        for name in form.buffers
    }
