"""probe: a kernel call with a name, and the places it can run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fp4ref.attest.on_ptx import tensor_map
from fp4ref.device import Call, Compiled, compile_cuda
from fp4ref.device.launch import parameter_block
from fp4ref.hardware.machine import Machine
from fp4ref.ptx import Program, launch, parse
from fp4ref.trace import Bytes

FOLDER = Path(__file__).parent
ARCH = "sm_90a"
MODULES = (
    "tma",
    "tensormap",
    "mbarrier",
    "cluster",
    "bulk_groups",
    "bulk_copies",
    "cta",
    "convert",
    "header_formats",
    "hmma",
    "descriptors",
    "edges",
)
Outputs = dict[str, Bytes]


@dataclass(frozen=True)
class Case:
    """One call and what of it is compared.

    Attributes
    ----------
    outputs
        Names of the buffers that are compared.
    refusal
        The fault with which the emulator refuses what silicon does; '' if it does it.
    on_ptx
        Why the ptx backend cannot run it; '' if it can.
    unlike
        How silicon is known to differ from the emulator; '' if it does not.
    """

    name: str
    call: Call
    outputs: tuple[str, ...]
    refusal: str = ""
    on_ptx: str = ""
    unlike: str = ""


@dataclass(frozen=True)
class Probe:
    """A source and its cases.

    Attributes
    ----------
    emulate
        What the emulator says of a case, by output.
    """

    name: str
    cases: Sequence[Case]
    emulate: Callable[[Case], Outputs]
    cuda_headers: bool = False
    files: tuple[str, ...] = field(default=("probe.cuh",))

    @property
    def source(self) -> Path:
        """The CUDA file."""
        return FOLDER / f"{self.name}.cu"

    def sources_digest(self) -> str:
        """SHA-256 over the CUDA files."""
        digest = sha256()
        for name in (f"{self.name}.cu", *self.files):
            digest.update((FOLDER / name).read_bytes())
        return digest.hexdigest()

    def calls_digest(self) -> str:
        """SHA-256 over what every case passes to its kernel."""
        digest = sha256()
        for case in self.cases:
            call = case.call
            shape = (call.grid, call.block, call.cluster, call.smem_nbytes)
            digest.update(repr((case.name, call.entry, shape)).encode())
            for each in call.params:
                plain = int(each) if isinstance(each, np.integer) else astuple(each)
                digest.update(repr((type(each).__name__, plain)).encode())
            for name, data in call.buffers.items():
                digest.update(name.encode() + data.tobytes())
        return digest.hexdigest()

    def compiled(self) -> Compiled:
        """Compile for Hopper."""
        return compile_cuda(
            self.source.read_text(),
            ARCH,
            name=self.source.name,
            include=[FOLDER],
            cuda_headers=self.cuda_headers,
        )


@cache
def probes() -> Mapping[str, Probe]:
    """Every probe, by name."""
    found = {}
    for name in MODULES:
        probe: Probe = importlib.import_module(f"probes.{name}").PROBE
        found[name] = probe
    return found


def new_machine(call: Call) -> tuple[Machine, dict[str, int]]:
    """Return a machine that holds the buffers of `call`, and their addresses."""
    x, y, z = call.cluster
    machine = Machine(sms=x * y * z)
    return machine, {n: machine.gmem.upload(n, d) for n, d in call.buffers.items()}


def results(machine: Machine, addresses: Mapping[str, int], case: Case) -> Outputs:
    """Return the outputs of `case` as the host would copy them back."""
    return {
        name: machine.gmem.contents(addresses[name], case.call.buffers[name].size)
        for name in case.outputs
    }


def run_on_ptx(text: str, case: Case) -> Outputs:
    """Execute compiled PTX on the emulator's SMs."""
    call = case.call
    machine, addresses = new_machine(call)
    block = parameter_block(
        call.params,
        addresses.__getitem__,
        lambda m, address: tensor_map(m, address).to_bytes(),
    )
    launch(
        machine,
        program(text, call.entry),
        call.grid,
        call.block,
        block.data,
        cluster=call.cluster,
        smem_nbytes=call.smem_nbytes,
    )
    return results(machine, addresses, case)


@cache
def program(text: str, entry: str) -> Program:
    """Parse once for all cases of an entry."""
    return Program.of(_module(text), entry)


_module = cache(parse)


def pattern(seed: int, count: int) -> NDArray[np.uint64]:
    """Return the same 64-bit words for a seed with every NumPy: splitmix64."""
    with np.errstate(over="ignore"):
        x = np.arange(1, count + 1, dtype=np.uint64)
        x = (x + np.uint64(seed) * np.uint64(0x1000003)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return x ^ x >> np.uint64(31)


def pattern_bytes(seed: int, nbytes: int) -> Bytes:
    """Return `nbytes` of `pattern`."""
    return pattern(seed, -(-nbytes // 8)).view(np.uint8)[:nbytes].copy()


def blank(nbytes: int, byte: int = 0xEE) -> Bytes:
    """Return an output buffer before the launch."""
    return np.full(nbytes, byte, np.uint8)


def words(values: Sequence[int]) -> Bytes:
    """Return 32-bit words as bytes."""
    return np.array(values, np.uint32).view(np.uint8)
