"""cute_dsl_python: which interpreter has CuTe DSL."""

import os
import subprocess
import sys


def python() -> str:
    """Return the interpreter that has CuTe DSL.

    CUTE_DSL_PYTHON names it, or it is this one.

    Raises
    ------
    ModuleNotFoundError
        It has not.
    """
    found = os.environ.get("CUTE_DSL_PYTHON", sys.executable)
    asked = subprocess.run([found, "-c", "import cutlass.cute"], capture_output=True)
    if asked.returncode:
        raise ModuleNotFoundError("no CuTe DSL", name="nvidia-cutlass-dsl")
    return found
