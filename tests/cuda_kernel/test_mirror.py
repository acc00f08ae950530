"""kernel/ and fp4ref/ hold the same frames: same files, first line and operations."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from fp4ref import GemmConfig, frames, plan
from fp4ref.cuda_kernel import plan_header
from fp4ref.cuda_kernel.sources import one_file
from fp4ref.cuda_kernel.twins import twin as kernel_twin

ROOT = Path(__file__).parents[2]
FOLDERS = ("hardware", "gemm", "layout", "numerics")
SOURCES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / "kernel" / folder).iterdir()
    if path.suffix in (".cuh", ".cu")
)

MODEL_ONLY = {
    "gemm/problem": "what the host does",
    "hardware/advisory": "silicon keeps its own books",
    "hardware/cluster": "the kernel runs without a cluster",
    "hardware/cp_async": "for compiled kernels of others",
    "hardware/in_flight": "silicon keeps its own books",
    "hardware/grid": "the driver's part",
    "hardware/machine": "silicon steps the warps",
    "hardware/byte_array": "silicon is the memory",
    "hardware/cta_barriers": "silicon keeps its own books",
    "hardware/global_memory": "silicon is the memory",
    "hardware/machine_state": "silicon keeps its own books",
    "hardware/mbarrier_unit": "silicon counts",
    "hardware/mma_operands": "silicon reads its operands",
    "hardware/mma_unscaled": "for compiled kernels of others",
    "hardware/registers": "silicon has a scoreboard",
    "hardware/schedule": "silicon decides when work lands",
    "hardware/shared_memory": "silicon is the memory",
    "hardware/source_line": "the compiler writes the lines",
    "hardware/tcgen05_issue": "silicon keeps the order",
    "hardware/tensor_memory": "silicon is the memory",
    "hardware/tma_box": "silicon finds the bytes",
    "layout/algebra": "the kernel writes its offsets out",
    "layout/int_tuple": "the kernel writes its offsets out",
    "layout/tiling": "the kernel writes its offsets out",
    "numerics/dot": "the tensor core does it",
    "numerics/dot_jit": "the tensor core does it",
    "numerics/dot_unscaled": "for compiled kernels of others",
    "numerics/dot_unscaled_jit": "for compiled kernels of others",
    "numerics/element": "silicon reads the codes",
    "numerics/elements": "the plan's constants say which formats",
    "numerics/operands": "the tensor core does it",
}

# A wrapper that stands for a method, or for several functions, of its module.
WRAPPER_OF = {
    "smem_base": "smem_base",
    "smem_descriptor": "SmemDescriptor",
    "tma_wait_group_read": "wait_group",
    "instr_descriptor_encode": "encode",
}

# Functions of a role file that have no function of this name in the emulator.
KERNEL_ONLY = {
    "config": {"idesc"},  # a method of the plan
    "pipeline": {"barrier"},
    "tile_scheduler": {"clc_response"},
    "partition": set(),
    "plan": {ring.name for ring in plan(GemmConfig()).rings} | {"init"},
    "shared_storage": {b.name for b in plan(GemmConfig()).buffers},
    "nvfp4_gemm": {"scheduler"},
}


def twin(source: Path) -> str:
    """Text of the model: a module, or all modules of a room, its docstring first."""
    path = ROOT / "fp4ref" / source.parent.name / source.stem
    if path.is_dir():
        return "\n".join(each.read_text() for each in sorted(path.glob("*.py")))
    return path.with_suffix(".py").read_text()


def parsed(model: str) -> ast.Module:
    """Parse the text of one module, or of several."""
    return ast.parse(model.replace("from __future__ import annotations", ""))


def names_in(model: str) -> set[str]:
    tree = parsed(model)
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name.strip("_"))
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.alias(name=name):
                found.add(name)
    return found


def functions_of(source: Path) -> set[str]:
    text = re.sub(r"//.*", "", source.read_text())
    pattern = r"(?m)^ *__device__ __forceinline__(?: constexpr)? [\w<>]+[ &*]+(\w+)\("
    return set(re.findall(pattern, text))


def name(source: Path) -> str:
    return f"{source.parent.name}/{source.stem}"


def test_every_model_has_a_kernel_source() -> None:
    models = {
        f"{folder}/{path.stem}"
        for folder in FOLDERS
        for path in (ROOT / "fp4ref" / folder).glob("[!_]*")
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert models - set(MODEL_ONLY) == {name(source) for source in SOURCES}


@pytest.mark.parametrize("source", SOURCES, ids=name)
def test_same_first_line(source: Path) -> None:
    docstring = (
        ast.get_docstring(
            ast.parse(twin(source).replace("from __future__ import annotations", ""))
        )
        or ""
    )
    assert source.read_text().splitlines()[0] == f"// {docstring.splitlines()[0]}"


HARDWARE = [s for s in SOURCES if s.parent.name == "hardware" and s.stem != "sm"]
ROLES = [s for s in SOURCES if s.parent.name == "gemm"]


@pytest.mark.parametrize("source", HARDWARE, ids=name)
def test_every_wrapper_is_an_operation_of_its_module(source: Path) -> None:
    known = names_in(twin(source)) | {"smem_base"}
    text = source.read_text()
    for wrapper in functions_of(source):
        if not re.search(rf"(?m)^__device__.*\b{wrapper}\(", text):
            continue  # a method
        assert wrapper.startswith(f"{source.stem}_"), wrapper
        operation = WRAPPER_OF.get(wrapper, wrapper.removeprefix(f"{source.stem}_"))
        assert operation in known, f"{wrapper}: its model has no {operation}"


@pytest.mark.parametrize("source", ROLES, ids=name)
def test_every_function_of_a_role_is_one_of_the_emulators(source: Path) -> None:
    known = names_in(twin(source)) | KERNEL_ONLY.get(source.stem, set())
    found = {each.removeprefix("config_") for each in functions_of(source)}
    assert found <= known, found - known


@pytest.mark.parametrize("source", SOURCES, ids=name)
def test_inline_ptx_is_in_the_wrappers_only(source: Path) -> None:
    if source.parent.name in ("gemm", "layout"):
        assert not re.search(r"\basm\b", source.read_text())


@pytest.mark.parametrize("source", SOURCES, ids=name)
def test_lines_fit_and_includes_are_own(source: Path) -> None:
    lines = source.read_text().splitlines()
    assert max(map(len, lines)) <= 100
    assert not any(line.startswith("#include <") for line in lines)
    assert "\t" not in source.read_text()


@pytest.mark.parametrize("source", ROLES, ids=name)
def test_the_frames_of_a_role_are_the_emulators(source: Path) -> None:
    """A frame that a kernel file names is one that its twin's text names."""
    frame = r"\b[1-8]\.\d+(?:\.\d+)*\b"
    comments = "\n".join(re.findall(r"//(.*)", source.read_text()))
    model = set(re.findall(frame, twin(source)))
    assert set(re.findall(frame, comments)) <= model


def test_each_file_is_in_the_kernel() -> None:
    text = one_file(ROOT, plan_header(GemmConfig()))
    for source in SOURCES:
        assert f'"kernel/{name(source)}{source.suffix}"' in text, source


HOST_ONLY = {
    "fp4ref.gemm.partition:multicast_masks": "the kernel runs without a cluster",
    "fp4ref.gemm.partition:operand_map": "the host encodes tensor maps",
    "fp4ref.gemm.partition:scale_map": "the host encodes tensor maps",
    "fp4ref.gemm.partition:tile_operand": "TMA takes coordinates, not layouts",
    "fp4ref.hardware.cluster:wait": "the kernel runs without a cluster",
}
ONE_SCREEN = 60
"""Lines of one side of a frame that a reader can hold on one screen."""

EMULATORS = sorted(
    {
        each.emulator
        for each in frames.FRAMES.values()
        if not each.emulator.startswith("fp4ref.frames")
    }
)


@pytest.mark.parametrize("emulator", EMULATORS)
def test_each_frame_has_a_twin_on_one_screen(emulator: str) -> None:
    found = kernel_twin(emulator)
    if emulator in HOST_ONLY:
        assert found is None
        return
    assert found is not None
    lines = (ROOT / found.file).read_text().splitlines()
    assert "\n".join(lines[found.first - 1 : found.last]) == found.text
    assert found.text.count("{") == found.text.count("}")
    assert found.text.count("\n") < ONE_SCREEN
    module, _, path = emulator.partition(":")
    target = import_module(module)
    for part in path.split("."):
        target = inspect.getattr_static(target, part)
    if inspect.isfunction(target) and module.startswith("fp4ref.gemm"):
        assert len(inspect.getsourcelines(target)[0]) <= ONE_SCREEN


def test_a_twin_has_its_comment() -> None:
    found = kernel_twin("fp4ref.gemm.mma_warp:release_stage")
    assert found is not None
    assert found.text.startswith("// consumer_release: the stage is empty when")
    assert "void release_stage(bool elected, Stage stage) {" in found.text
    method = kernel_twin("fp4ref.gemm.pipeline:Consumer.peek")
    assert method is not None
    assert "try_wait" in method.text
    assert kernel_twin("fp4ref.gemm.mma_warp:no_such") is None
    assert kernel_twin("fp4ref.evidence.oracle:expected") is None
