"""What a gold set says of two systems that people compared: the columns of its rows, and a section of its manifest."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from annotate.core import stages
from annotate.goldsets.arrays import each
from annotate.goldsets.export import Export, Source
from annotate.goldsets.records import live
from annotate.models import Judgment
from corpora.threads.messages import compared

REPLIES = pa.struct([("system", pa.string()), ("replies", pa.list_(pa.string()))])
PREFERRED = pa.struct([("label", pa.string()), ("votes", pa.int32())])


def systems(rows: Source) -> pa.Array:
    return each(lambda *both: both, pa.list_(pa.string()), *(rows.own[f"comparison__system_{which}"] for which in "ab"))


def replies(rows: Source) -> pa.Array:
    columns = (rows.own[f"comparison__{name}_{which}"].to_pylist() for which in "ab" for name in ("system", "replies"))
    found = [
        [(system_a, json.loads(replies_a)), (system_b, json.loads(replies_b))]
        for system_a, replies_a, system_b, replies_b in zip(*columns, strict=True)
    ]
    return pa.array(found, pa.list_(REPLIES))


def preferred(rows: Source) -> pa.Array:
    """Of answers that count, in the order of the systems, ties last."""
    answers = rows.said.marked(live(rows.said, Judgment.ANSWER))
    counted = (Counter(label for (label,) in said) for said in answers.each("label"))
    found = [[(label, said[label]) for label in rows.export.task.labels if said[label]] for said in counted]
    return pa.array(found, pa.list_(PREFERRED))


def first(rows: Source) -> pa.Array:
    """Of each judgment."""
    of = np.repeat(rows.judged["pk"].to_numpy(), rows.said.sizes).tolist()
    sides = map(rows.export.sides.get, zip(of, rows.said.held["annotator"].to_pylist(), strict=True))
    return pa.array(sides, pa.string())


def section(export: Export) -> dict[str, Any]:
    """The systems with their files, how many different messages and comparisons there are, how many rows are copies of
    a comparison, and on how many comparisons nobody was asked, since both systems suggest the same.
    """
    units, parameters = export.task.units.exported(), export.draw.parameters
    message, comparisons = export.kind.fields[0], units.filter(copy_of=None)
    items = units.order_by().values_list("item", "item__language", "item__fields").distinct().iterator()
    return {
        "systems": parameters["systems"],
        "records": parameters["records"],
        "messages": len({(language, compared(fields[message])) for _, language, fields in items}),
        "comparisons": comparisons.count(),
        "copies": units.exclude(copy_of=None).count(),
        "equal": comparisons.filter(stage=stages.AGREED).count(),
    }
