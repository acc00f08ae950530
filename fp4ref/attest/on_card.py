"""on_card: a rung on the first GPU, on Hopper with the soft tensor core if need be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fp4ref.attest.on_ptx import DUMP, SOFT_DEFINE
from fp4ref.attest.question import Question
from fp4ref.cuda_kernel.build import SOFT_ARCH
from fp4ref.cuda_kernel.on_device import SOFT_VARIABLES
from fp4ref.device.compile import arch_of, compile_cuda
from fp4ref.device.driver import find_gpu
from fp4ref.device.launch import Module


class OnCard:
    """One launch on the GPU.

    Attributes
    ----------
    nvrtc
        Version of the compiler.

    Raises
    ------
    CompileError
        NVRTC is not installed, or refused the source.
    DeviceError
        The driver refused the cubin.
    """

    def __init__(self, question: Question, *, soft: bool) -> None:
        arch = SOFT_ARCH if soft else arch_of(find_gpu().capability)
        text = question.text(soft)
        defines = {**question.defines, **(SOFT_DEFINE if soft else {})}
        made = compile_cuda(text, arch, name="rung.cu", defines=defines)
        self.nvrtc = made.nvrtc
        self._module = Module(made.cubin)
        self._call = question.call(soft)
        self._dumps = DUMP in text
        self._zeros = [name for name in SOFT_VARIABLES if name in text]

    def run(self) -> Mapping[str, NDArray[np.uint8]]:
        """Run to the end; return every buffer as it is then.

        Raises
        ------
        DeviceError
            The driver refused the launch, or the kernel failed.
        """
        for name in self._zeros:
            self._module.fill(name)
        return self._module.run(self._call)

    def dump(self) -> NDArray[np.uint32]:
        """Return what waits that gave up have left; empty if there are none."""
        if not self._dumps:
            return np.zeros(0, np.uint32)
        return self._module.read(DUMP).view(np.uint32)
