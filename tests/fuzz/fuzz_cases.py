"""fuzz_cases: one command line, with the files that it finds in its folder."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from fuzz_files import TraceParts, archive, matrices, npy, odd_notebook, odd_problem

from fp4ref.frames import FRAMES

Files = dict[str, bytes]


@dataclass(frozen=True)
class Case:
    """What is run.

    Attributes
    ----------
    program
        ``"fp4ref"`` or ``"classroom"``.
    words
        Its arguments.
    files
        Content of the folder, by name; it is the working directory.
    plain
        Whether every option is one that the command takes, so that the run gets past
        the checks of its arguments.
    """

    program: str
    words: tuple[str, ...]
    files: Files = field(default_factory=dict)
    plain: bool = False


NAMES = ("a", "\udcff", "[/b]", "b c", "ü", "x" * 260, "no/where", ".", "", "/dev/null")
INTEGERS = ("0", "1", "2", "-1", "3.5", "", "x", "160", "161", "100000", "9" * 30)
SIZES = (
    "1x1x32",
    "2x3x64",
    "1x1x33",
    "0x1x32",
    "-1x1x32",
    "1x1",
    "axbxc",
    "1x1x32x1",
    "99999999x99999x9999",
    "1x1x99999968",
    "9999999x9x32",
    "1_0x1x32",
    "9" * 5000 + "x1x32",
    "",
)
WALK_OPTIONS: dict[str, tuple[str, ...]] = {
    "--size": SIZES,
    "--seed": INTEGERS,
    "--output": ("f32", "bf16", "f16", "nvfp4", "fp5", ""),
    "--example": ("72b", "73", "[/b]"),
    "--tiles": ("0,0", "0,0,0", "1,0", "0", "-1,0", "9" * 20 + ",0", "a,b", ""),
    "--sms": INTEGERS,
    "--schedule": ("eager", "late", "7", "-3", "soon", "", "9" * 5000),
    "--trace": NAMES,
    "--perfetto": NAMES,
    "--svg": NAMES,
    "--player": NAMES,
}
GOOD_WALK = (
    (),
    ("--json",),
    ("--output", "bf16"),
    ("--output", "f16"),
    ("--output", "nvfp4"),
    ("--schedule", "late"),
    ("--schedule", "3", "--sms", "1"),
    ("--tiles", "0,0"),
    ("--svg", "p.svg"),
    ("--perfetto", "p.json"),
    ("--force",),
)
CUTLASS_OPTIONS: dict[str, tuple[str, ...]] = {
    "--m": ("-1", "0", "x", "9" * 12, "99999999999"),
    "--n": ("-5", "0", "", "2147483648"),
    "--k": ("-128", "0", "1e3", "9" * 40),
    "--sms": ("0", "-1", "161", "9" * 9),
    "--ordering": ("none", ""),
    "--schedule": ("soon", ""),
    "--trace": ("no/where",),
}
EPILOGUE_OPTIONS: dict[str, tuple[str, ...]] = {
    "--arch": ("sm90", "sm100", "sm120", ""),
    "--tile": (
        "128,128,64",
        "1,1,1",
        "64,24,64",
        "128",
        "-1,2,3",
        "9" * 40,
        "4096,1,1",
    ),
    "--cluster": ("2,1", "3,1", "0,1", "17,1", "x"),
    "--epilogue-tile": ("64,32", "64,8", "1,1", "128,4096", "64,", ""),
    "--c": ("void", "f32", "e2m3", "complex<f32>", "[/b]"),
    "--d": ("void", "f16", "nvfp4", "mxfp6_e2m3", "s8", "e3m2"),
    "--d-layout": ("column", "nhwc", "rows"),
    "--operands": ("f16", "mxfp8_e4m3", "s8", "x"),
    "--accumulator": ("f16", "s32", "f64"),
    "--align-d": ("1", "64", "0", "9" * 30, "x"),
    "--schedule": (
        *("TmaWarpSpecialized", "TmaWarpSpecialized2Sm", "NoSmemWarpSpecialized1Sm"),
        *("PtrArrayTmaWarpSpecialized1Sm", "FastF32NoSmemWarpSpecialized1Sm", "\udcff"),
    ),
    "--operation": (
        *("LinCombPerColBiasEltActAux", "LinCombDeEltAct", "Softmax", "BinaryMask"),
        *("LinCombTopKSoftmaxCol", "LinCombEltActBlockScaleFactor"),
    ),
    "--activation": ("gelu", "relu", "softmax"),
    "--aux": ("b1", "e2m1", "f32", "void"),
}
COMMANDS = (
    *("walk", "cutlass", "sass", "compare", "doctor", "plan", "frames", "fidelity"),
    *("faults", "epilogue"),
)
WRONG_WORDS = ("--nope", "-x", "--json=1", "[/b]", "\udcff", "--", "", "-h", "extra")


def walk_arguments(rng: random.Random) -> Case:
    """Options of every kind; most of them wrong."""
    words = ["walk"]
    for name in rng.sample(list(WALK_OPTIONS), rng.choice((1, 2, 2, 3))):
        words += [name, rng.choice(WALK_OPTIONS[name])]
    if "--size" not in words and rng.random() < 0.9:
        words += ["--size", "1x1x32"]
    if rng.random() < 0.1:
        words.append(rng.choice(NAMES))
    words += rng.sample(("--force", "--json", "--no-kernel"), rng.randrange(3))
    if "--no-kernel" not in words:
        words.append("--no-kernel")
    files = {}
    if rng.random() < 0.3:
        files[rng.choice(("walk.fp4trace.npz", "a", "a.fp4trace.npz"))] = b"precious"
    return Case("fp4ref", tuple(words), files)


def walk_file(rng: random.Random) -> Case:
    """A file that is odd, with options that are not."""
    words = ["walk", "x.npz", *rng.choice(GOOD_WALK)]
    if rng.random() < 0.97:
        words.append("--no-kernel")
    return Case("fp4ref", tuple(words), {"x.npz": odd_problem(rng)}, True)


def trace_commands(traces: list[TraceParts]) -> Callable[[random.Random], Case]:
    """Return a maker of cases that read traces."""

    def make(rng: random.Random) -> Case:
        parts = rng.choice(traces)
        files = {"a.npz": parts.odd(rng), "b.npz": parts.whole}
        if rng.random() < 0.1:
            files["b.npz"] = rng.choice(traces).whole
        frame = ("frames", rng.choice(list(FRAMES)), "--trace", "a.npz")
        compared = [("compare", "a.npz", "b.npz"), ("compare", "b.npz", "a.npz")]
        words = rng.choice([frame, *compared, (*compared[0], "--json")])
        return Case("fp4ref", words, files, True)

    return make


def other_arguments(rng: random.Random) -> Case:
    """The other commands, and none."""
    command = rng.choice((*COMMANDS, "walks", "--help", ""))
    words = [command]
    if command == "cutlass":
        words.append(rng.choice(("72b", "73", "[/b]", "tutorial-01", "")))
        name = rng.choice(list(CUTLASS_OPTIONS))
        words += [name, rng.choice(CUTLASS_OPTIONS[name])]
    elif command == "epilogue":
        for name in rng.sample(list(EPILOGUE_OPTIONS), rng.choice((1, 2, 3, 5))):
            words += [name, rng.choice(EPILOGUE_OPTIONS[name])]
    elif command == "frames":
        words.append(rng.choice((*list(FRAMES)[::9], "9.9", "[/b]", "\udcff", "6")))
        words += rng.sample(("--code", "--json"), rng.randrange(3))
    elif command == "faults":
        words.append(rng.choice(("wait-on-the-peers-barrier", "[/b]", "\udcff", "")))
        words += rng.choice(((), ("--answer",), ("--backend", ""), ("--schedule", "")))
    elif command == "compare":
        words += rng.sample(NAMES, rng.randrange(4))
    elif command == "walk":
        words += ["--size", rng.choice(SIZES[2:])]
    if rng.random() < 0.4:
        words.insert(rng.randrange(len(words) + 1), rng.choice(WRONG_WORDS))
    if rng.random() < 0.3:
        words.append("--json")
    return Case("fp4ref", tuple(words))


def class_files(rng: random.Random) -> Case:
    """Notebooks that come back from a class."""
    words = ["grade", "class"] + ["--json"] * rng.randrange(2)
    return Case("classroom", tuple(words), {"class/n.ipynb": odd_notebook(rng)}, True)


def class_arguments(rng: random.Random) -> Case:
    """Options of the class's commands."""
    words = [rng.choice(("grade", "student", "grades"))]
    words += rng.sample((*NAMES, "--timeout", "0", "--force", "--json"), 2)
    files = {"a/n.ipynb": odd_notebook(rng)} if rng.random() < 0.5 else {}
    return Case("classroom", tuple(words), files)


def right_problem(rng: random.Random) -> bytes:
    """A file that a walk takes."""
    return archive({f"{n}.npy": npy(a) for n, a in matrices(rng).items()})
