"""Audit samples: draw automatically labelled units and send them to readers."""

from collections.abc import Collection, Sequence

from django.db import transaction

from annotate.controls.audit_report import audit_counts, audits, in_audit
from annotate.core import stages
from annotate.core.draws.committed_draws import AUDIT, RECHECK
from annotate.core.estimation.label_errors import additional_units, neyman_allocation
from annotate.core.refusals import WrongStage
from annotate.kinds.control import QualityControl
from annotate.models import Task, Unit
from annotate.quality import commitments
from annotate.quality.agreement_strata import unread
from annotate.work.closure import check_languages, locked_open, units_of, where
from annotate.work.moves import BATCH, CHANGED, queue_agreed_units, queue_unit, save_all
from annotate.work.routes import Routes
from corpora.database.bulk_rows import batched, listed


@transaction.atomic
def add_audits(task: Task, number: int, languages: Collection[str] = ()) -> dict[str, int]:
    """Draw more units for the audit, and send them to readers.

    Units are not sent if readers have already labelled another unit with the same text.

    number: number of units to add; if fewer are left, all of them are added.
    languages: languages to divide the units among (label_errors.neyman_allocation); empty for all languages.

    Return the number of added units by stratum. Raise NotFound if the voters don't agree on any item in one of the
    languages, and WrongStage if the task is closed or no units are left.
    """
    # Also lock a unit that was labelled only because its copy was drawn. The unit itself can now be drawn.
    task = locked_open(task, unread(task).exclude(stage__in=(stages.AGREED, stages.COPIED)))
    by_language = task.units.exclude(agreed_label="").order_by()
    agreed = set(by_language.values_list(task.kind.statistics.audit_strata[0], flat=True).distinct())
    check_languages(languages, agreed, f"The voters agree on no {task.kind.noun} of task {task.name}")
    drawn_units = choose_more(task, number, languages)
    if not drawn_units:
        raise WrongStage(
            f"Nothing can be added to the audit of task {task.name}, because people read every "
            f"{task.kind.noun}{where(languages)} on which the voters agree."
        )
    units = units_of(task, drawn_units)
    for unit in units:
        unit.audited = True
    save_all(units, [], ["audited"])
    # Units that were drawn earlier aren't sent again, because they are no longer in the stage AGREED.
    queue_agreed_units(task.units.filter(in_audit()), "audited", Routes.load(task))
    return {label: len(units) for label, units in drawn_units.items()}


def choose_audits(task: Task, first: int) -> list[int]:
    """Draw the audit sample from newly added units, and return the keys of the drawn units.

    Units that the detectors agree on are drawn at random from each stratum. Power allocation determines the number per
    stratum. Copies can be drawn too, because the audit counts items, not texts. If a task is enlarged, the units drawn
    earlier remain in the sample.

    first: position of the first added unit.
    """
    added = task.units.exclude(agreed_label="").filter(position__gte=first)
    counts = additional_units(audit_counts(task), task.audit_share, task.audit_least)
    return commitments.draw_units(task, AUDIT, added, task.kind.statistics.audit_strata, counts)


def choose_rechecks(task: Task, units: Collection[Unit]) -> None:
    """Mark a random share of audited units for a recheck by an adjudicator, even if the reader confirms the label."""
    rechecked = commitments.draw_independently(task, RECHECK, (unit.item.key for unit in units), task.audit_recheck)
    for unit in units:
        unit.recheck = unit.item.key in rechecked


def choose_more(task: Task, number: int, languages: Collection[str] = ()) -> dict[str, list[int]]:
    """Draw more audit units from the unread units. The draw continues where the last one ended.

    number: total number of units to draw in all languages; if fewer are left, all of them are drawn.
    languages: draw only units in these languages; empty for all.

    Return the keys of the drawn units by stratum.
    """
    posts: dict[str, dict[str, int]] = {}
    paths = task.kind.statistics.audit_strata
    candidates = unread(task).filter(**{f"{paths[0]}__in": languages}) if languages else unread(task)
    for *stratum, key, unit in candidates.order_by().values_list(*paths, "item__key", "pk"):
        posts.setdefault(" ".join(stratum), {})[key] = unit
    label_audits = audits(task, posts)
    shares = neyman_allocation(number, {label: (len(keys), label_audits[label]) for label, keys in posts.items()})
    return {
        label: [
            posts[label][key] for key in commitments.draw_ids(task, AUDIT, _values(label, paths), posts[label], share)
        ]
        for label, share in shares.items()
    }


def _values(stratum: str, paths: Sequence[str]) -> list[str]:
    return stratum.split(" ", len(paths) - 1)


def _send_drawn_units(task: Task, drawn_keys: Sequence[int], first: int) -> int:
    """Send the drawn audit units to readers. If a drawn unit is a copy, send its original instead.

    drawn_keys: keys of the drawn units.
    first: position of the first newly added unit.

    Return the number of units sent, not counting originals that were already in the task.
    """
    routes, drawn, sent = Routes.load(task), set(drawn_keys), 0
    originals = dict(Unit.objects.filter(pk__in=listed(drawn_keys)).order_by().values_list("pk", "copy_of"))
    copies = [key for key, original in originals.items() if original]
    Unit.objects.filter(pk__in=listed(copies)).update(audited=True)
    for batch in batched(dict.fromkeys(originals[key] or key for key in drawn_keys), BATCH):
        # New units can be loaded outside the transaction, because no other process changes them yet.
        units = Unit.objects.filter(pk__in=listed(batch), stage=stages.AGREED).select_related("item")
        of_item = ("item__key", "item__language", "item__votes")
        judged = units.only("task", "position", "stage", "asked", *of_item).in_bulk()
        added = [judged[key] for key in batch if key in judged and judged[key].position >= first]
        for unit in added:
            unit.task, unit.audited = task, unit.pk in drawn
        transitions = [queue_unit(unit, "audited", routes) for unit in added]
        earlier = [key for key, unit in judged.items() if unit.position < first]
        with transaction.atomic():
            choose_rechecks(task, added)
            save_all(added, transitions, [*CHANGED, "audited"])
            sent += len(added)
            queue_agreed_units(Unit.objects.filter(pk__in=listed(earlier)), "audited", routes)
    return sent


class Audit(QualityControl):
    """Base class of audits: readers label a random sample of automatically labelled units.

    The sample is drawn when units are added to the task.
    """

    look_at = "audit"
    draws_by = ("audit_share", "audit_least")

    def units_added(self, task: Task, first: int) -> int:
        chosen = choose_audits(task, first)
        return _send_drawn_units(task, chosen, first) if chosen else 0

    def queued(self, task: Task, units: Collection[Unit], event: str) -> None:
        if event == "audited":
            choose_rechecks(task, units)
