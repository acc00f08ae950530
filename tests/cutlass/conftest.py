"""conftest: the toolchain, where it is installed, and programs built with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fp4ref.cutlass.cudart import Runtime
from fp4ref.cutlass.process import Ended, run_program
from fp4ref.cutlass.toolchain import (
    Build,
    Toolchain,
    build_stand_in,
    find_toolchain,
    missing_packages,
)
from fp4ref.errors import InputError
from fp4ref.hardware.machine import Machine

RunHost = Callable[..., tuple[Ended, Runtime]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tools" in getattr(item, "fixturenames", ()):
            item.add_marker("outside")
            # One worker builds; the others would build the same program again.
            item.add_marker(pytest.mark.xdist_group("cutlass"))


@pytest.fixture(scope="session")
def tools() -> Toolchain:
    if sys.platform != "linux":
        pytest.skip("CUTLASS's examples are built on Linux only")
    if missing := missing_packages():
        pytest.skip(f"the [cutlass] extra is not installed: {', '.join(missing)}")
    try:
        return find_toolchain()
    except InputError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def stand_in(tools: Toolchain) -> Path:
    return build_stand_in(tools)


@pytest.fixture(scope="session")
def example_72b(tools: Toolchain) -> Build:
    from fp4ref.cutlass import build_example

    return build_example("72b", print)


@pytest.fixture
def compile_host(tools: Toolchain, tmp_path: Path) -> Callable[[str], Path]:
    """Compile the body of a C main that calls the CUDA runtime."""

    def compile_body(body: str) -> Path:
        source, program = tmp_path / "program.c", tmp_path / "program"
        source.write_text(
            "#include <cuda_runtime_api.h>\n#include <stdio.h>\n#include <string.h>\n"
            "#include <stdlib.h>\n#include <unistd.h>\n"
            f"int main(void) {{\n{body}\nreturn 0;\n}}\n"
        )
        subprocess.run(
            [
                *(tools.host_compiler, "-x", "c", "-Wno-unused-result"),
                *(f"-I{tools.include}", "-o", program, source),
                *("-x", "none", tools.cudart),
            ],
            check=True,
        )
        return program

    return compile_body


@pytest.fixture
def run_host(compile_host: Callable[[str], Path], stand_in: Path) -> RunHost:
    """Compile the body of a C main and run it with the stand-in runtime."""

    def run_body(body: str, timeout: float = 60, **hooks: object) -> tuple:
        runtime = Runtime(Machine(), {}, lambda *args: None, **hooks)
        ended = run_program(compile_host(body), [], stand_in, runtime, timeout)
        return ended, runtime

    return run_body
