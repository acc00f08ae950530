"""rings: who signals whom. One row for each ring of barriers, drawn from the plan.

The producer's arrivals complete the full barrier of a stage, for which the consumer
waits; the consumer's complete the empty one, for which the producer waits.
"""

from __future__ import annotations

from collections.abc import Sequence

from drawing import WIDTH, arrow_across, box, figure, svg, text
from wording import row

from fp4ref import GemmConfig
from fp4ref.gemm.plan import plan
from fp4ref.gemm.plan.rings import Arrivals, RingSpec

FILE = "rings.svg"
CONFIG = GemmConfig.nvfp4(c_format="f32", beta=1.0)
"""It loads C and asks CLC, so every ring is at work."""

_BOX = 150
_LEFT, _RIGHT = 10, WIDTH - 10 - _BOX


def drawn(config: GemmConfig = CONFIG) -> list[RingSpec]:
    """Return the rings that a configuration initialises."""
    return [ring for ring in plan(config).rings if ring.used]


def picture(rings: Sequence[RingSpec]) -> str:
    """Producer, full, consumer, and back by empty; one row for each ring."""
    parts, y = [], 10
    for ring in rings:
        consumers = [each.name for each in ring.consumers]
        height = max(78, 18 * len(consumers) + 16)
        middle = y + height // 2
        parts.append(box(_LEFT, y, _BOX, height, [ring.producer.name], "machine"))
        parts.append(box(_RIGHT, y, _BOX, height, consumers, "machine"))
        start, end = _LEFT + _BOX, _RIGHT
        parts.append(text(WIDTH / 2, middle + 5, _name(ring), bold=True))
        parts.append(text(WIDTH / 2, middle - 24, _signal("full", ring.full)))
        parts.append(arrow_across(start, end, middle - 16))
        if ring.empty is not None:
            parts.append(text(WIDTH / 2, middle + 34, _signal("empty", ring.empty)))
            parts.append(arrow_across(end, start, middle + 17))
        y += height + 12
    return svg(y, alt(rings), parts)


def alt(rings: Sequence[RingSpec]) -> str:
    """One sentence for readers who do not see the picture."""
    each = [f"{r.name} from {r.producer.name} to {_consumers(r)}" for r in rings]
    return f"Who signals whom by rings of barriers: {'; '.join(each)}."


def table(rings: Sequence[RingSpec]) -> str:
    """The text twin."""
    heads = ("ring", "stages", "producer", "full", "consumer", "empty")
    lines = [row(*heads), row("---", "---:", *["---"] * 4)]
    for ring in rings:
        back = _counts(ring.empty) if ring.empty else "none: it is passed once"
        cells = (ring.producer.name, _counts(ring.full), _consumers(ring), back)
        lines.append(row(f"`{ring.name}`", str(ring.stages), *cells))
    return "\n".join(lines)


def page() -> str:
    """The picture and its text twin, as part of a page."""
    rings = drawn()
    return f"{figure(FILE, alt(rings))}\n\n{table(rings)}\n"


def _name(ring: RingSpec) -> str:
    return f"{ring.name}, {ring.stages} stage{'s' * (ring.stages > 1)}"


def _consumers(ring: RingSpec) -> str:
    return ", ".join(each.name for each in ring.consumers)


def _signal(barrier: str, arrivals: Arrivals) -> str:
    return f"{barrier}: {_counts(arrivals)}"


def _counts(arrivals: Arrivals) -> str:
    """How often who arrives, and with how many bytes."""
    counted = f"{arrivals.count} x {arrivals.by}"
    return f"{counted}, {arrivals.tx_bytes:,} B" if arrivals.tx_bytes else counted
