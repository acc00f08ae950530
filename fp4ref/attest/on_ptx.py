"""on_ptx: a rung's compiled PTX on the emulated machine."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fp4ref.attest.question import Question
from fp4ref.cuda_kernel.build import ARCH, SOFT_ARCH
from fp4ref.device.compile import compile_cuda
from fp4ref.device.launch import MapOf, parameter_block
from fp4ref.hardware.machine import Machine
from fp4ref.hardware.schedule import make_schedule
from fp4ref.hardware.tensor_map import DataType, TensorMap
from fp4ref.layout import SwizzleMode
from fp4ref.ptx import Program, launch, parse

SOFT_DEFINE = {"ATTEST_SOFT": "1"}
"""Of the compiler, with the soft tensor core."""

DUMP = "attest_dump"
"""The variable in which a wait that gives up leaves what it waited for."""


def tensor_map(m: MapOf, address: int) -> TensorMap:
    """Return the machine's map for the arguments of an encode call."""
    return TensorMap(
        DataType(m.data_type),
        address,
        m.dims,
        m.strides,
        m.box,
        m.element_strides,
        m.interleave,
        SwizzleMode(m.swizzle),
        m.l2_promotion,
        m.oob_nan,
    )


class OnPtx:
    """One launch on a machine of its own.

    Parameters
    ----------
    soft
        Whether what a Hopper card would run is executed, with the soft tensor core.

    Attributes
    ----------
    nvrtc
        Version of the compiler.
    """

    def __init__(self, question: Question, *, soft: bool = False) -> None:
        arch = SOFT_ARCH if soft else ARCH
        defines = {**question.defines, **(SOFT_DEFINE if soft else {})}
        made = compile_cuda(question.text(soft), arch, name="rung.cu", defines=defines)
        self.nvrtc = made.nvrtc
        self._call = question.call(soft)
        # As late as can be: what a rung does not wait for is not there.
        schedule = make_schedule("late")
        self._machine = Machine(question.sms, schedule, question.ordering)
        self._program = Program.of(parse(made.ptx), self._call.entry)

    def run(self) -> Mapping[str, NDArray[np.uint8]]:
        """Run to the end; return every buffer as it is then.

        Raises
        ------
        HardwareFault
            The rung did something that no rule allows, or nothing ends its wait.
        NotModelled
            The machine lacks an instruction.
        """
        call, gmem = self._call, self._machine.gmem
        at = {name: gmem.upload(name, data) for name, data in call.buffers.items()}
        block = parameter_block(
            call.params,
            at.__getitem__,
            lambda m, address: tensor_map(m, address).to_bytes(),
        )
        launch(
            self._machine,
            self._program,
            call.grid,
            call.block,
            block.data,
            cluster=call.cluster,
            smem_nbytes=call.smem_nbytes,
        )
        return {
            name: gmem.contents(at[name], data.size)
            for name, data in call.buffers.items()
        }

    def dump(self) -> NDArray[np.uint32]:
        """Return what waits that gave up have left; empty if there are none."""
        for found in self._machine.gmem.allocations:
            if found.name == DUMP:
                words = self._machine.gmem.contents(found.address, found.nbytes)
                return words.view(np.uint32)
        return np.zeros(0, np.uint32)
