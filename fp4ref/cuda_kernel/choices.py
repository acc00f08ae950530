"""choices: the headers that differ between configurations, all four.

``plan.cuh`` has the numbers, ``parts.cuh`` the piece for each job, ``roles.cuh`` what
each warp runs, ``params.cuh`` the block that a launch passes. The files in
``kernel/gemm`` are those of ``GemmConfig()``, to be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from inspect import getmodule
from typing import Any

from fp4ref.cuda_kernel.header import INLINE, PLAN, plan_header
from fp4ref.cuda_kernel.parameters import PARAMS, with_struct
from fp4ref.cuda_kernel.sources import expand, kernel_root
from fp4ref.gemm import parts as parts_module
from fp4ref.gemm import roles as roles_module
from fp4ref.gemm.config import GemmConfig
from fp4ref.gemm.fusion.node import Node
from fp4ref.gemm.parts import Parts, parts
from fp4ref.gemm.plan import Plan, plan
from fp4ref.gemm.roles import body

PARTS = "kernel/gemm/parts.cuh"
ROLES = "kernel/gemm/roles.cuh"


def headers(config: GemmConfig) -> dict[str, str]:
    """Return the text of each header of `config`, by path."""
    planned = plan(config)
    return {
        PLAN: plan_header(config),
        PARTS: "\n".join(_parts_header(parts(planned))),
        ROLES: "\n".join(_roles_header(planned)),
        PARAMS: with_struct(
            (kernel_root() / PARAMS).read_text(encoding="utf-8"),
            planned.fields,
        ),
    }


def constants(config: GemmConfig) -> list[str]:
    """Return what the compiler reads of the headers: all but the reasons.

    Two configurations with the same lines are one kernel, as ``stages=5`` and None.
    """
    lines = "\n".join(headers(config).values()).splitlines()
    return [line for line in lines if not line.lstrip().startswith("//")]


@cache
def one_file(config: GemmConfig, *, soft: bool = False) -> str:
    """Return the kernel of a configuration as one text, its headers in line.

    With `soft` the soft tensor core stands for what sm_90 lacks.
    """
    return one_changed_file(config, {}, soft=soft)


def one_changed_file(
    config: GemmConfig, changed: Mapping[str, str], *, soft: bool = False
) -> str:
    """Return `one_file` with other texts for some files, by path."""
    return expand({**headers(config), **changed}, kernel_root(), soft=soft)


def pieces(config: GemmConfig) -> list[str]:
    """Return the files of ``kernel/`` that take part, as paths."""
    text = one_file(config)
    marks = (line.split('"') for line in text.splitlines() if line.startswith("#line"))
    return sorted({mark[1] for mark in marks})


def _head(module: Any) -> Iterator[str]:
    yield f"// {(module.__doc__ or '').splitlines()[0]}"
    yield "//"
    yield f"// Written by fp4ref.cuda_kernel.choices from {module.__name__}. These are"
    yield "// the choices of GemmConfig(); those of what is compiled take their place."
    yield "#pragma once"


def _parts_header(chosen: Parts) -> Iterator[str]:
    yield from _head(parts_module)
    every = {field.name: getattr(chosen, field.name) for field in fields(chosen)}
    uses = {name: value for name, value in every.items() if value is not None}
    kinds = {each for value in uses.values() for each in _types(value)}
    own = sorted(
        (each for each in kinds if _struct(each)), key=lambda each: each.__name__
    )
    files = {_include(each) for each in kinds if each not in own}
    if own:
        files.add(_include(Node))
    yield from (f'#include "{file}"' for file in sorted(files))
    for each in own:
        yield from ("", *_struct(each).strip().splitlines())
    yield ""
    for name, value in uses.items():
        cuda = value.__name__ if isinstance(value, type) else repr(value)
        yield f"using {_camel(name)} = {cuda};"
    yield ""


def _types(value: Any) -> Iterator[type]:
    """Give the classes that a choice is made of."""
    if isinstance(value, Node):
        yield from (type(node) for node in value.walk())
    else:
        yield value if isinstance(value, type) else type(value)


def _struct(kind: type) -> str:
    """Return the CUDA of a node that brings its own; empty for one with a file."""
    return str(vars(kind).get("struct", ""))


def _include(piece: Any) -> str:
    """Return the header of a class or function, as seen from ``kernel/gemm``."""
    module = getmodule(piece)
    assert module is not None
    path = module.__name__.removeprefix("fp4ref.gemm.").replace(".", "/")
    return f"{path}.cuh"


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _roles_header(p: Plan) -> Iterator[str]:
    yield from _head(roles_module)
    bodies = [(each.role.name, body(p, each)) for each in p.warps]
    files = {_include(role) for _, role in bodies}
    yield from (f'#include "{file}"' for file in sorted(files))
    yield ""
    parameters = "u32 warp, const SharedStorage& storage"
    yield f"{INLINE} void start({parameters}) {{"
    yield "    switch (warp) {"
    for name, role in bodies[:-1]:
        yield f"        case {name}: {_called(role)}"
    yield f"        default: {_called(bodies[-1][1])}  // {bodies[-1][0]}"
    yield "    }"
    yield "}"
    yield ""


def _called(role: Any) -> str:
    return f"{role.__name__}(storage); break;"


__all__ = [
    "PARTS",
    "ROLES",
    "constants",
    "headers",
    "one_changed_file",
    "one_file",
    "pieces",
]
