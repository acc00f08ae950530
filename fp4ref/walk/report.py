"""report: the walk's report as a page of text with one picture."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from fp4ref.device.compile import HOPPER
from fp4ref.trace import Trace
from fp4ref.walk.inputs import NonFinite
from fp4ref.walk.outcome import WalkReport
from fp4ref.walk.picture import draw, timeline

PICTURE_COLUMNS = 100
"""Width of the report as a picture, in characters."""


def to_svg(report: WalkReport, trace: Trace) -> str:
    """Return the report as a picture that loads nothing from outside."""
    console = Console(record=True, width=PICTURE_COLUMNS, file=io.StringIO())
    render(report, trace, console, drawn=True)
    svg = draw(console.export_svg(title="fp4ref walk"), trace, PICTURE_COLUMNS)
    return re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL)


def render(
    report: WalkReport, trace: Trace, console: Console, *, drawn: bool = False
) -> None:
    """Print the whole report; its timeline is blank if bars are `drawn` later."""
    m, n, k = report.sizes
    console.print(
        Panel(
            Text.assemble(
                (report.title, "bold"),
                f"\ny = x @ w.T, {m} x {n} x {k}\n",
                (report.source.split(" (")[0], "dim"),
            ),
            title="fp4ref walk",
        )
    )
    for title, body in (
        ("1  Quantised to NVFP4", _quantised(report)),
        ("2  What the machine did", _machine(report)),
        ("3  Who worked when", timeline(trace, console.width, drawn=drawn)),
        ("4  Emulator and CUDA kernel, side by side", _beside(report)),
        ("5  What was checked against what", _checks(report)),
    ):
        console.print(f"\n[bold]{title}[/bold]", highlight=False)
        console.print(body, highlight=False)
    console.print("\n[bold]6  What you can do next[/bold]", highlight=False)
    console.print(_next(report), highlight=False)


def _facts(rows: list[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True, min_width=22)
    table.add_column()
    for row in rows:
        table.add_row(*row)
    return table


def _quantised(r: WalkReport) -> RenderableType:
    q, e = r.quantisation, r.quantisation_error

    def scales(name: str) -> str:
        amax, scale = q[f"{name} amax"], q[f"{name} global scale"]
        return f"largest value {amax:.4g}, global scale {scale:.6g}"

    nonfinite = _nonfinite(r.nonfinite)
    some = ", over the finite elements" if nonfinite else ""
    error = "no element of y is finite"
    if e:
        error = (
            f"{e['x and w']:.2%} Frobenius (x alone {e['x only']:.2%}, w alone "
            f"{e['w only']:.2%}), against float64{some}"
        )
    return _facts(
        [
            ("x", scales("x")),
            ("w", scales("w")),
            *([("NaN and Inf", "\n".join(nonfinite))] if nonfinite else []),
            *(("note", escape(note)) for note in r.notes),
            ("NVFP4 error of y", error),
        ]
    )


def _nonfinite(found: dict[str, NonFinite]) -> list[str]:
    """Say how many there are, where the first is, and what becomes of them."""
    texts = []
    for name, each in found.items():
        column = "column" if name == "y" else "k"
        parts = [
            f"{count:,} {kind} (first at row {first[0]}, {column} {first[1]})"
            for count, kind, first in (
                (each.nan, "NaN", each.first_nan),
                (each.inf, "Inf", each.first_inf),
            )
            if first
        ]
        texts.append(f"{name} holds {' and '.join(parts)}")
    nan = any(name in found and found[name].nan for name in "xw")
    inf = any(name in found and found[name].inf for name in "xw")
    if nan:
        texts.append(
            "E2M1 has no NaN: the scale of its block of 16 becomes NaN (byte 0x7F), "
            "and with it the whole row of y for a NaN in x, the whole column for one "
            "in w"
        )
    if inf:
        texts.append(
            "E2M1 has no Inf: the global scale of its matrix becomes 1, the scale of "
            "its block 448, and the Inf 6 x 448 = 2688"
        )
    if "y" in found and found["y"].inf:
        texts.append("an Inf in y is a result beyond the output format")
    return texts


def _machine(r: WalkReport) -> RenderableType:
    c, s = r.machine, r.config
    part = "" if r.tiles_run == r.tiles_in_all else f" of {r.tiles_in_all}"
    return _facts(
        [
            (
                "tiles",
                f"{r.tiles_run}{part} of {s['tile']}, {c['k_tiles']} k-tiles each, by "
                f"{c['ctas']} CTAs on {s['sms']} SMs "
                f"({s['tile_scheduler']} tile scheduler)",
            ),
            (
                "mainloop ring",
                f"{s['stages']} stages in {s['smem_nbytes']:,} bytes of shared memory, "
                f"wrapped {c['ring_wraps']} times",
            ),
            (
                "TMA",
                f"{c['tma_loads']} loads, {c['tma_load_bytes']:,} bytes; "
                f"{c['tma_stores']} stores, {c['tma_store_bytes']:,} bytes",
            ),
            (
                "tensor core",
                f"{c['tcgen05.mma']} MMAs of {s['mma']} "
                f"({c['macs']:,} multiply-adds), {c['tcgen05.cp']} scale copies, "
                f"{c['tcgen05.commit']} commits",
            ),
            (
                "mbarriers",
                f"{c['mbarriers']} barriers, {c['phases_completed']} phases completed, "
                f"{c.get('blocked_waits', 0)} waits that blocked",
            ),
            ("output", s["output"]),
            ("schedule", f"{s['schedule']}: when asynchronous work lands"),
        ]
    )


def _beside(r: WalkReport) -> RenderableType:
    """One event of each kind, with both statements."""
    if r.kernel is None:
        return Text("the kernel did not run (--backend emulator)", style="dim")
    if not r.kernel.code:
        words = "a card shows no events; --backend ptx has them side by side"
        return Text(f"{r.kernel.gpu}: {words}", style="dim")
    parts: list[RenderableType] = [
        Text(f"{r.kernel.code}: its PTX ran on the same machine", style="dim")
    ]
    for pair in r.kernel.pairs:
        head, *statements = pair.split("\n")
        parts.append(Text(head))
        for statement in statements:
            text = Text(statement.strip(), style="dim", overflow="fold")
            parts.append(Padding(text, (0, 0, 0, 4)))
    return Group(*parts)


def _checks(r: WalkReport) -> RenderableType:
    def mark(ok: bool) -> str:
        return "[green]equal[/green]" if ok else "[bold red]DIFFERENT[/bold red]"

    bits_ok = r.bits_equal == r.bits_compared
    within = "within it" if r.bound_ratio <= 1 else "[bold red]BEYOND IT[/bold red]"
    nan = any(each.nan for each in r.nonfinite.values())
    as_it = ", NaN where the operands have one and nowhere else" if nan else ""
    return _facts(
        [
            (
                "every bit of D",
                f"{mark(bits_ok)}: {r.bits_equal:,} of {r.bits_compared:,} values "
                "match the integer model computed on whole matrices",
            ),
            (
                "float64",
                f"proven bound of the datapath: {within} (worst {r.bound_ratio:.2g} of "
                f"the allowed difference{as_it})",
            ),
            *_kernel_check(r, mark),
            (
                "frames",
                f"{r.frames_seen} of the {r.frames_expected} event frames of the index "
                "seen",
            ),
            (
                "machine rules",
                "no fault: no unwritten byte read, no byte touched in flight, all TMEM "
                "freed",
            ),
            (
                "this rests on",
                "the emulated SM, on which kernels of CUTLASS and Triton compute right "
                "results, and on the published MMA-Sim model of the MMA"
                + _no_blackwell(r),
            ),
            (
                "time",
                ", ".join(f"{name} {s:.1f} s" for name, s in r.seconds.items()),
            ),
        ]
    )


def _no_blackwell(r: WalkReport) -> str:
    """Say so, unless a card with tcgen05 gave D too."""
    gpu = r.kernel.gpu if r.kernel else ""
    on_hopper = f"compute capability {HOPPER[0]}.{HOPPER[1]}," in gpu
    return ". No Blackwell GPU was used" if on_hopper or not gpu else ""


def _kernel_check(r: WalkReport, mark: Callable[[bool], str]) -> list[tuple[str, str]]:
    """Say whether emulator and compiled kernel agree, and where they first differ."""
    if r.kernel is None:
        return []
    rows = []
    events = sum(r.kernel.events.values())
    text = f"{mark(r.kernel.ok)}: {events} hardware events, byte for byte"
    if not r.kernel.ok:
        text += f"; first difference: {escape(r.kernel.first_difference)}"
    if r.kernel.code:
        rows.append(("the CUDA kernel", text))
    if r.kernel.gpu:
        rows.append(("on your GPU", f"{mark(r.kernel.gpu_ok)}: D on {r.kernel.gpu}"))
    elif r.kernel.no_gpu:
        rows.append(("on a GPU", f"did not run: {escape(r.kernel.no_gpu)}"))
    return rows


def _next(r: WalkReport) -> RenderableType:
    rows = []
    if r.trace_file:
        rows.append(("trace", escape(r.trace_file)))
    rows += [
        ("look up a frame", "fp4ref frames 6.6.9"),
        ("another order", "fp4ref walk --schedule late --trace late"),
        ("one tile of many", "fp4ref walk --size 2048x2048x2048 --tiles 5,0"),
        ("how far to trust it", "fp4ref fidelity"),
    ]
    return _facts(rows)
