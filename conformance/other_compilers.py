"""other_compilers: PTX of a file that is somebody else's, of CUDA or of CuTe DSL.

Libraries that only its host code calls (cuBLAS, PyTorch) are stood in for.
"""

from __future__ import annotations

import ast
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cute_dsl_python import python

from fp4ref.cutlass.toolchain import find_toolchain
from fp4ref.ptx import parse
from fp4ref.ptx.text.syntax import Module

_CUBLAS = """#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
typedef int cublasStatus_t; typedef int cublasComputeType_t; typedef int cublasMath_t;
typedef void *cublasHandle_t, *cublasLtHandle_t;
enum { CUBLAS_STATUS_SUCCESS, CUBLAS_TF32_TENSOR_OP_MATH, CUBLAS_DEFAULT_MATH,
  CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_16BF,
  CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT, CUBLAS_GEMM_DEFAULT_TENSOR_OP,
  CUBLAS_OP_N, CUBLAS_OP_T };
#define ANY(name) template <class... T> int name(T...) { return 0; }
ANY(cublasCreate) ANY(cublasLtCreate) ANY(cublasSetMathMode) ANY(cublasDestroy)
ANY(cublasLtDestroy) ANY(cublasSgemm) ANY(cublasGemmEx)
"""
STAND_INS = {
    "cublas_v2.h": _CUBLAS,
    "cublasLt.h": '#include "cublas_v2.h"\n',
    "torch/library.h": """#pragma once
#include <cuda_bf16.h>
#include <tuple>
#define TORCH_CHECK(...)
#define TORCH_LIBRARY(name, m) void library_of_##name(at::Library &m)
namespace at {
struct Tensor {
  int size(int) const { return 0; }
  void *data_ptr() const { return nullptr; }
  int options() const { return 0; }
};
struct Library {
  template <class... T> void def(T...) {}
  template <class... T> void impl(T...) {}
};
template <class... T> Tensor empty(std::initializer_list<int>, T...) { return {}; }
}
""",
    "ATen/ATen.h": '#include "torch/library.h"\n',
    "ATen/core/Tensor.h": '#include "torch/library.h"\n',
}
"""Headers of libraries that no kernel calls."""


def compile_file(source: Path, include: Path | None = None) -> Module:
    """Compile a CUDA file to PTX for sm_100a and parse it.

    Parameters
    ----------
    include
        Folder of headers; that of the file is searched too.

    Raises
    ------
    subprocess.CalledProcessError
        nvcc refuses it.
    """
    tools = find_toolchain()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in STAND_INS.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_text(text)
        if source.suffix == ".py":
            source = _inside(source, Path(folder))
        made = Path(folder) / "kernels.ptx"
        command = [
            *(str(tools.nvcc), f"-ccbin={tools.host_compiler}", "-ptx", "-std=c++17"),
            *("-arch=sm_100a", "--expt-relaxed-constexpr", f"-I{folder}"),
            *(f"-I{source.parent}", f"-I{include or source.parent}"),
            *("-o", str(made), str(source)),
        ]
        subprocess.run(command, check=True, capture_output=True)
        return parse(made.read_text())


def compile_class(checkout: Path, module: str, arguments: Sequence[str]) -> Module:
    """Compile a CuTe DSL class of a checkout to PTX for sm_100a and parse it.

    Parameters
    ----------
    module
        Of the class, with the checkout as root.
    arguments
        The class, and what its ``compile`` takes.

    Raises
    ------
    ModuleNotFoundError
        Neither the Python that CUTE_DSL_PYTHON names nor this one has CuTe DSL.
    subprocess.CalledProcessError
        CuTe DSL refuses it.
    """
    script = Path(__file__).parent / "cute_dsl" / "of_checkout.py"
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "kernels.ptx"
        command = [python(), str(script), str(checkout), module]
        environment = os.environ | {"CUTE_DSL_DUMP_DIR": folder, "PYTHONPATH": ""}
        subprocess.run(
            [*command, *arguments, str(made)],
            check=True,
            env=environment,
            cwd=folder,
            capture_output=True,
        )
        return parse(made.read_text())


def compiled(folder: Path, file: Mapping[str, Any]) -> Module | None:
    """Compile a file of the list; None if it or its compiler is not there."""
    checkout = folder / file["repository"].replace("/", "+")
    source = checkout / file["path"]
    if not source.is_file():
        print(f"{source}: not there, skipped", flush=True)
        return None
    if "class" not in file:
        return compile_file(source, checkout / file.get("include", ""))
    try:
        module = file["path"].removesuffix(".py").replace("/", ".")
        return compile_class(checkout, module, file["class"].split())
    except ModuleNotFoundError as error:
        print(f"{source}: {error}, skipped", flush=True)
        return None


def _inside(source: Path, folder: Path) -> Path:
    """Write the CUDA text that a Python file has as a string."""
    (text,) = (
        node.value
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Constant) and "__global__" in str(node.value)
    )
    (folder / "inside.cu").write_text(str(text))
    return folder / "inside.cu"
