"""The epilogue builder: every value and every refusal is CUTLASS's own."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from typer.main import get_command

from fp4ref.commands import app
from fp4ref.errors import ConfigError, InputError
from fp4ref.gemm.epilogue_builder import (
    BuilderRefusal,
    EpilogueRequest,
    build_epilogue,
)
from fp4ref.gemm.epilogue_builder.mainloop_stages import (
    accumulator_stages,
    kernel_nbytes,
    mainloop_stages,
    stage_nbytes,
)

DATA = Path(__file__).parents[1] / "data"
EPILOGUES: dict[str, Any] = json.loads((DATA / "epilogues.json").read_text("utf-8"))[
    "epilogues"
]
"""What CUTLASS's builder says of each line of conformance/record/epilogues.txt."""
BUILT = {line: said for line, said in EPILOGUES.items() if isinstance(said, dict)}
REFUSED = {line: said for line, said in EPILOGUES.items() if isinstance(said, list)}
LAUNCH = (
    *("can_implement", "workspace_nbytes", "load_increment", "store_increment"),
    *("is_producer_load_needed", "is_C_load_needed"),
)
"""What the host and the load warp ask; the rest is known when it is compiled."""
COMMANDS = get_command(app)
FAMILY = json.loads((DATA / "cutlass_family.json").read_text("utf-8"))


def asked(line: str) -> Result:
    return CliRunner().invoke(COMMANDS, ["epilogue", *shlex.split(line)])


def values(line: str) -> dict[str, Any]:
    result = asked(f"{line} --json")
    assert result.exit_code == 0, result.output
    return {
        name: said["value"]
        for name, said in json.loads(result.output)["values"].items()
    }


@pytest.mark.parametrize("line", BUILT)
def test_every_value_is_what_cutlass_compiles(line: str) -> None:
    found = values(line)
    said = {name: each for name, each in BUILT[line].items() if name not in LAUNCH}
    assert {name: found.get(name) for name in said} == said


@pytest.mark.parametrize("line", REFUSED)
def test_what_cutlass_refuses_is_refused_with_its_reason(line: str) -> None:
    result = asked(line)
    said = " ".join(result.output.split())
    assert result.exit_code == 2
    assert any(f'CUTLASS: "{reason}"' in said for reason in REFUSED[line]), said
    assert "Traceback" not in said


def test_the_record_has_as_many_of_each_as_is_asked() -> None:
    for arch, built in (("sm90", 20), ("sm100", 40)):
        prefix = f"--arch {arch} "
        assert sum(line.startswith(prefix) for line in BUILT) >= built
        assert sum(line.startswith(prefix) for line in REFUSED) >= 10


def test_the_first_example_of_document_001() -> None:
    request = EpilogueRequest(
        arch="sm90", tile=(128, 128, 64), c="f16", schedule="TmaWarpSpecialized"
    )
    found = build_epilogue(request)
    assert found.policy == "Sm90TmaWarpSpecialized<4, 2, 16, true, false>"
    assert (found.epilogue_tile.m, found.epilogue_tile.n) == (64, 32)
    assert found.transaction_nbytes == 4096


def test_example_72b_reuses_c_and_has_four_stages() -> None:
    found = build_epilogue(
        EpilogueRequest(arch="sm100", tile=(128, 128, 256), c="f32", d="nvfp4")
    )
    assert found.reuse_smem_c
    assert found.storage_nbytes == 67_584
    assert found.mainloop_stages == 4


def test_example_72a_has_three_stages_of_c() -> None:
    found = build_epilogue(
        EpilogueRequest(
            arch="sm100", tile=(256, 256, 256), cluster=(2, 4), c="bf16", d="bf16"
        )
    )
    assert (found.epilogue_tile.m, found.epilogue_tile.n) == (128, 128)
    assert found.stages_c == 3
    assert found.storage_nbytes == 100_352


@pytest.mark.parametrize("row", FAMILY["sm100_mainloop"])
def test_stages_beside_an_epilogue_on_sm100(row: str) -> None:
    group, m, n, k, cluster_m, cluster_n, vec_size, epilogue = map(int, row.split())
    operands = {16: "nvfp4", 32: "mxfp4", 0: "e4m3"}[vec_size]
    request = EpilogueRequest(
        arch="sm100",
        tile=(m, n, k),
        cluster=(cluster_m, cluster_n),
        schedule=f"TmaWarpSpecialized{group}Sm",
        operands=operands,
    )
    stages, _, mainloop, beside, accumulators = FAMILY["sm100_mainloop"][row][:5]
    assert mainloop_stages(request, epilogue) == stages
    assert stages * stage_nbytes(request) == mainloop
    if vec_size:  # the program is given two stages for the one without scales
        assert accumulator_stages(request) == accumulators
        assert kernel_nbytes(accumulators) == beside


@pytest.mark.parametrize("row", FAMILY["sm90_mainloop"])
def test_stages_beside_an_epilogue_on_sm90(row: str) -> None:
    m, n, k, bits, epilogue = map(int, row.split())
    operands = {32: "f32", 16: "f16", 8: "e4m3"}[bits]
    request = EpilogueRequest(arch="sm90", tile=(m, n, k), operands=operands)
    assert mainloop_stages(request, epilogue) == FAMILY["sm90_mainloop"][row][0]


def test_arrays_of_pointers_have_no_count_of_stages() -> None:
    request = EpilogueRequest(
        arch="sm90", tile=(128, 128, 64), schedule="PtrArrayTmaWarpSpecialized"
    )
    assert build_epilogue(request).mainloop_stages is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"c": "complex<f32>"}, "complex elements are not built here"),
        ({"d_layout": "nhwc"}, "im2col layouts are not built here"),
        ({"operation": "Softmax"}, "operation: 'Softmax'; take 'ScaledAcc'"),
        ({"operation": "BinaryMask"}, "operation: 'BinaryMask'; take 'ScaledAcc'"),
        ({"operation": "LinCombTopKSoftmaxCol"}, "top-k and softmax"),
        (
            {"schedule": "FastF32NoSmemWarpSpecialized1Sm"},
            "as sums of BF16 ones are not",
        ),
        ({"schedule": "Tma"}, "schedule: 'Tma'; take 'auto'"),
        ({"c": "f17"}, "c: 'f17'; take 'void', 'f32'"),
        ({"tile": (128, 0, 256)}, "tile: 0; need a whole number of at least 1"),
        ({"tile": (128, 128)}, "tile: (128, 128); need 3 whole numbers"),
        ({"epilogue_tile": "64,32"}, "epilogue_tile: '64,32'; need 2 whole numbers"),
        ({"aux": "f16"}, "aux='f16': LinearCombination has none"),
        ({"bias": "f16"}, "bias='f16': LinearCombination has none"),
        ({"activation": "relu"}, "activation='relu': LinearCombination has none"),
        ({"operation": "LinCombBlockScaleFactor"}, "scales belong to a D in blocks"),
        ({"callbacks": (1, 0)}, "callbacks: 0; need a whole number of at least 1"),
        (
            {"callbacks": (1, 1), "operation": "ScaledAcc"},
            "give one of them; callbacks are an operation that is built already",
        ),
        ({"align_c": 0}, "align_c: 0; need a whole number of at least 1"),
        ({"grouped": "yes"}, "grouped: 'yes'; take False, True"),
    ],
)
def test_bad_input_is_refused_in_words(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        EpilogueRequest(**{"arch": "sm100", "tile": (128, 128, 256), **given})
    assert said in str(caught.value)


def test_narrow_elements_need_all_lanes() -> None:
    request = EpilogueRequest(
        arch="sm100", tile=(64, 128, 128), operands="e4m3", d="e2m1"
    )
    with pytest.raises(BuilderRefusal) as caught:
        build_epilogue(request)
    assert caught.value.reason == "num_dp == 32"


def test_a_load_that_is_too_wide_for_a_subtile_is_refused() -> None:
    request = EpilogueRequest(
        arch="sm100",
        tile=(128, 64, 64),
        cluster=(2, 1),
        schedule="TmaWarpSpecialized2Sm",
        epilogue_tile=(64, 8),
        operands="f16",
        d_layout="column",
    )
    with pytest.raises(ConfigError, match="4 columns of f32 for each warp"):
        build_epilogue(request)


def test_a_subtile_larger_than_the_tile_is_refused() -> None:
    request = EpilogueRequest(
        arch="sm100",
        tile=(64, 128, 64),
        schedule="TmaWarpSpecialized1Sm",
        epilogue_tile=(128, 64),
    )
    with pytest.raises(
        ConfigError, match=r"larger than the tile\. The nearest is 64,64"
    ):
        build_epilogue(request)


def test_a_bias_of_four_bits_along_n_is_refused() -> None:
    request = EpilogueRequest(
        arch="sm100",
        tile=(128, 128, 256),
        d="nvfp4",
        bias=None,
        operation="LinCombPerColBiasBlockScaleFactor",
    )
    with pytest.raises(ConfigError, match="with a bias of e2m1"):
        build_epilogue(request)


def test_a_pair_has_an_even_number_of_rows() -> None:
    request = EpilogueRequest(
        arch="sm100",
        tile=(129, 64, 64),
        cluster=(2, 1),
        schedule="TmaWarpSpecialized2Sm",
    )
    with pytest.raises(BuilderRefusal, match=r"129 rows.*The nearest is 130"):
        build_epilogue(request)


def test_no_stage_fits_beside_an_epilogue_that_is_too_large() -> None:
    for arch in ("sm90", "sm100"):
        request = EpilogueRequest(arch=arch, tile=(128, 128, 256))
        assert mainloop_stages(request, 1 << 20) == 0


def test_what_is_no_request_is_refused() -> None:
    with pytest.raises(InputError, match="need an EpilogueRequest"):
        build_epilogue(None)  # type: ignore[arg-type]
