"""launch_template: a commented launch file, from what the entry says of itself."""

from __future__ import annotations

from collections.abc import Iterator

from fp4ref.evidence.check.kernel_text import KernelText
from fp4ref.hardware.tensor_map import NBYTES as MAP_NBYTES
from fp4ref.ptx import Program
from fp4ref.ptx.text.program import base_name
from fp4ref.ptx.text.syntax import Address, Register, Symbol, Variable

_FILL = "# <- fill in"
_MEMORY = ("ld", "st", "red", "atom")


def launch_template(kernel: KernelText, entry: str | None = None) -> str:
    """Return the text of a launch file for an entry.

    Raises
    ------
    InputError
        There is no such entry.
    """
    program = kernel.program(entry)
    return "\n".join([*_head(kernel, program), *_params(program)]) + "\n"


def _head(kernel: KernelText, program: Program) -> Iterator[str]:
    directives = program.entry.directives
    yield f"# How fp4ref check launches {kernel.name}. Sizes are in bytes."
    yield f'entry = "{program.entry.name}"'
    cluster = [*(directives.get("reqnctapercluster") or (1,)), 1, 1][:3]
    yield f"grid = {cluster}              {_FILL}: CTAs, x first"
    exact = directives.get("reqntid")
    block = exact or directives.get("maxntid")
    said = "as .reqntid says" if exact else "most, as .maxntid says" if block else ""
    shown = [*(block or (128,)), 1, 1][:3]
    yield f"block = {shown}            {'# ' + said if said else _FILL + ': threads'}"
    yield f"cluster = {cluster}           # CTAs of a cluster"
    dynamic = any(
        v.space == "shared" and not v.nbytes
        for v in (*program.module.variables, *program.entry.variables)
    )
    words = f"{_FILL}: dynamic shared memory" if dynamic else "# none is dynamic"
    yield f"shared = 0                    {words}"
    yield "# sms = 2                     # SMs of the machine"
    yield ""


def _params(program: Program) -> Iterator[str]:
    """Parameters in order, then the buffers that they point to."""
    pointers = _dereferenced(program)
    buffers = []
    for number, variable in enumerate(program.entry.params):
        yield "[[param]]"
        yield f'name = "{variable.name}"'
        if variable.pointer or variable.name in pointers:
            buffers.append(name := f"buffer{number}")
            yield f'buffer = "{name}"'
        elif variable.nbytes == MAP_NBYTES and variable.kind == "b8":
            buffers.append(name := f"buffer{number}")
            yield from _map(name)
        else:
            yield from _scalar(variable)
        yield ""
    for name in buffers:
        yield f"[buffer.{name}]"
        yield f'dtype = "f32"                 {_FILL}: u8 to f64, bf16'
        yield f"shape = [1024]                {_FILL}"
        yield "zeros = true                  # left out: undefined before the run"
        yield '# file = "in.npy"             # instead of shape: what it holds'
        yield '# out = "out.npy"             # where it is written after the run'
        yield '# expected = "want.npy"       # what it should hold: bits = true, or'
        yield "# rtol = 0.0                  # |found - want| <= atol + rtol * |want|"
        yield ""


def _map(name: str) -> Iterator[str]:
    yield "[param.tensor_map]            # or bytes, if it is another struct"
    yield f'buffer = "{name}"'
    yield f'type = "float16"              {_FILL}: as in cuda.h, u4_align8b for E2M1'
    yield f"dims = [64, 128]              {_FILL}: elements, fastest first"
    yield f"strides = [128]               {_FILL}: bytes, of dimensions 1 and up"
    yield f"box = [64, 128]               {_FILL}"
    yield f"swizzle = 128                 {_FILL}: 0, 32, 64 or 128"


def _scalar(variable: Variable) -> Iterator[str]:
    one = variable.kind != "b8" or variable.nbytes == 1
    if one and variable.kind[0] == "f":
        yield f"{variable.kind} = 0.0                     {_FILL}"
    elif one:
        pointer = "; a pointer is buffer = ..." if variable.nbytes == 8 else ""
        yield f"{variable.kind} = 0                       {_FILL}{pointer}"
    else:
        yield f"zeros = {variable.nbytes}                   {_FILL}: a struct, as"
        yield '# bytes = "00ff"              # hexadecimal, or file = "struct.npy"; and'
        yield '# field = [{at = 0, u32 = 5}, {at = 8, buffer = "a"}]'


def _dereferenced(program: Program) -> set[str]:
    """Names of 64-bit parameters that become global addresses."""
    loaded: dict[str, str] = {}
    found = set()
    for each in program.instructions:
        base = base_name(each.opcode)
        operands = each.operands
        match operands:
            case (Register(target), Address(Symbol(name), 0)) if (
                ".param" in each.opcode
            ):
                loaded[target] = name
            case (_, Register(source)) if ".to.global" in each.opcode:
                found.add(loaded.get(source, ""))
            case _ if base in _MEMORY:
                for operand in operands:
                    match operand:
                        case Address(Register(source)):
                            found.add(loaded.get(source, ""))
                        case _:
                            pass
    return found - {""}
