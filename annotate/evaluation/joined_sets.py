"""Gold sets joined with the labels of one predictor.

subjects.py reads predictors and gold sets; measures.py computes the figures.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from annotate.core.estimation.annotator_error import false_among
from annotate.evaluation.subjects import NAMED, EvaluationError, Subject, asked_together
from annotate.evaluation.uniform import ADJUDICATED, ASSUMED, AUDITED, NOT_TOLD, READ, Cell, Uniform
from annotate.goldsets.gold_set import UNCONFIRMED, GoldRow, GoldSet
from annotate.kinds.designs import AUTHORS, STREAM, TRIGGERS
from annotate.kinds.interface_language import is_negative, negative
from annotate.reports.evaluation_report import texts
from annotate.reports.numbers import in_points
from annotate.reports.tables import are, many
from corpora.core import CorpusError
from corpora.core.languages import UND
from corpora.draws.language_draws import within_reach
from corpora.predictions.prediction_rows import folding

# For a predictor that voted, only audited posts represent the agreed ones. At least this many must have been read, or
# all if there are fewer: for each label that the detectors agreed on, and in total.
LEAST_READ, LEAST_READ_IN_ALL = 5, 30
EQUAL_RATES = (1.0, 1.0)  # missing at random
# Pool of single-annotator labels -> the option that has a share of them adjudicated.
CHECKED_BY = {AUDITED: "--audit-recheck", READ: "--check-share"}
WORDS = texts("posts").words


@dataclass
class Joined:
    """Gold sets of all designs joined with one predictor's labels, and the warnings that result.

    fold: label -> class of the labels that all compared predictors distinguish.
    said: post id -> predicted class.
    asked: coarse code that people used -> classes that are right on those posts.
    labelled: the uniform set as labelled; None if there is none.
    uniform: the uniform set as it may be counted.
    is_naive: whether the detectors' agreement counts as the truth in `uniform`, because people read too little.
    recall, precision, reach, verified: see metrics.py.
    confirmed: labels that people confirmed on verified posts.
    undecided: class -> codes asked about whose negative answers do not settle the class; its precision is unknown.
    """

    fold: dict[str, str]
    said: dict[str, str]
    asked: dict[str, frozenset[str]] = field(default_factory=dict)
    labelled: Uniform | None = None
    uniform: Uniform | None = None
    is_naive: bool = False
    recall: dict[str, dict[str, str]] = field(default_factory=dict)
    precision: dict[str, dict[str, str]] = field(default_factory=dict)
    reach: dict[str, set[str]] = field(default_factory=dict)
    # Language -> upper bound on the share of false Yes among the posts of its recall- or precision-oriented set.
    false_yes: dict[str, float] = field(default_factory=dict)
    # Languages of such sets without an answered decoy, so that the rate of mistaken Yes is unknown.
    unbounded: set[str] = field(default_factory=set)
    verified: dict[str, dict[str, str]] = field(default_factory=dict)
    confirmed: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)  # languages with a precision set drawn by this predictor
    # Language -> other predictors that drew its precision sets, "" if the set does not name one.
    strangers: dict[str, set[str]] = field(default_factory=dict)
    undecided: dict[str, set[str]] = field(default_factory=dict)
    tells_read: bool = False  # whether the uniform set marks the posts that people read
    warnings: list[str] = field(default_factory=list)

    def about(self, label: str = "") -> Uniform | None:
        """Return the uniform set for a measure of one label, or of all labels, with verified posts counted as read.

        Posts that the predictor labels X while the detectors agree on another label form a stratum of their own, of
        which the verified posts are a random sample. If the audit read such a post, it represents only itself.
        """
        uniform, verified = self.uniform, self.verified
        if label:
            verified = {label: found} if (found := verified.get(label)) else {}
        if not (uniform and verified):
            return uniform

        def is_apart(cell: Cell) -> bool:
            return bool(cell.stratum and verified.get(cell.said) and cell.said != cell.agreed)

        def of(key: str, cell: Cell) -> Cell:
            if not is_apart(cell):
                return cell
            if cell.read:
                return cell._replace(stratum="")
            label = verified[cell.said].get(key)
            return cell._replace(stratum=f"said {cell.said}", read=label is not None, truth=label or cell.truth)

        missing = {key: cell for key, cell in uniform.missing.items() if not is_apart(cell)}
        return replace(uniform, posts={key: of(key, cell) for key, cell in uniform.posts.items()}, missing=missing)

    def within(self, said: str, code: str) -> str:
        """Return the predicted label, or the code that people used if it is a coarse one that includes the label."""
        return code if said in self.asked.get(code, ()) else said


def join(
    subject: Subject,
    left: list[tuple[GoldSet, list[GoldRow]]],
    mappings: Collection[Mapping[str, Any]],
    rates: tuple[float, float] = EQUAL_RATES,
) -> Joined:
    """Join gold sets with a predictor's labels.

    subject: the predictor.
    left: gold sets with the rows that remain after filtering.
    mappings: coarse classes of every predictor that is compared.
    rates: least and greatest ratio of the detectors' error rate in unresolved audits to that in resolved ones.

    Raises EvaluationError or CorpusError, see `Subject.labels`.
    """
    every = [row for _, rows in left for row in rows]
    fold = folding(mappings)
    # The label not-sh, like a row of a published set, shows which language was asked about.
    asked = asked_together({code for row in every for code in (row.label, row.asked)}, fold)
    ids = list(dict.fromkeys(row.id for row in every))
    unresolved = [key for gold, _ in left for key in gold.unresolved_ids]
    said = {key: fold.get(label, label) for key, label in subject.labels(ids, unresolved).items()}
    joined = Joined(fold, said, asked)
    precise = [gold for gold, _ in left if gold.population == TRIGGERS and not gold.of]
    joined.own = {language for gold in precise for language, by in gold.predictors.items() if subject.drew(by)}
    for gold, rows in left:
        if gold.population == STREAM:
            _join_uniform(joined, gold, rows, subject, rates)
        elif gold.of:
            _join_triggers(joined, gold, rows, subject)
        else:
            (_join_recall if gold.population == AUTHORS else _join_precision)(joined, gold, rows, subject)
            _bound(joined, gold, rows)
    if joined.labelled:
        for gold in (gold for gold, _ in left if gold.frames):
            joined.reach |= _reach(gold, [*joined.labelled.posts, *joined.labelled.missing.keys() & joined.said.keys()])
    if joined.verified and joined.is_naive:
        joined.warnings.append("So the unread triggers that people verified do not count either.")
        joined.verified = {}
    joined.confirmed = {label for label, found in joined.verified.items() if label in found.values()}
    if joined.labelled and (
        strange := {key for found in joined.verified.values() for key in found} - joined.labelled.posts.keys()
    ):
        joined.warnings.append(WORDS["strange"].format(posts=many(len(strange), "post")))
    return joined


def _bound(joined: Joined, gold: GoldSet, rows: list[GoldRow]) -> None:
    """Bound the share of false Yes in a set that asks about one language at a time."""
    by_author = gold.population == AUTHORS
    labels = {row.label if by_author else _asked(row) for row in rows if row.label != UND}
    for language in sorted(label for label in labels if label and not is_negative(label)):
        label = joined.fold.get(language, language)
        counts = gold.decoys.get(language, (0, 0, 0, 0))
        joined.false_yes[label] = max(joined.false_yes.get(label, 0.0), false_among(*counts))
        if not counts[0]:
            joined.unbounded.add(label)


def _reach(gold: GoldSet, ids: Collection[str]) -> dict[str, set[str]]:
    """Return language of a recall-oriented set -> posts of the uniform set that its draw could have included.

    Draws that can no longer be reproduced are left out.
    """
    by_draw: dict[tuple[str, str], list[str]] = {}
    for language, frame in gold.frames.items():
        by_draw.setdefault((gold.predictors[language], json.dumps(frame, sort_keys=True)), []).append(language)
    found: dict[str, set[str]] = {}
    for (predictor, frame), languages in by_draw.items():
        parameters = json.loads(frame)
        try:
            found |= within_reach(gold.corpus, predictor, parameters, parameters["frame_digest"], languages, ids)
        except (CorpusError, KeyError, TypeError, ValueError):
            continue
    return found


def _join_uniform(
    joined: Joined, gold: GoldSet, rows: list[GoldRow], subject: Subject, rates: tuple[float, float]
) -> None:
    cells: dict[str, Cell] = {}
    unconfirmed: dict[str, Cell] = {}  # posts with an unconfirmed label, treated as missing
    for row in rows:
        (unconfirmed if row.stratum == UNCONFIRMED else cells)[row.id] = _cell(joined, row)
    if gold.frame_size is not None and gold.frame_size < len(gold.rows):
        raise EvaluationError(
            f"{gold.folder / 'manifest.json'} says that the {len(gold.rows):,} posts were drawn from "
            f"{gold.frame_size:,}, which cannot be; export the set again."
        )
    missing = _missing(joined, gold, cells, rates) if gold.unresolved else {}
    if rates != EQUAL_RATES and not missing:
        raise EvaluationError(
            f"--missing-rate is for unresolved audits, and the gold set {gold.name} has none; leave it out."
        )
    if unconfirmed:
        joined.warnings.append(WORDS["not_confirmed"].format(labels=len(unconfirmed), name=gold.name))
    joined.labelled = Uniform(cells, missing | unconfirmed, gold.slips, rates)
    joined.warnings += unchecked(gold.name, joined.labelled)
    short = too_little_read(joined.labelled)
    joined.uniform, joined.is_naive = joined.labelled.as_labelled() if short else joined.labelled, bool(short)
    if short and subject.voted_in(gold):
        raise EvaluationError(
            f"{subject.spelled} voted in the gold set {gold.name}, so where the detectors agree only posts that people "
            f"have read count, and too few were read. It takes {LEAST_READ} of each label that they agree on and "
            f"{LEAST_READ_IN_ALL} in all, or all where there are fewer; short are {short}. Open the task with a larger "
            "audit, or measure a predictor that did not vote."
        )
    if short:
        joined.warnings.append(WORDS["little_read"].format(name=gold.name, short=short, system=subject.spelled))
    joined.tells_read = any(row.stratum for row in gold.rows)
    if not joined.tells_read:
        joined.warnings.append(WORDS["not_telling"].format(name=gold.name))


def _cell(joined: Joined, row: GoldRow) -> Cell:
    """Return the cell of a post of a uniform set. An unconfirmed label is treated as the detectors' guess."""
    label, agreed, first = (joined.fold.get(each, each) for each in (row.label, row.agreed, row.first_label))
    said = joined.within(joined.said[row.id], row.label)
    if row.stratum == UNCONFIRMED:
        return Cell(row.agreed, label, False, label, said)
    # Where the detectors agree, nobody gave the label, even if a post with the same text was audited.
    if row.stratum == "agreed":
        return Cell(row.agreed, agreed, False, label, said, chance=row.check_chance)
    word = ADJUDICATED if row.decided_by == "adjudicator" else ""
    if row.decided_by == "one" or row.checked:
        word = AUDITED if row.stratum == "audited" else READ
    return Cell(row.agreed, agreed, True, label, said, word=word, first=first, chance=row.check_chance)


def _missing(joined: Joined, gold: GoldSet, cells: Mapping[str, Cell], rates: tuple[float, float]) -> dict[str, Cell]:
    """Return the audited posts that nobody could label, by id. Ids are made up where the set has only their number."""
    found: dict[str, Cell] = {}
    unread = {cell.stratum for cell in cells.values() if not cell.read}
    for label, posts in gold.unresolved.items():
        # If people read all posts on which the detectors agree, there was no audit.
        if label not in unread:
            continue
        agreed = joined.fold.get(label, label)
        named = [key for key, stratum in gold.unresolved_ids.items() if stratum == label]
        # No post has an id with a line break.
        for key in [*named, *(f"{label}\n{number}" for number in range(len(named), posts))]:
            found[key] = Cell(label, agreed, False, agreed, joined.said.get(key, NOT_TOLD))
    joined.warnings.append(_without_label(gold, {cell.stratum for cell in found.values()}, rates))
    return found


def _without_label(gold: GoldSet, counted: Collection[str], rates: tuple[float, float]) -> str:
    """Return the warning about unresolved audits.

    counted: labels of the unresolved posts that widen the intervals.
    """
    posts = {label: number for label, number in sorted(gold.unresolved.items()) if number}
    words = [
        f"Of the posts chosen for the audit of the gold set {gold.name} "
        f"{are(sum(posts.values()), 'has', 'have')} no label ({_named(posts)})."
    ]
    if left_out := {label: number for label, number in posts.items() if label not in counted}:
        labels = "" if left_out == posts else f" ({_named(left_out)})"
        words.append(
            f"{are(sum(left_out.values()), 'of them is', 'of them are')} left out{labels}: people read all other "
            "posts on which the detectors agree there, so no figure rests on the audit."
        )
    if counted:
        those = "the others" if left_out else "them"
        taken = f"{those} to be like the posts of their label that were read"
        if rates != EQUAL_RATES:
            taken = (
                f"the detectors to be wrong in {those} {rates[0]:g} to {rates[1]:g} times as often as in the posts of "
                "their label that were read"
            )
        words.append(f"The intervals take {taken}. Notes say how far that may be off.")
    return " ".join(words)


def _named(labels: Collection[str]) -> str:
    return f"{', '.join([*labels][:NAMED])}{' and others' if len(labels) > NAMED else ''}"


def unchecked(name: str, uniform: Uniform) -> list[str]:
    """Return warnings about single-annotator labels and adjudicators whose error rate no check measures.

    name: name of the gold set.
    uniform: the set, joined with a predictor.
    """
    told = []
    checked = {cell.word for cell in uniform.cells if cell.first}
    pools = Counter[str]()
    for cell, number in uniform.cells.items():
        pools[cell.word] += number if cell.word in CHECKED_BY and cell.word not in checked else 0
    if posts := pools.total():
        off = ASSUMED * posts / len(uniform.posts)
        options = " and ".join(option for pool, option in CHECKED_BY.items() if pools[pool])
        told.append(
            f"{posts:,} labels of the gold set {name} are the word of one reader, and no check tells how often "
            f"that is wrong (open_task {options}). If {ASSUMED:.0%} of them were, accuracy could be "
            f"{in_points(round(off, 4))} lower or higher than stated, and the figure of a language that rests on such "
            f"labels {in_points(ASSUMED)}."
        )
    if uniform.slips is None and any(cell.word == ADJUDICATED or cell.first for cell in uniform.cells):
        told.append(
            f"How often the adjudicators of the gold set {name} slip is not known, since no second one has "
            "decided what the first had (open_task --check-share, and two adjudicators at least)."
        )
    return told


def too_little_read(uniform: Uniform) -> str:
    """Return the labels with too few posts read, with their counts, as text; "" if there are none.

    LEAST_READ and LEAST_READ_IN_ALL state how many posts are enough.
    """
    agreed = {label: posts for label, posts in sorted(uniform.drawn.items()) if label}
    short = [
        f"{label} ({uniform.read[label]:,} of {posts:,})"
        for label, posts in agreed.items()
        if uniform.read[label] < min(posts, LEAST_READ)
    ]
    if len(short) > NAMED:
        short = [*short[:NAMED], f"and {len(short) - NAMED:,} more"]
    total, read = sum(agreed.values()), sum(uniform.read[label] for label in agreed)
    if not short and read < min(total, LEAST_READ_IN_ALL):
        short = [f"all of them together ({read:,} of {total:,})"]
    return ", ".join(short)


def _join_recall(joined: Joined, gold: GoldSet, rows: list[GoldRow], subject: Subject) -> None:
    other = 0
    for row in rows:
        if row.label == UND or is_negative(row.label):
            other += 1
            continue
        language = joined.fold.get(row.label, row.label)
        joined.recall.setdefault(language, {})[row.id] = joined.within(joined.said[row.id], language)
    if other:
        joined.warnings.append(
            f"Posts of the recall-oriented set {gold.name} that are labelled as in no language, or not in one, say "
            f"nothing of recall and are left out: {other:,}."
        )


def _join_precision(joined: Joined, gold: GoldSet, rows: list[GoldRow], subject: Subject) -> None:
    queues = {_asked(row) for row in rows} - {""}
    others: set[str] = set()
    for row in rows:
        said = joined.said[row.id]
        # A published set does not name the language asked about; infer it from the predictor's label.
        of_label = [said] if said in queues else [each for each in sorted(queues) if said in joined.asked.get(each, ())]
        asked = _asked(row) or (of_label or [said])[0]
        if asked not in queues:
            continue
        language = joined.fold.get(asked, asked)
        if language != asked:
            # not-zh-CN may be zh-TW, or no Chinese at all.
            joined.undecided.setdefault(language, set()).add(asked)
            continue
        by = gold.predictors.get(asked, "")
        if language in joined.own and not subject.drew(by):
            # Posts that both predictors label so would count twice as often as in the predictor's own sample.
            others.add(language)
            continue
        if not subject.drew(by):
            joined.strangers.setdefault(language, set()).add(by)
        shown = joined.precision.setdefault(language, {})
        if joined.within(said, language) == language:
            shown[row.id] = joined.fold.get(row.label, row.label)
    if others:
        joined.warnings.append(
            f"The posts of {', '.join(sorted(others))} in the precision-oriented set {gold.name} were drawn by another "
            f"predictor, and {subject.spelled} has its own set: they are left out of its precision."
        )


def _join_triggers(joined: Joined, gold: GoldSet, rows: list[GoldRow], subject: Subject) -> None:
    by = set(gold.predictors.values())
    if not all(map(subject.drew, by)):
        spelled, mine = ", ".join(sorted(by)), subject.spelled
        warning = f"The gold set {gold.name} holds unread triggers of {spelled}; they tell nothing of {mine} and are "
        warning += "left out."
        if subject.file:
            warning += f" If {mine} is the file that was imported as {spelled}, name {spelled} in place of the file."
        joined.warnings.append(warning)
        return
    for row in rows:
        joined.verified.setdefault(row.asked, {})[row.id] = row.label


def _asked(row: GoldRow) -> str:
    """Return the language that a question asked about.

    A published set does not show it for und posts. For these the result is "", since the predictor is wrong there in
    any case.
    """
    return row.asked or (UND if row.label == negative(UND) else "" if row.label == UND else row.label)
