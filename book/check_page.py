"""check_page: a report, a launch file and a workflow, each made or run as shown."""

from __future__ import annotations

from functools import cache

from wording import row

from fp4ref.evidence.check import EXIT_STATUS, Check, check, launch_template
from fp4ref.evidence.check.kernel_text import KernelText
from fp4ref.lessons.your_kernel import REVERSE, reverse, reverse_launch

NAME = "reverse.ptx"

WORKFLOW = """\
name: check the kernels
on: [pull_request]
permissions:
  contents: read
jobs:
  check:
    runs-on: ubuntu-24.04
    timeout-minutes: 20
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install ./fp4ref    # where you keep a checkout or a wheel of it
      - run: fp4ref check kernels/reverse.ptx --json > check.json
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: check
          path: check.json
"""

_FILLED = {
    'buffer = "buffer0"': 'buffer = "x"',
    "[buffer.buffer0]": "[buffer.x]",
    'dtype = "f32"                 # <- fill in: u8 to f64, bf16\n': "",
    "shape = [1024]                # <- fill in\n": "",
    "zeros = true                  # left out: undefined before the run\n": "",
    '# file = "in.npy" ': 'file = "in.npy"   ',
    "# instead of shape: what it holds": "# what it holds before the run",
    '# out = "out.npy" ': 'out = "out.npy"   ',
    '# expected = "want.npy" ': 'expected = "want.npy"   ',
    "# what it should hold: bits = true, or": "# what it should hold",
    "# rtol = 0.0                  # |found - want| <= atol + rtol * |want|": (
        "bits = true                   # or rtol and atol"
    ),
    "              # <- fill in: CTAs, x first": "              # CTAs, x first",
}
"""What a reader fills in, in the place of what the template says."""

_MEANS = {
    "clean": "no finding; advisories may be listed",
    "fault": "a race, a deadlock, misuse of the hardware, or no end",
    "mismatch": "every rule kept, and a result is not as expected",
    "bad input": "no PTX for sm_100, or a launch that does not fit; with its line",
    "unsupported": "an instruction that the machine does not model; nothing ran",
}


@cache
def example() -> Check:
    """The report on the kernel without its barrier."""
    text = KernelText(NAME, reverse(barrier=False))
    return check(text, reverse_launch(text.text))


def launch_file() -> str:
    """The template of the kernel, filled in."""
    text = launch_template(KernelText(NAME, REVERSE))
    for old, new in _FILLED.items():
        if old not in text:
            raise ValueError(f"the template has no {old!r}")
        text = text.replace(old, new)
    return text


def report() -> str:
    """The report, as a block."""
    return _block("text", example().report())


def statuses() -> str:
    """The table of exit statuses."""
    lines = [row("status", "exit status", "means"), row("---", "---", "---")]
    lines += [row(n, str(s), _MEANS[n]) for n, s in EXIT_STATUS.items()]
    tail = (
        "With `--json` the names are in `status`; the schema is "
        "`fp4ref/data/check_schema.json`."
    )
    return "\n".join([*lines, "", tail]) + "\n"


def pages() -> dict[str, str]:
    """Every part of the page by its path from ``book/``."""
    return {
        "_generated/check_report.md": report(),
        "_generated/check_status.md": statuses(),
        "_generated/check_launch.md": _block("toml", launch_file()),
        "_generated/check_workflow.md": _block("yaml", WORKFLOW),
    }


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"
