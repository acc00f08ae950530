"""Compile a CuTe DSL class of a checkout for sm_100a, without a GPU.

    python of_checkout.py FOLDER MODULE CLASS ARGUMENTS FILE.ptx

The class has a ``compile`` that calls ``cute.compile`` with made-up tensors. Packages
above the module are not run, and torch, which only names types, is stood in for.
"""

import importlib
import os
import sys
import types
from pathlib import Path

os.environ["CUTE_DSL_ARCH"] = "sm_100a"
os.environ["CUTE_DSL_KEEP_PTX"] = "1"

import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_stream


def without_running(folder: str, module: str) -> None:
    """Put empty packages in place of those above a module."""
    names = module.split(".")[:-1]
    for depth in range(1, len(names) + 1):
        package = types.ModuleType(".".join(names[:depth]))
        package.__path__ = [str(Path(folder, *names[:depth]))]
        sys.modules[package.__name__] = package


def compile_class(folder: str, module: str, name: str, arguments: list[int]) -> str:
    """Return the PTX of what the class's ``compile`` compiles."""
    without_running(folder, module)
    torch = sys.modules["torch"] = types.ModuleType("torch")
    torch.__getattr__ = lambda attribute: attribute
    found = importlib.import_module(module)
    compiler = cute.compile
    cute.compile = lambda *values, options="": compiler(*values)
    found.make_fake_stream = lambda **options: make_fake_stream()
    return getattr(found, name).compile(*arguments).__ptx__


if __name__ == "__main__":
    folder, module, name, *numbers, path = sys.argv[1:]
    text = compile_class(folder, module, name, [int(each) for each in numbers])
    Path(path).write_text(text)
