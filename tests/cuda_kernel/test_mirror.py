"""kernel/ and fp4ref/ hold the same frames: same files, first line and operations."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from tree_cases import TREES

from fp4ref import GemmConfig, frames, plan
from fp4ref.cuda_kernel.choices import pieces
from fp4ref.cuda_kernel.twins import exceptions
from fp4ref.cuda_kernel.twins import twin as kernel_twin
from fp4ref.gemm.fusion.expression import acc, aux, build
from fp4ref.gemm.fusion.registry import activations
from fp4ref.lab import document_003

ROOT = Path(__file__).parents[2]
FOLDERS = ("hardware", "gemm", "layout", "numerics")
SOURCES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / "kernel" / folder).rglob("*")
    if path.suffix in (".cuh", ".cu")
)
TABLES = exceptions()
ALL_SOURCES = SOURCES
SOURCES = [
    each
    for each in ALL_SOURCES
    if f"{each.parent.name}/{each.stem}" not in TABLES["no_model"]
]
"""What has no twin of its name, with the reason."""

KERNEL_ONLY = {
    name: set(functions) for name, functions in TABLES["kernel_only"].items()
}
KERNEL_ONLY["gemm/plan"] |= {ring.name for ring in plan(GemmConfig()).rings}
KERNEL_ONLY["gemm/plan"] |= {buffer.name for buffer in plan(GemmConfig()).buffers}


def twin(source: Path) -> str:
    """Text of the model: a module, or all modules of a room, its docstring first."""
    path = ROOT / "fp4ref" / name(source)
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
    inline = r"(?m)^ *(?:static )?__device__ __forceinline__(?: constexpr)?"
    pattern = inline + r" [\w<>]+[ &*]+(\w+)\("
    return set(re.findall(pattern, text))


def name(source: Path) -> str:
    return source.relative_to(ROOT / "kernel").with_suffix("").as_posix()


def test_every_model_has_a_kernel_source() -> None:
    """The plan is a room, and one header; three more have no kernel source."""
    package = ROOT / "fp4ref"
    models = {
        path.relative_to(package).with_suffix("").as_posix()
        for folder in FOLDERS
        for path in (package / folder).rglob("[!_]*.py")
    }
    rooms = ("gemm/plan", "gemm/epilogue_builder", "hardware/order", "hardware/timing")
    models = {each for each in models if not each.startswith(rooms)} | set(rooms)
    assert models - set(TABLES["model_only"]) == {name(source) for source in SOURCES}
    assert set(TABLES["model_only"]) <= models


def test_a_file_is_known_by_its_name() -> None:
    """An event of the kernel names the file only."""
    names = [source.name for source in SOURCES]
    assert len(set(names)) == len(names)


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
ROLES = [s for s in SOURCES if name(s).startswith("gemm/")]


@pytest.mark.parametrize("source", HARDWARE, ids=name)
def test_every_wrapper_is_an_operation_of_its_module(source: Path) -> None:
    known = names_in(twin(source)) | {"smem_base", "clc_starts", "starts"}
    text = source.read_text()
    for wrapper in functions_of(source):
        if not re.search(rf"(?m)^__device__.*\b{wrapper}\(", text):
            continue  # a method
        assert wrapper.startswith(f"{source.stem}_"), wrapper
        plain = wrapper.removeprefix(f"{source.stem}_")
        operation = TABLES["wrapper_of"].get(wrapper, plain)
        assert operation in known, f"{wrapper}: its model has no {operation}"


@pytest.mark.parametrize("source", ROLES, ids=name)
def test_every_function_of_a_role_is_one_of_the_emulators(source: Path) -> None:
    known = names_in(twin(source)) | KERNEL_ONLY.get(name(source), set())
    assert functions_of(source) <= known


@pytest.mark.parametrize("source", SOURCES, ids=name)
def test_inline_ptx_is_in_the_wrappers_only(source: Path) -> None:
    if name(source).startswith(("gemm", "layout")):
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
    """A choice brings its file; together these make every choice."""
    many = {"c_format": "bf16", "beta": 1.0, "bias": True, "scheduler": "static"}
    pair = {"cta_group": 2, "tile_m": 256, "cluster_m": 2}
    configs = [
        *(GemmConfig(), GemmConfig.nvfp4(d_format="nvfp4", **many)),
        *(GemmConfig.nvfp4(**pair), GemmConfig.nvfp4(cluster_n=2)),
        GemmConfig.nvfp4(tile_n=256),
        *(GemmConfig.nvfp4(activation=each) for each in activations()),
        *(GemmConfig.nvfp4(operand_format=each) for each in ("mxfp8_e4m3", "bf16")),
        GemmConfig.nvfp4(store="transposed", element_wise="smem", bias=True),
        GemmConfig.nvfp4(tmem_load="16x256b", d_format="bf16"),
        GemmConfig.nvfp4(loader="cp_async"),
        GemmConfig.nvfp4(mma_loop="unrolled"),
        GemmConfig(epilogue=build(acc | aux("y"), d=None)),
        *(case.config() for case in TREES),
        *map(document_003.variant, document_003.VARIANTS),
    ]
    taken = {file for config in configs for file in pieces(config)}
    assert taken == {f"kernel/{name(source)}{source.suffix}" for source in ALL_SOURCES}


def test_what_is_not_chosen_takes_no_part() -> None:
    plain, static = pieces(GemmConfig()), pieces(GemmConfig.nvfp4(scheduler="static"))
    assert "kernel/gemm/tiles/clc_scheduler.cuh" in plain
    assert "kernel/gemm/scheduler_warp.cuh" in plain
    assert "kernel/gemm/epilogue_load_warp.cuh" not in plain
    assert "kernel/gemm/tiles/clc_scheduler.cuh" not in static
    assert "kernel/gemm/scheduler_warp.cuh" not in static


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
    if emulator.removeprefix("fp4ref.") in TABLES["host_only"]:
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
