"""The machine of a unit as a picture, and as a list for a phone. Where each stage stands and how each arrow runs in the
picture is said in literal tables.

Which arrows there are and what stands on them is said in core/stages.py; a test holds these tables to it.
"""

from collections.abc import Mapping
from typing import NamedTuple

from django.utils.safestring import SafeString

from annotate.core.stages import (
    ADJUDICATION,
    AGREED,
    COPIED,
    DISCARDED,
    FINISHED,
    LABELLED,
    NEW,
    QUEUED,
    STAGES,
    arrows,
)
from annotate.reports.svg import ACCENT, LINE, ON_ACCENT, QUIET, element, escaped, picture, text, tooltip

WIDTH, HEIGHT = 680, 640
BOX_WIDTH, BOX_HEIGHT, LINE_HEIGHT = 116, 34, 15

# Stage -> the middle of its box.
PLACES: Mapping[str, tuple[int, int]] = {
    NEW: (340, 30),
    COPIED: (600, 30),
    AGREED: (190, 130),
    QUEUED: (340, 255),
    ADJUDICATION: (340, 455),
    LABELLED: (110, 600),
    DISCARDED: (570, 600),
}


class Route(NamedTuple):
    """How an arrow runs, and where the words on it begin, end or have their middle."""

    path: str
    x: int
    y: int
    anchor: str = "middle"


ROUTES: Mapping[tuple[str, str], Route] = {
    (NEW, COPIED): Route("M398 30H538", 468, 22),
    (NEW, AGREED): Route("M300 47L222 109", 248, 74, "end"),
    (NEW, LABELLED): Route("M282 26H70Q40 26 40 56V540Q40 560 56 579", 48, 300, "start"),
    (NEW, QUEUED): Route("M340 47V234", 348, 132, "start"),
    (AGREED, QUEUED): Route("M212 147L296 234", 248, 208, "end"),
    (QUEUED, QUEUED): Route("M398 247C456 217 456 283 402 262", 450, 240, "start"),
    (QUEUED, ADJUDICATION): Route("M318 272V434", 310, 340, "end"),
    (ADJUDICATION, QUEUED): Route("M362 438V276", 370, 352, "start"),
    (QUEUED, LABELLED): Route("M282 262C180 290 104 400 98 579", 130, 380, "end"),
    (LABELLED, QUEUED): Route("M124 583C132 450 196 330 285 278", 186, 420, "start"),
    (QUEUED, DISCARDED): Route("M398 271C500 300 576 400 584 579", 556, 380, "start"),
    (DISCARDED, QUEUED): Route("M558 583C550 450 484 340 394 278", 488, 398, "end"),
    (ADJUDICATION, ADJUDICATION): Route("M398 447C456 417 456 483 402 462", 446, 452, "start"),
    (ADJUDICATION, LABELLED): Route("M300 472L172 585", 206, 532, "end"),
    (LABELLED, ADJUDICATION): Route("M168 606Q290 590 326 476", 258, 585, "start"),
    (ADJUDICATION, DISCARDED): Route("M380 472L508 585", 474, 532, "start"),
    (DISCARDED, ADJUDICATION): Route("M512 606Q390 590 354 476", 422, 585, "end"),
    (LABELLED, DISCARDED): Route("M168 612H508", 340, 628),
    (DISCARDED, DISCARDED): Route("M628 592C676 566 676 634 632 607", 672, 568, "end"),
}


def stages_picture() -> SafeString:
    said = ". ".join(f"From {start} to {end}: {', '.join(events)}" for (start, end), events in arrows().items())
    head = element("path", d="M0 0L8 4L0 8z", fill=QUIET)
    arrow_head = {"viewBox": "0 0 8 8", "refX": 7, "refY": 4, "markerWidth": 8, "markerHeight": 8, "orient": "auto"}
    marker = element("marker", head, id="arrow-head", markerUnits="userSpaceOnUse", **arrow_head)
    parts = [element("defs", marker)]
    parts += [part for edge, events in arrows().items() for part in _arrow(ROUTES[edge], events)]
    parts += [_box(stage) for stage in STAGES]
    size = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "width": WIDTH, "height": HEIGHT, "font_size": 12}
    return picture("The stages of a unit and the moves between them", f"{said}.", parts, **size)


def list_of_moves() -> SafeString:
    """What the picture says, for where there is no room for it."""
    return element("dl", *(part for stage in STAGES for part in _moves_from(stage)), class_="moves")


def _moves_from(stage: str) -> list[SafeString]:
    ends = [(end, events) for (start, end), events in arrows().items() if start == stage]
    said = [element("dd", escaped(end), element("small", escaped(", ".join(events)))) for end, events in ends]
    return [element("dt", escaped(stage)), *said] if said else []


def _arrow(route: Route, events: list[str]) -> list[SafeString]:
    line = element("path", d=route.path, fill="none", stroke=QUIET, stroke_width=1.25, marker_end="url(#arrow-head)")
    words = [
        text(event, route.x, route.y + LINE_HEIGHT * place, text_anchor=route.anchor)
        for place, event in enumerate(events)
    ]
    return [line, *words]


def _box(stage: str) -> SafeString:
    """Full where nobody has anything left to do."""
    x, y = PLACES[stage]
    done = stage in FINISHED
    box = element(
        "rect",
        x=x - BOX_WIDTH / 2,
        y=y - BOX_HEIGHT / 2,
        width=BOX_WIDTH,
        height=BOX_HEIGHT,
        rx=8,
        fill=ACCENT if done else "var(--raised, #ffffff)",
        stroke=ACCENT if done else LINE,
        stroke_width=1.5,
    )
    fill = {"fill": ON_ACCENT} if done else {}
    name = text(stage, x, y + 4, text_anchor="middle", font_weight=600, **fill)
    return element("g", tooltip(f"{stage}: {STAGES[stage]}"), box, name)
