"""The device backend: what can be known about it without a card that has tcgen05."""

from __future__ import annotations

import numpy as np
import pytest

import fp4ref
from fp4ref.attest.on_ptx import tensor_map
from fp4ref.cuda_kernel import on_device
from fp4ref.cuda_kernel.build import require_tcgen05
from fp4ref.cuda_kernel.on_device import kernel_call
from fp4ref.cuda_kernel.parameters import parameter_block
from fp4ref.device.driver import DeviceError, Gpu, find_gpu
from fp4ref.device.launch import MapOf
from fp4ref.device.launch import parameter_block as device_block
from fp4ref.errors import InputError
from fp4ref.gemm.plan import plan
from fp4ref.gemm.problem import GemmProblem
from fp4ref.hardware.machine import Machine

CONFIGS = [
    fp4ref.GemmConfig(),
    fp4ref.GemmConfig.example_72b(),
    fp4ref.GemmConfig.nvfp4(c_format="bf16", beta=0.5, bias=True, scheduler="static"),
]


def problem(config: fp4ref.GemmConfig) -> GemmProblem:
    rng = np.random.default_rng(0)
    a, b = (
        fp4ref.quantize(rng.standard_normal((n, 96), np.float32)) for n in (150, 40)
    )
    c = None if config.epilogue.beta == 0 else np.zeros((150, 40), np.uint16)
    bias = np.ones(40, np.float32) if config.epilogue.bias else None
    return GemmProblem(Machine(3), a, b, c, bias, config)


@pytest.mark.parametrize("config", CONFIGS, ids=["f32", "72b", "c and bias"])
def test_the_card_gets_the_parameters_that_the_ptx_backend_executes(config) -> None:
    made = problem(config)
    gmem = made.machine.gmem
    addresses = {found.name: found.address for found in gmem.allocations}

    def encode(m: MapOf, address: int) -> bytes:
        return tensor_map(m, address).to_bytes()

    call = kernel_call(made)
    block = device_block(call.params, addresses.__getitem__, encode)
    assert block.data == parameter_block(made.params)
    assert block.offsets == (0,)
    assert call.grid == made.grid_dims(None)[0]
    assert call.smem_nbytes == plan(config).smem.end
    for name, address in addresses.items():
        want = gmem.contents(address, call.buffers[name].size)
        assert np.array_equal(call.buffers[name], want)


def test_what_the_card_leaves_is_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the card that runs the emulator shows the way back."""
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal((n, 64), np.float32) for n in (20, 48))
    a, b = fp4ref.quantize(x), fp4ref.quantize(w)
    config = fp4ref.GemmConfig.example_72b()
    want = fp4ref.run(a, b, config=config, trace=False)

    class Card:
        def __init__(self, cubin: bytes) -> None:
            assert cubin == b"cubin"

        def run(self, call):
            emulated = GemmProblem(Machine(1), a, b, None, None, config)
            emulated.launch()
            gmem = emulated.machine.gmem
            return {
                f.name: gmem.contents(f.address, f.nbytes) for f in gmem.allocations
            }

    class Compiled:
        cubin, nvrtc = b"cubin", "0.0"

    gpu = Gpu("B200", (10, 0), "1.0")
    monkeypatch.setattr(on_device, "find_gpu", lambda: gpu)
    monkeypatch.setattr(on_device, "compile_kernel", lambda config, arch: Compiled)
    monkeypatch.setattr(on_device, "Module", Card)
    found = fp4ref.run(a, b, config=config, backend="device")
    assert np.array_equal(found.d, want.d)
    assert np.array_equal(found.sfd, want.sfd)
    assert found.written.all()
    assert found.trace is None
    assert found.meta["kernel"].startswith("nvfp4_gemm, B200")


def test_without_a_gpu_one_sentence_says_so_and_what_runs() -> None:
    if find_gpu():
        pytest.skip(f"a GPU is here: {find_gpu()}")
    q = fp4ref.quantize(np.ones((1, 32), np.float32))
    with pytest.raises(DeviceError, match="backend='ptx' runs the same kernel"):
        fp4ref.run(q, q, backend="device")


@pytest.mark.parametrize(
    ("capability", "card"),
    [((9, 0), "H100"), ((12, 0), "RTX PRO 6000"), ((8, 9), "L4")],
)
def test_a_card_without_tcgen05_is_named(capability, card) -> None:
    with pytest.raises(InputError, match=f"{card} has compute capability"):
        require_tcgen05(capability, card)


def test_a_card_with_tcgen05_gets_its_own_target() -> None:
    assert require_tcgen05((10, 0), "B200") == "sm_100a"
    assert require_tcgen05((10, 3), "B300") == "sm_103a"


def test_some_tiles_only_are_refused() -> None:
    q = fp4ref.quantize(np.ones((1, 32), np.float32))
    with pytest.raises(InputError, match="whole grid"):
        fp4ref.run(q, q, backend="device", tiles=[(0, 0)])
