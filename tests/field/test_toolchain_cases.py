"""Import, compiler and Numba as others report them: B39 to B44."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import fp4ref
from fp4ref.device.compile import (
    arch_of,
    compile_cuda,
    has_tcgen05,
    nvrtc_version,
    require_arch,
)
from fp4ref.errors import InputError


@pytest.mark.parametrize("arch", ["compute_100a", "compute_90a"])
def test_b39_a_virtual_target_makes_no_cubin(arch: str) -> None:
    with pytest.raises(InputError, match=f"sm_{arch[8:]} .*empty cubin"):
        require_arch(arch)


def test_b39_a_real_target_makes_one() -> None:
    if nvrtc_version() is None:
        pytest.skip("needs NVRTC")
    made = compile_cuda('extern "C" __global__ void k() {}', "sm_100a")
    assert len(made.cubin) > 0
    assert ".target sm_100a" in made.ptx


@pytest.mark.parametrize(
    ("capability", "arch"),
    [((10, c), f"sm_10{c}a") for c in (0, 1, 3)] + [((11, 0), "sm_110a")],
)
def test_b40_a_chip_has_its_own_target(capability: tuple[int, int], arch: str) -> None:
    assert (arch_of(capability), has_tcgen05(capability)) == (arch, True)


@pytest.mark.parametrize("capability", [(12, 0), (12, 1)])
def test_b40_the_other_blackwell_is_refused(capability: tuple[int, int]) -> None:
    assert not has_tcgen05(capability)
    with pytest.raises(InputError, match="neither tcgen05 nor TMEM"):
        arch_of(capability)


@pytest.mark.parametrize("capability", [(8, 0), (13, 0)])
def test_b40_a_chip_that_no_target_is_for_is_refused(
    capability: tuple[int, int],
) -> None:
    with pytest.raises(InputError, match=r"need one of 9.0, 10.0, 10.1"):
        arch_of(capability)


def test_b40_hopper_has_no_tcgen05_and_sm_100_lacks_its_suffix() -> None:
    assert not has_tcgen05((9, 0))
    with pytest.raises(InputError, match=r"sm_100a .*need the suffix"):
        require_arch("sm_100")


def fresh(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | variables,
    )


def test_b41_the_import_needs_no_driver_and_says_nothing() -> None:
    """A driver that cannot be loaded at all: opening any library by name fails."""
    code = (
        "import ctypes, sys\n"
        "opened = ctypes.CDLL\n"
        "def refuse(name, *a, **k):\n"
        "    assert 'cuda' not in str(name), name\n"
        "    return opened(name, *a, **k)\n"
        "ctypes.CDLL = refuse\n"
        "import fp4ref\n"
        "assert not any(m.startswith(('cuda.', 'numba')) for m in sys.modules)\n"
    )
    done = fresh(code, CUDA_VISIBLE_DEVICES="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_b44_compiled_and_plain_loops_give_the_same_bits() -> None:
    """Raw codes and scales: subnormal, NaN and wide; the other process lacks Numba."""
    code = (
        "import sys, hashlib, numpy as np\n"
        "import fp4ref\n"
        "rng = np.random.default_rng(4)\n"
        "def make():\n"
        "    return fp4ref.BlockScaled(rng.integers(0, 16, (24, 256), np.uint8),\n"
        "                              rng.integers(0, 128, (24, 16), np.uint8))\n"
        "d = b''.join(fp4ref.matmul(make(), make()).tobytes() for _ in range(4))\n"
        "found = hashlib.sha256(d).hexdigest()\n"
    )
    here: dict[str, str] = {}
    exec(code, here)
    done = fresh(f"import sys; sys.modules['numba'] = None\n{code}print(found)")
    assert done.stdout.strip() == here["found"], done.stderr


def test_b44_the_number_of_threads_changes_no_byte() -> None:
    """10^6 bit patterns through the compiled quantiser, and a product of wide data."""
    numba = pytest.importorskip("numba")
    rng = np.random.default_rng(44)
    bits = rng.integers(0, 1 << 32, (1024, 1024), np.uint32)
    x = np.where(np.isnan(bits.view(np.float32)), np.float32(1), bits.view(np.float32))
    wide = fp4ref.BlockScaled(
        rng.integers(0, 16, (192, 1024), np.uint8),
        rng.integers(0, 127, (192, 64), np.uint8),
    )
    most, found = numba.get_num_threads(), []
    for count in {1, 2, most}:
        numba.set_num_threads(min(count, most))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            q = fp4ref.quantize(x)
        d = fp4ref.matmul(wide, wide)
        found.append((q.codes.tobytes(), q.scales.tobytes(), d.tobytes()))
    numba.set_num_threads(most)
    assert len(set(found)) == 1
