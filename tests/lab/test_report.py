"""The report: the same bytes twice, each figure with its kind; a reader's own file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from typer.main import get_command

from fp4ref.commands import app
from fp4ref.errors import InputError
from fp4ref.lab.banks import access
from fp4ref.lab.report import by_bank, tables
from fp4ref.lab.request import Request, read_request

COMMANDS = get_command(app)
MINE = """\
[parameters]
clock = 1.9e9

[[pattern]]
name = "mine"
width = 16
offsets = [0, 272, 544]

[[pattern]]
name = "swizzled"
width = 16
start = 1024
stride = 128
swizzle = true
"""


def said(*words: str) -> str:
    result = CliRunner().invoke(COMMANDS, ["lab", *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_two_runs_print_the_same_bytes() -> None:
    assert said() == said()
    assert said("--json") == said("--json")


def test_no_line_is_longer_than_80_columns_and_every_table_says_its_kind() -> None:
    text = said()
    assert max(map(len, text.splitlines())) <= 80
    for table in tables(Request()):
        assert all(table.headings)
        assert table.kind.split(" beside ")[0] in ("compiled", "documented", "model")
        assert f"{table.title} ({table.kind})" in text


def test_json_has_every_table_with_its_numbers() -> None:
    found = {table["id"]: table for table in json.loads(said("--json"))}
    assert list(found) == [table.id for table in tables(Request())]
    rows = {row["workload"]: row for row in found["bounds"]["rows"]}
    assert rows["003"]["record_seconds"] == 543e-6
    assert rows["003"]["record_in_band"] is True
    assert rows["003"]["binding"]["published"] == "L2"
    smem = [row["nbytes"] for row in found["smem"]["rows"] if not row["fits"]]
    assert smem == [233_472]
    refused = [
        row["name"] for row in found["parameters"]["rows"] if row["trust"] == "X"
    ]
    assert refused == ["mma_latency_11", "tmem_bandwidth_per_sm"]


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    request = read_request(path)
    assert request.parameters["clock"].value == 1.9e9
    (name, mine), (_, swizzled) = request.patterns
    assert (name, mine.passes, mine.most_lanes) == ("mine", 1, 1)
    assert swizzled.offsets[:3] == (1024, 1152 + 16, 1280 + 32)
    assert not mine.load
    path.write_text(MINE.replace("[0, 272, 544]", "[0, 0, 272, 272]\nload = true"))
    (_, mine), _ = read_request(path).patterns
    assert (mine.load, len(mine.phases)) == (True, 2)
    assert swizzled.passes == 4
    text = said(str(path))
    assert by_bank(mine) in text
    assert "1.9e+09" in text


def test_the_text_says_which_record_is_outside(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[parameters]\nl2_bandwidth = 21e12\nsmem_port_shared = 0\n")
    assert re.search(r"^ 003 .* 543 +inside *$", said(), re.M)
    assert re.search(r"^ 003 .* 543 +outside *$", said(str(path)), re.M)


def test_the_text_has_a_sign_for_each_bank() -> None:
    assert by_bank(access([0, 256, 4, 4], 4)).splitlines() == [
        "lanes, bank 0   4   8   12  16  20  24  28",
        "0-3         21..............................  2 passes",
    ]
    assert by_bank(access([128 * lane for lane in range(32)], 4)).splitlines()[1] == (
        "0-31        w...............................  32 passes"
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("clock", "clok", 2, "clok: no such parameter; there are sms, clock"),
        ("1.9e9", "-1", 2, "clock = -1: need a finite number, and not a negative"),
        ("1.9e9", "9e9", 2, "clock = 9e+09 Hz: published is 1.8e+09 to 1.965e+09"),
        ("1.9e9", "1" + 400 * "0", 2, "clock: need a number that a float can hold"),
        ("clock = 1.9e9", "mma_latency_11 = 1", 2, "mma_latency_11: do not use"),
        (
            "clock = 1.9e9",
            "first_load_latency = -5",
            2,
            "first_load_latency = -5: need",
        ),
        ("544]", "232448]", 4, "pattern 'mine': lane 2: bytes 232,448 to 232,463 are"),
        ("272, ", "8, ", 4, "pattern 'mine': lane 1: byte 8 is no multiple of the 16"),
        ("width = 16\nstart", "width = 2\nstart", 9, "pattern 'swizzled': width: 2"),
        ("stride = 128", "stride = 99984", 9, "pattern 'swizzled': lane 3: bytes"),
        ("offsets", "offset", 4, "pattern 'mine': has name, offset, width; need"),
        ("[0, 272, 544]", "5", 4, "pattern 'mine': offsets: 5; need a list"),
        ("swizzle = true", "swizzle = 1", 9, "pattern 'swizzled': swizzle: 1; need"),
        ("swizzle = true", "load = 1", 9, "pattern 'swizzled': load: 1; need true or"),
        ('"swizzled"', '"mine"', 9, "pattern 'mine': there is one"),
        ('"mine"', "7", 4, "pattern: name: need a text"),
        ("[parameters]", "[figures]", 1, "figures: need [parameters] or [[pattern]]"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(
    tmp_path: Path, old: str, new: str, line: int, what: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE.replace(old, new, 1))
    with pytest.raises(InputError, match="^" + re.escape(f"{path}:{line}: {what}")):
        read_request(path)


def test_the_command_refuses_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    wrong = {
        "[parameters": "no TOML",
        "a = " + 5000 * "9": "no TOML",
        "a = " + 5000 * "[": "no TOML",
        "a = 1": "need [parameters]",
    }
    for text, words in wrong.items():
        path.write_text(text)
        result = CliRunner().invoke(COMMANDS, ["lab", str(path)])
        assert result.exit_code == 2
        assert words in result.output.replace("\n", " ")
        assert "Traceback" not in result.output
    assert CliRunner().invoke(COMMANDS, ["lab", str(tmp_path)]).exit_code == 2
    assert CliRunner().invoke(COMMANDS, ["lab", str(tmp_path / "none")]).exit_code == 2
