"""Gold sets joined with one predictor's labels.

subjects.py reads predictors and gold sets; measures.py computes the figures.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from annotate.core.estimation.label_errors import LEAST_READ, LEAST_READ_IN_ALL, false_among
from annotate.evaluation.subjects import NAMED, EvaluationError, Subject, accepted_classes, is_file
from annotate.evaluation.uniform import ADJUDICATED, ASSUMED, AUDITED, UNAUDITED, UNKNOWN_PREDICTION, Cell, Uniform
from annotate.goldsets.gold_set import UNCONFIRMED, GoldRow, GoldSet
from annotate.goldsets.set_folder import manifest_of
from annotate.kinds.designs import AUTHORS, DESIGNS, STREAM, TRIGGERS
from annotate.kinds.interface_language import is_negative, negative
from annotate.reports.evaluation_report import texts
from annotate.reports.numbers import in_points
from annotate.reports.tables import are, many
from corpora.core import CorpusError
from corpora.core.languages import UND
from corpora.draws.language_draws import ids_in_frame
from corpora.predictions.prediction_rows import coarse_by_label

EQUAL_RATES = (1.0, 1.0)  # missing at random: the detectors err equally often in unresolved and resolved audits
# The option that sends a share of each pool of single-annotator labels to adjudicators.
CHECKED_BY = {AUDITED: "--audit-recheck", UNAUDITED: "--check-share"}
WORDS = texts("posts").words
KeptRows = list[tuple[GoldSet, list[GoldRow]]]  # each gold set with its rows, except rows of vanished posts


@dataclass
class Joined:
    """Gold sets of all designs joined with one predictor's labels, and the resulting warnings.

    fold: mapping from label to class. All compared predictors distinguish the classes.
    predictions: mapping from post id to predicted class.
    accepted: mapping from a coarse code used by annotators to the classes that are correct for posts with this code.
    labelled: the uniform set with its labels as exported; None if there is no uniform set.
    uniform: the uniform set that measures are computed from; the same as `labelled` unless `is_naive` is true.
    is_naive: whether `uniform` treats the detectors' agreement as the truth, because too few posts are annotated.
    recall, precision, reach: see RecallSets, PrecisionSets and Reach in metrics.py.
    verified: mapping from label to {post id: annotators' label}. It has the posts that the predictor gives this label
        although the detectors agree on another label.
    confirmed: labels that annotators confirmed for at least one verified post.
    undecided: mapping from a class to the codes that annotators were asked about. A negative answer, such as
        `not-zh-CN`, does not show whether a post belongs to the class, so the class's precision is unknown.
    """

    fold: dict[str, str]
    predictions: dict[str, str]
    accepted: dict[str, frozenset[str]] = field(default_factory=dict)
    labelled: Uniform | None = None
    uniform: Uniform | None = None
    is_naive: bool = False
    recall: dict[str, dict[str, str]] = field(default_factory=dict)
    precision: dict[str, dict[str, str]] = field(default_factory=dict)
    reach: dict[str, set[str]] = field(default_factory=dict)
    # Upper bound on the share of mistaken Yes answers, for each language with a recall- or precision-oriented set.
    false_yes: dict[str, float] = field(default_factory=dict)
    # Languages without an answered decoy in these sets, so that the share of mistaken Yes answers has no bound.
    unbounded: set[str] = field(default_factory=set)
    verified: dict[str, dict[str, str]] = field(default_factory=dict)
    confirmed: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)  # languages with a precision-oriented set drawn by this predictor
    # Mapping from language to the other predictors that drew its precision-oriented sets; "" if a set does not say.
    foreign: dict[str, set[str]] = field(default_factory=dict)
    undecided: dict[str, set[str]] = field(default_factory=dict)
    marks_annotated: bool = False  # whether the uniform set marks the annotated posts
    warnings: list[str] = field(default_factory=list)

    def uniform_for(self, label: str = "") -> Uniform | None:
        """Return the uniform set with verified posts counted as annotated.

        Posts that the predictor labels X although the detectors agree on another label form a separate stratum. The
        verified posts are a random sample of that stratum. An audited post in it represents only itself.

        label: label to measure; "" for a measure of all labels.
        """
        uniform, verified = self.uniform, self.verified
        if label:
            verified = {label: label_posts} if (label_posts := verified.get(label)) else {}
        if not (uniform and verified):
            return uniform

        def is_disputed(cell: Cell) -> bool:
            return bool(cell.stratum and verified.get(cell.predicted) and cell.predicted != cell.agreed)

        def verified_cell(key: str, cell: Cell) -> Cell:
            if not is_disputed(cell):
                return cell
            if cell.annotated:
                return cell._replace(stratum="")
            label = verified[cell.predicted].get(key)
            return cell._replace(
                stratum=f"predicted {cell.predicted}", annotated=label is not None, truth=label or cell.truth
            )

        missing = {key: cell for key, cell in uniform.missing.items() if not is_disputed(cell)}
        return replace(
            uniform, posts={key: verified_cell(key, cell) for key, cell in uniform.posts.items()}, missing=missing
        )

    def coarsen(self, predicted: str, code: str) -> str:
        """Return the annotators' coarse code if it includes the predicted label, otherwise the predicted label."""
        return code if predicted in self.accepted.get(code, ()) else predicted


def join(
    subject: Subject,
    kept: KeptRows,
    mappings: Collection[Mapping[str, Any]],
    rates: tuple[float, float] = EQUAL_RATES,
) -> Joined:
    """Join gold sets with a predictor's labels.

    subject: the predictor.
    kept: each gold set with its rows, without the rows of vanished posts.
    mappings: the coarse classes of each compared predictor.
    rates: smallest and largest ratio between the detectors' error rates in unresolved and in resolved audits.

    Raise EvaluationError if the sets cannot measure the predictor, and EvaluationError or CorpusError if the predictor
    has no label for a post.
    """
    all_rows = [row for _, rows in kept for row in rows]
    fold = coarse_by_label(mappings)
    # Published sets don't name the language that annotators were asked about, but labels such as `not-sh` show it.
    accepted = accepted_classes({code for row in all_rows for code in (row.label, row.asked)}, fold)
    ids = tuple(dict.fromkeys(row.id for row in all_rows))
    unresolved = tuple(key for gold, _ in kept for key in gold.unresolved_ids)
    predictions = {key: fold.get(label, label) for key, label in subject.labels(ids, unresolved).items()}
    joined = Joined(fold, predictions, accepted)
    precise = [gold for gold, _ in kept if gold.population == TRIGGERS and not gold.parent]
    joined.own = {
        language for gold in precise for language, predictor in gold.predictors.items() if subject.drew(predictor)
    }
    for gold, rows in kept:
        if gold.population == STREAM:
            _join_uniform(joined, gold, rows, subject, rates)
        elif gold.parent:
            _join_triggers(joined, gold, rows, subject)
        else:
            (_join_recall if gold.population == AUTHORS else _join_precision)(joined, gold, rows, subject)
            _bound(joined, gold, rows)
    if joined.labelled:
        for gold in (gold for gold, _ in kept if gold.frames):
            joined.reach |= _reach(
                gold, [*joined.labelled.posts, *joined.labelled.missing.keys() & joined.predictions.keys()]
            )
    if joined.verified and joined.is_naive:
        joined.warnings.append("For the same reason, the unread triggers that people verified do not count.")
        joined.verified = {}
    joined.confirmed = {label for label, labels in joined.verified.items() if label in labels.values()}
    if joined.labelled and (
        strange := {key for labels in joined.verified.values() for key in labels} - joined.labelled.posts.keys()
    ):
        joined.warnings.append(WORDS["strange"].format(posts=many(len(strange), "post")))
    return joined


def _bound(joined: Joined, gold: GoldSet, rows: list[GoldRow]) -> None:
    """Set upper bounds on the share of mistaken Yes answers in a recall- or precision-oriented set."""
    by_author = gold.population == AUTHORS
    labels = {row.label if by_author else _asked(row) for row in rows if row.label != UND}
    for language in sorted(label for label in labels if label and not is_negative(label)):
        label = joined.fold.get(language, language)
        counts = gold.decoys.get(language, (0, 0, 0, 0))
        joined.false_yes[label] = max(joined.false_yes.get(label, 0.0), false_among(*counts))
        if not counts[0]:
            joined.unbounded.add(label)


def _reach(gold: GoldSet, ids: Collection[str]) -> dict[str, set[str]]:
    """Return which posts each language's recall-oriented draw could have included.

    Languages whose draw can no longer be reproduced are left out.

    gold: the recall-oriented set.
    ids: ids of the uniform set's posts.
    """
    by_draw: dict[tuple[str, str], list[str]] = {}
    for language, parameters in gold.frames.items():
        by_draw.setdefault((gold.predictors[language], json.dumps(parameters, sort_keys=True)), []).append(language)
    reach: dict[str, set[str]] = {}
    for (predictor, frame), languages in by_draw.items():
        parameters = json.loads(frame)
        try:
            reach |= ids_in_frame(gold.corpus, predictor, parameters, parameters["frame_digest"], languages, ids)
        except (CorpusError, KeyError, TypeError, ValueError):
            continue
    return reach


def _join_uniform(
    joined: Joined, gold: GoldSet, rows: list[GoldRow], subject: Subject, rates: tuple[float, float]
) -> None:
    cells: dict[str, Cell] = {}
    unconfirmed: dict[str, Cell] = {}  # treated as missing
    is_rechecked = any(row.checked and row.stratum == "audited" for row in rows)
    # Most posts have the same properties as many others, so they share a few cells.
    cache: dict[tuple[Any, ...], Cell] = {}
    for row in rows:
        properties = *row[1:], joined.predictions[row.id]
        if properties not in cache:
            cache[properties] = _cell(joined, row, is_rechecked=is_rechecked)
        (unconfirmed if row.stratum == UNCONFIRMED else cells)[row.id] = cache[properties]
    if gold.frame_size is not None and gold.frame_size < len(gold.rows):
        raise EvaluationError(
            f"{gold.folder / 'manifest.json'} states that the {len(gold.rows):,} posts were drawn from "
            f"{gold.frame_size:,} posts, which is impossible. Export the set again."
        )
    missing = _missing(joined, gold, cells, rates) if gold.unresolved else {}
    if rates != EQUAL_RATES and not missing:
        raise EvaluationError(
            f"--missing-rate applies to unresolved audits, but the gold set {gold.name} has none. Remove the option."
        )
    if unconfirmed:
        joined.warnings.append(WORDS["not_confirmed"].format(labels=len(unconfirmed), name=gold.name))
    joined.labelled = Uniform(cells, missing | unconfirmed, gold.slips, rates)
    joined.warnings += unchecked_warnings(gold.name, joined.labelled)
    short = list_short_labels(joined.labelled)
    joined.uniform, joined.is_naive = joined.labelled.as_annotated() if short else joined.labelled, bool(short)
    if short and subject.voted_in(gold):
        raise EvaluationError(_voter_refusal(subject.full_name, gold.name, short))
    if short:
        joined.warnings.append(WORDS["little_read"].format(name=gold.name, short=short, system=subject.full_name))
    joined.marks_annotated = any(row.stratum for row in gold.rows)
    if not joined.marks_annotated:
        joined.warnings.append(WORDS["not_telling"].format(name=gold.name))


def _voter_refusal(predictor: str, name: str, short: str) -> str:
    return (
        f"{predictor} voted in the gold set {name}, so people must have read at least {LEAST_READ} posts of each label "
        f"on which the detectors agree and {LEAST_READ_IN_ALL} posts in total, or all if there are fewer. Too few were "
        f"read for {short}: open the task with a larger audit, or measure a predictor that did not vote."
    )


def audit_refusal(predictor: str, folder: Path) -> str:
    """Return an error message if a predictor voted in a set whose audit is too small to measure it, otherwise "".

    Checks only the total, which is in the manifest. `_join_uniform` also checks each label.
    """
    manifest = manifest_of(folder)
    if not manifest.get("audit"):
        return ""
    voted = {detector for versions in manifest["detectors"] for detector in versions}
    # Imported voters are listed as NAME@VERSION, and the user may omit the version.
    names = voted | {name.partition("@")[0] for name in voted} | {"majority"}
    is_voter = predictor in names and not is_file(predictor)
    if not (voted and is_voter and DESIGNS[manifest["design"]].population == STREAM):
        return ""
    read = total = 0
    for row in manifest["audit"]["languages"]:
        labelled = row["posts"] - row["unresolved"]
        total += labelled
        read += labelled if row["contested"] or row["all_read"] else row["audited"]
    return _voter_refusal(predictor, manifest["task"]["name"], short) if (short := _short_total(read, total)) else ""


def _short_total(read: int, total: int) -> str:
    return f"all labels together ({read:,} of {total:,})" if read < min(total, LEAST_READ_IN_ALL) else ""


def _cell(joined: Joined, row: GoldRow, *, is_rechecked: bool) -> Cell:
    """Return the cell of a post in a uniform set. An unconfirmed label is treated as the detectors' guess.

    is_rechecked: whether adjudicators checked audited posts of the set. If so, the checks apply to all confirmations,
        as in the audit report, even to confirmations by several annotators.
    """
    label, agreed, first_label = (joined.fold.get(code, code) for code in (row.label, row.agreed, row.first_label))
    predicted = joined.coarsen(joined.predictions[row.id], row.label)
    if row.stratum == UNCONFIRMED:
        return Cell(row.agreed, label, False, label, predicted)
    # The label comes from the detectors alone, even if annotators audited another post with the same text.
    if row.stratum == "agreed":
        return Cell(row.agreed, agreed, False, label, predicted, chance=row.check_chance)
    source = ADJUDICATED if row.decided_by == "adjudicator" else ""
    is_confirmation = is_rechecked and row.stratum == "audited" and row.decided_by == "several"
    if row.decided_by == "one" or row.checked or is_confirmation:
        source = AUDITED if row.stratum == "audited" else UNAUDITED
    return Cell(
        row.agreed, agreed, True, label, predicted, source=source, first_label=first_label, chance=row.check_chance
    )


def _missing(joined: Joined, gold: GoldSet, cells: Mapping[str, Cell], rates: tuple[float, float]) -> dict[str, Cell]:
    """Return a mapping from id to cell for posts that were selected for the audit but could not be labelled.

    If the set states only the number of these posts, ids are generated.
    """
    missing: dict[str, Cell] = {}
    unannotated = {cell.stratum for cell in cells.values() if not cell.annotated}
    for label, posts in gold.unresolved.items():
        # If annotators labelled every post with this agreed label, there was no audit.
        if label not in unannotated:
            continue
        agreed = joined.fold.get(label, label)
        ids = [key for key, stratum in gold.unresolved_ids.items() if stratum == label]
        # Post ids never contain a line break.
        for key in [*ids, *(f"{label}\n{number}" for number in range(len(ids), posts))]:
            missing[key] = Cell(label, agreed, False, agreed, joined.predictions.get(key, UNKNOWN_PREDICTION))
    joined.warnings.append(_without_label(gold, {cell.stratum for cell in missing.values()}, rates))
    return missing


def _without_label(gold: GoldSet, counted: Collection[str], rates: tuple[float, float]) -> str:
    """Return the warning about unresolved audits.

    counted: agreed labels with unresolved posts that widen the intervals.
    """
    posts = {label: number for label, number in sorted(gold.unresolved.items()) if number}
    sentences = [
        f"In the audit of the gold set {gold.name}, {are(sum(posts.values()), 'post has', 'posts have')} no label "
        f"({_named(posts)})."
    ]
    if left_out := {label: number for label, number in posts.items() if label not in counted}:
        labels = "" if left_out == posts else f" ({_named(left_out)})"
        sentences.append(
            f"{are(sum(left_out.values()), 'of them is', 'of them are')} left out{labels}: there, people read all "
            "other posts on which the detectors agree, so no figure depends on the audit."
        )
    if counted:
        those = "the others" if left_out else "these posts"
        assumption = f"{those} resemble the posts with the same label that were read"
        if rates != EQUAL_RATES:
            assumption = (
                f"the detectors are wrong in {those} {rates[0]:g} to {rates[1]:g} times as often as in the posts "
                "with the same label that were read"
            )
        sentences.append(f"The intervals assume that {assumption}. Notes show how much this could change the figures.")
    return " ".join(sentences)


def _named(labels: Collection[str]) -> str:
    return f"{', '.join([*labels][:NAMED])}{' and others' if len(labels) > NAMED else ''}"


def unchecked_warnings(name: str, uniform: Uniform) -> list[str]:
    """Return warnings about single-annotator labels and adjudicators whose error rate no check measures.

    name: gold set name.
    uniform: the set, joined with a predictor.
    """
    warnings = []
    if posts := _unchecked_labels(uniform).total():
        off = ASSUMED * posts / len(uniform.posts)
        warnings.append(
            f"{posts:,} labels of the gold set {name} come from a single reader, and no check measures how often "
            f"such a label is wrong. If {ASSUMED:.0%} of them were wrong, accuracy could be "
            f"{in_points(round(off, 4))} lower or higher than stated. For a language with only such labels, the "
            f"figures could change by {in_points(ASSUMED)}."
        )
    if _has_unchecked_adjudicators(uniform):
        warnings.append(
            f"The error rate of the adjudicators of the gold set {name} is unknown, because no post was decided by "
            "two adjudicators."
        )
    return warnings


def missing_check_options(uniform: Uniform) -> list[str]:
    """Return the `open_task` options that would add the checks missing from the set."""
    pools = _unchecked_labels(uniform)
    lacking = {option: pools[pool] > 0 for pool, option in CHECKED_BY.items()}
    lacking[CHECKED_BY[UNAUDITED]] |= _has_unchecked_adjudicators(uniform)
    return [option for option, is_lacking in lacking.items() if is_lacking]


def _unchecked_labels(uniform: Uniform) -> Counter[str]:
    """Count the single-annotator labels in each pool whose error rate no check measures."""
    checked = {cell.source for cell in uniform.cells if cell.first_label}
    pools = Counter[str]()
    for cell, number in uniform.cells.items():
        pools[cell.source] += number if cell.source in CHECKED_BY and cell.source not in checked else 0
    return pools


def _has_unchecked_adjudicators(uniform: Uniform) -> bool:
    return uniform.slips is None and any(cell.source == ADJUDICATED or cell.first_label for cell in uniform.cells)


def list_short_labels(uniform: Uniform) -> str:
    """List the labels with too few annotated posts, with counts, as text; "" if there are none.

    Each label needs LEAST_READ annotated posts, and the set needs LEAST_READ_IN_ALL (or all posts if there are fewer).
    """
    agreed = {label: posts for label, posts in sorted(uniform.drawn.items()) if label}
    short = [
        f"{label} ({uniform.annotated[label]:,} of {posts:,})"
        for label, posts in agreed.items()
        if uniform.annotated[label] < min(posts, LEAST_READ)
    ]
    if len(short) > NAMED:
        short = [*short[:NAMED], f"and {len(short) - NAMED:,} more"]
    total, read = sum(agreed.values()), sum(uniform.annotated[label] for label in agreed)
    return ", ".join(short) or _short_total(read, total)


def _join_recall(joined: Joined, gold: GoldSet, rows: list[GoldRow], subject: Subject) -> None:
    negative_count = 0
    for row in rows:
        if row.label == UND or is_negative(row.label):
            negative_count += 1
            continue
        language = joined.fold.get(row.label, row.label)
        joined.recall.setdefault(language, {})[row.id] = joined.coarsen(joined.predictions[row.id], language)
    if negative_count:
        joined.warnings.append(
            f"Left out of the recall-oriented set {gold.name}: {many(negative_count, 'post')} labelled und or as not "
            "in the language, which do not affect recall."
        )


def _join_precision(joined: Joined, gold: GoldSet, rows: list[GoldRow], subject: Subject) -> None:
    queues = {_asked(row) for row in rows} - {""}
    left_out: set[str] = set()
    for row in rows:
        predicted = joined.predictions[row.id]
        # A published set doesn't name the language asked about, so infer it from the predictor's label.
        coarse = [code for code in sorted(queues) if predicted in joined.accepted.get(code, ())]
        asked_code = _asked(row) or (predicted if predicted in queues else (coarse or [predicted])[0])
        if asked_code not in queues:
            continue
        language = joined.fold.get(asked_code, asked_code)
        if language != asked_code:
            # `not-zh-CN` may be `zh-TW`, or not Chinese at all.
            joined.undecided.setdefault(language, set()).add(asked_code)
            continue
        predictor = gold.predictors.get(asked_code, "")
        if language in joined.own and not subject.drew(predictor):
            # The predictor has its own sample of this language. Adding another predictor's sample would overrepresent
            # the posts that both predictors give this label.
            left_out.add(language)
            continue
        if not subject.drew(predictor):
            joined.foreign.setdefault(language, set()).add(predictor)
        truths = joined.precision.setdefault(language, {})
        if joined.coarsen(predicted, language) == language:
            truths[row.id] = joined.fold.get(row.label, row.label)
    if left_out:
        joined.warnings.append(
            f"In the precision-oriented set {gold.name}, the posts for {', '.join(sorted(left_out))} were drawn by "
            f"another predictor. They are left out of precision, because {subject.full_name} has its own set."
        )


def _join_triggers(joined: Joined, gold: GoldSet, rows: list[GoldRow], subject: Subject) -> None:
    predictors = set(gold.predictors.values())
    if not all(map(subject.drew, predictors)):
        owners, name = ", ".join(sorted(predictors)), subject.full_name
        hint = f" If {name} was imported as {owners}, specify {owners} instead of the file." if subject.file else ""
        joined.warnings.append(
            f"The gold set {gold.name} contains unread triggers of {owners}. The set is left out, because these posts "
            f"do not measure {name}.{hint}"
        )
        return
    for row in rows:
        joined.verified.setdefault(row.asked, {})[row.id] = row.label


def _asked(row: GoldRow) -> str:
    """Return the language that annotators were asked about.

    A published set does not show this language for a post labelled `und`, so the result is "". The predictor is wrong
    about such a post whatever the language.
    """
    return row.asked or (UND if row.label == negative(UND) else "" if row.label == UND else row.label)
