"""What people have already said of a corpus's posts in other tasks, and what of it serves a new one: labels that can be
reused, and decoys.

A decoy is a post known not to be in the language that is asked about, which a hurried reader may say Yes to: some
detector ranked the language, or the post's label is easily confused with it. (Footnote 4 of the article: a reader who
is shown nothing but candidates of one language is biased towards Yes.)
"""

from collections import Counter
from collections.abc import Iterable

from django.db.models import Count

from annotate.core import lots, stages
from annotate.core.estimation import proportion
from annotate.core.labels import answer_about, negative
from annotate.models import Judgment, Task, Unit
from corpora.core.languages import LANGUAGES, confusable_with
from corpora.models import Corpus, Item


def known_units(corpus: Corpus) -> dict[int, list[Unit]]:
    """Item -> the units by which people have labelled it, in any task of the corpus."""
    found: dict[int, list[Unit]] = {}
    units = Unit.objects.filter(item__corpus=corpus, stage=stages.LABELLED, reused_from=None, gold_answer="")
    for unit in units.select_related("item", "task").order_by("pk"):
        found.setdefault(unit.item_id, []).append(unit)
    return found


def reusable(items: Iterable[Item], asked: str, known: dict[int, list[Unit]]) -> dict[int, tuple[Unit, str]]:
    """Item -> the unit whose label answers the question, and its answer; without those on which people disagree."""
    found = {}
    for item in items:
        answers = _answers(known.get(item.pk, ()), asked)
        if len({answer for _, answer in answers}) == 1:
            found[item.pk] = answers[0]
    return found


def decoys(task: Task, asked: str, drawn: list[Item], known: dict[int, list[Unit]], seed: str) -> list[Item]:
    """The decoys among the drawn posts of one language: as many as the task's share says, if there are as many."""
    taken = {item.text for item in drawn}
    eligible = {}
    for units in known.values():
        item = units[0].item
        answers = {answer for _, answer in _answers(units, asked)}
        if answers == {negative(asked)} and item.text not in taken and _tempting(units, asked):
            eligible[item.key] = item
            taken.add(item.text)
    count = lots.part_of(task.decoy_share, len(drawn))
    return [eligible[key] for key in lots.drawn(eligible, count, seed=seed, purpose=f"decoy {asked}")]


def mixed(drawn: list[Item], hidden: list[Item], asked: str, seed: str) -> list[Item]:
    """The drawn posts in their order, with the hidden ones anywhere among them."""
    places = {item.pk: index / len(drawn) for index, item in enumerate(drawn)}
    for item in hidden:
        places[item.pk] = int(lots.lot(seed, f"place {asked}", item.key), 16) / 16**32
    return sorted([*drawn, *hidden], key=lambda item: (places[item.pk], item.pk))


def _answers(units: Iterable[Unit], asked: str) -> list[tuple[Unit, str]]:
    said = [(unit, answer_about(asked, unit.label)) for unit in units]
    return [(unit, answer) for unit, answer in said if answer is not None]


def _tempting(units: list[Unit], asked: str) -> bool:
    ranked = {code for ranking in units[0].item.votes.values() for code, _ in ranking}
    ranked |= {label for code in ranked for label in LANGUAGES[code].labels}
    return asked in ranked or any(unit.label in confusable_with(asked) for unit in units)


def report(task: Task) -> dict:
    """How often readers said Yes to decoys, by the language asked about, in JSON's terms.

    languages: one row each; decoys: how many there are; answers, yes: given so far; false_yes: their share with its
    95% interval; sheets: the same of those that were answered on sheets.
    """
    counts: dict[str, Counter[str]] = {label: Counter() for label in task.labels}
    hidden = task.units.exclude(gold_answer="")
    for asked, number in hidden.order_by().values_list("asked").annotate(Count("pk")):
        counts[asked]["decoys"] = number
    answers = Judgment.objects.filter(unit__in=hidden.order_by(), kind=Judgment.ANSWER, voided_at=None)
    for asked, label, sheet in answers.values_list("unit__asked", "label", "lease__sheet"):
        for where in ("all", *(["sheets"] if sheet else [])):
            counts[asked][where] += 1
            counts[asked][f"{where} yes"] += label == asked
    return {
        "share": task.decoy_share,
        "languages": [
            {
                "language": asked,
                "decoys": count["decoys"],
                **_rate(count, "all"),
                "sheets": _rate(count, "sheets"),
            }
            for asked, count in counts.items()
        ],
    }


def _rate(count: Counter[str], where: str) -> dict:
    answers, yes = count[where], count[f"{where} yes"]
    return {"answers": answers, "yes": yes, "false_yes": proportion(yes, answers).as_dict()}
