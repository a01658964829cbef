"""Decoys: posts known not to be in the language asked about, hidden among the posts of a verification."""

from annotate.kinds.control import QualityControl, register
from annotate.kinds.labels import negative
from annotate.quality.decoys import decoys, known_units, mixed, reusable
from annotate.work.task_opening import Entry


class Decoys(QualityControl):
    """Whoever says Yes to a decoy was wrong. Labels of other tasks that answer the question are reused on request."""

    name = "decoys"
    look_at = "audit"
    hides = True

    def enter(self, entry: Entry) -> None:
        task, asked, opened = entry.task, entry.asked, entry.opened
        if "known" not in entry.shared:
            entry.shared["known"] = known_units(entry.corpus)
        known = entry.shared["known"]
        drawn = list(entry.items)
        entry.reused = reusable(drawn, asked, known) if entry.reuses else {}
        hidden, opened.wanted[asked] = decoys(task, asked, drawn, known, entry.reused)
        entry.items = mixed(task, drawn, hidden, asked)
        entry.known_answers = dict.fromkeys((item.pk for item in hidden), negative(asked))
        opened.decoys[asked], opened.reused[asked] = len(hidden), len(entry.reused)


register(Decoys())
