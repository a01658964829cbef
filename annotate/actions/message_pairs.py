"""The actions for corpora of message-reply pairs: import threads, import scores such as toxicity, and export pairs."""

from dataclasses import asdict
from datetime import date
from pathlib import Path

from annotate.actions.action import (
    CORPUS,
    FILE,
    FORMAT,
    LICENCE,
    LONGEST_LINE,
    MAX_REJECTS,
    SOURCE,
    TEXT_MAY_LEAVE,
    ActionError,
    Outcome,
    Progress,
    Values,
    action,
    column,
    import_arguments,
    reading_note,
)
from annotate.core.option import Option, flag, share, sizes, whole_number
from annotate.goldsets.formats import mrs
from annotate.goldsets.formats.mrs import export_pairs
from annotate.goldsets.set_folder import ExportError
from annotate.reports.table_formats import as_lines
from annotate.reports.tables import are, many
from corpora.core import listed
from corpora.core.languages import LANGUAGES
from corpora.sources.compression import check_file
from corpora.sources.readers import named_columns
from corpora.storage.layout import check_pairs, manifest_of
from corpora.storage.record_import import Terms, open_corpus
from corpora.threads import messages, scorers
from corpora.threads.pair_sets import SHARES, SPLITS, ListedReplies, Plan, Responses, read_replies
from corpora.threads.thread_import import import_threads, thread_facts

# --- Threads


def _check_threads(values: Values) -> Values:
    named_columns(values["column"], FIELDS)
    for path in values["files"]:
        check_file(path, values["format"])
    terms = {name: values[name] for name in ("licence", "text_may_leave", "source")}
    open_corpus(values["corpus"], Terms(**terms, fields=messages.FIELDS))
    return {"dates": {bound: _days(bound, values[bound]) for bound in (messages.FROM, messages.UNTIL) if values[bound]}}


def _days(option: str, texts: list[str]) -> dict[str, str]:
    """Parse texts such as `en=2018-01-01` or `2018-01-01`. Return a mapping from language ("" if none) to day."""
    days = {}
    for text in texts:
        language, _, day = text.rpartition("=")
        try:
            if language not in ("", *LANGUAGES):
                raise ValueError
            days[language] = date.fromisoformat(day).isoformat()
        except ValueError:
            raise ActionError(
                f"--{option} is {text!r}. Write a day such as 2018-01-01, or a language and a day: en=2018-01-01.",
                option=option,
            ) from None
    return days


FIELDS = tuple(dict.fromkeys((*messages.MESSAGE, *messages.TURNS)))


@action(
    "import_threads",
    "Create a corpus of message-reply pairs from messages with the id of the message that they answer (columns id, "
    "parent_id and text, and optionally thread, score, deleted, language, author and posted_at), or from lists of "
    "turns (columns thread and turns). Deleted and empty messages, messages with a score below 1, and messages with an "
    "uncertain language (by fastText) are excluded, counted and listed with the reason. Pass all files in one command; "
    "repeating the command changes nothing.",
    CORPUS,
    Option("files", Path, required=True, argument=True, several=True, shown="FILE", help="all files of the corpus"),
    LICENCE,
    TEXT_MAY_LEAVE,
    SOURCE,
    Option(
        "least_certainty",
        share,
        messages.LEAST_CERTAINTY,
        most=1,
        shown="SCORE",
        help="keep pairs if the fastText score of their language is above this",
    ),
    Option(
        messages.FROM,
        several=True,
        default=(),
        shown="[LANGUAGE=]DAY",
        help="drop pairs whose reply is older, such as 2010-01-01, or en=2018-01-01 for one language",
    ),
    Option(
        messages.UNTIL,
        several=True,
        default=(),
        shown="[LANGUAGE=]DAY",
        help="drop pairs whose reply is from this day or later",
    ),
    column(FIELDS, "parent_id=reply_to"),
    Option(
        "unescape",
        flag,
        False,
        help="decode HTML entities in the texts, such as &amp; for &, as in the dumps of Pushshift",
    ),
    FORMAT,
    LONGEST_LINE,
    MAX_REJECTS,
    checks=_check_threads,
)
def threads_action(values: Values, progress: Progress) -> Outcome:
    name = values["corpus"]
    options = ("licence", "text_may_leave", "source", "format", "unescape", "max_rejects")
    terms = Terms(**import_arguments(values, progress, *options, fields=FIELDS) | {"fields": messages.FIELDS})
    outcome = import_threads(name, values["files"], terms, values["least_certainty"], values["dates"])
    manifest = outcome.manifest
    threads, pairs = thread_facts(name, manifest), many(manifest.rows, "pair")
    rows = threads["declared"]
    rejects, repeats = (
        sum(getattr(source, count) for source in manifest.sources) for count in ("rejects", "duplicates")
    )
    rejects_files = f", listed in {', '.join(map(str, outcome.rejects))}" if rejects else ""
    summary = (
        f"Corpus {name}: {pairs} from {many(len(manifest.sources), 'file')}; {many(repeats, 'duplicate message')} "
        f"dropped, {many(rejects, 'row')} rejected{rejects_files}."
    )
    if outcome.already:
        summary = f"Corpus {name}: no new files; it contains {pairs}."
    tables = [mrs.steps_table(mrs.steps_of(threads))]
    tables += [mrs.disagreement_table(rows)] if rows else []
    data = {"corpus": name, "pairs": manifest.rows, **threads}
    data |= {"duplicates": repeats, "rejects": rejects, "already": outcome.already}
    lines = [line for table in tables for line in ("", as_lines(table))]
    notes = [note for path in values["files"] for note in reading_note(path, values["format"])]
    return Outcome([summary, *lines], [*mrs.language_warnings(rows), *notes], data)


# --- Scores


def _check_scores(values: Values) -> None:
    named_columns(values["column"], scorers.FIELDS)
    check_file(values["file"], values["format"])
    check_pairs(values["corpus"], manifest_of(values["corpus"]))


@action(
    "import_scores",
    "Import a scorer's scores for messages, pairs or replies of the response set, for example of a toxicity detector "
    "(columns id and score, from 0 to 1; a TSV file need not have a header). A pair or reply is dropped if any score "
    "is above its scorer's threshold; pairs without a score are kept. Until items are drawn from the corpus, "
    "a new file or threshold replaces the scorer's earlier one.",
    CORPUS,
    FILE,
    Option("name", required=True, help="the scorer's name, for example detoxify"),
    Option("threshold", share, required=True, most=1, help="drop pairs with a score above this"),
    Option(
        "of",
        default=scorers.MESSAGE,
        choices=scorers.SIDES,
        help="what the ids identify: messages (the higher score of a pair's two messages counts), pairs (by the id "
        "of the reply), or replies of the response set (by their text)",
    ),
    column(scorers.FIELDS, "score=toxicity"),
    FORMAT,
    checks=_check_scores,
)
def scores_action(values: Values, progress: Progress) -> Outcome:
    corpus = values["corpus"]
    arguments = import_arguments(values, progress, "name", "threshold", "of", "format", fields=scorers.FIELDS)
    imported = scorers.import_scores(corpus, values["file"], **arguments)
    scores, remaining = imported.scores, imported.pairs - imported.dropped
    data = asdict(scores) | {"corpus": corpus, "pairs": imported.pairs, "kept": remaining, "empty": imported.empty}
    data |= {"left_out": imported.outside, "already": imported.already}
    already = "already imported" if imported.already else f"{many(scores.rows, 'score')} from {scores.source}"
    summary = (
        f"Scorer {scores.name} of corpus {corpus}: {already}; {are(scores.dropped, 'reply is', 'replies are')} kept "
        f"out of the response set, with scores above {scores.threshold:g}. Export the pairs again."
        if scores.of == scorers.RESPONSE
        else f"Scorer {scores.name} of corpus {corpus}: {already}; {many(scores.dropped, 'pair')} dropped, with scores "
        f"above {scores.threshold:g}. In total, the scorers keep {remaining:,} of {many(imported.pairs, 'pair')} and "
        f"drop {imported.dropped:,}."
    )
    return Outcome([summary], [*_notes(corpus, imported), *reading_note(values["file"], values["format"])], data)


def _notes(corpus: str, imported: scorers.Imported) -> list[str]:
    scores, notes = imported.scores, []
    if imported.replaced:
        notes.append(
            f"Note: these scores replace those of {scores.name} from {imported.replaced.source}, with the threshold "
            f"{imported.replaced.threshold:g}."
        )
    if imported.outside:
        ignored = listed(imported.first_outside, imported.outside, "id")
        notes.append(
            f"Note: these ids were ignored, because no pair of corpus {corpus} has such a {scores.of}: {ignored}."
        )
    if scores.lacking:
        notes.append(
            f"Note: {are(scores.lacking, 'pair has', 'pairs have')} no score of {scores.name}. A missing score does "
            "not drop a pair."
        )
    if imported.draws and not imported.already:
        notes.append(
            f"Note: the filter has changed. Earlier draws ({imported.draws:,}) audit the old filter; open another "
            "task to audit the new one."
        )
    return notes


# --- Export

RESPONSE_SET, THE_SPLITS = "The response set", "The splits"


@action(
    "export_pairs",
    "Write the pairs of a corpus that no scorer drops, as in MRS's published folders: random splits, a set of "
    "frequent replies, JSONL, Parquet, a list of excluded messages with reasons, and a dataset card with the counts "
    "of each step.",
    CORPUS,
    Option(
        "out",
        Path,
        required=True,
        shown="FOLDER",
        help="the output folder. An earlier export of pairs in it is replaced",
    ),
    Option("seed", required=True, help="the seed of the splits and of the order within them"),
    Option("least_pairs", whole_number, 1, least=1, shown="NUMBER", help="exclude languages with fewer pairs"),
    Option("largest", whole_number, least=1, shown="NUMBER", help="keep only this many languages, the largest ones"),
    Option(
        "splits",
        sizes,
        default=(),
        shown="SHARES",
        help="the shares of train, valid and test in each language, as whole numbers; by default "
        f"{' '.join(map(str, SHARES))}",
        group=THE_SPLITS,
    ),
    Option(
        "apart",
        default="message",
        choices=("message", "thread"),
        help="keep equal messages, or all messages of a thread, in the same split",
        group=THE_SPLITS,
    ),
    Option(
        "least",
        whole_number,
        20,
        least=1,
        shown="NUMBER",
        help="the minimum number of pairs for a reply to be in the response set",
        group=RESPONSE_SET,
    ),
    Option(
        "of",
        default="all",
        choices=("all", "train"),
        help="the pairs that count for the response set",
        group=RESPONSE_SET,
    ),
    Option(
        "most",
        whole_number,
        50_000,
        least=1,
        shown="NUMBER",
        help="the maximum number of replies per language, most frequent first",
        group=RESPONSE_SET,
    ),
    Option(
        "strike",
        Path,
        shown="FILE",
        help="replies to exclude: tab-separated lines of reply and reason, or language, reply and reason",
        group=RESPONSE_SET,
    ),
    Option(
        "add",
        Path,
        shown="FILE",
        help="replies to add after the frequent ones, such as translations: tab-separated lines of language, reply and "
        "origin",
        group=RESPONSE_SET,
    ),
    Option(
        "random",
        whole_number,
        0,
        shown="NUMBER",
        help="also write this many random replies of each language, among which systems rank the reference",
        group=RESPONSE_SET,
    ),
    refuses=(ExportError,),
    checks=lambda values: {"plan": _plan(values)},
)
def export_pairs_action(values: Values, progress: Progress) -> Outcome:
    corpus, out, plan = values["corpus"], values["out"], values["plan"]
    struck, added = (
        read_replies(values[name], note=note, in_all_languages=name == "strike") if values[name] else ListedReplies()
        for name, note in (("strike", "the reason for its removal"), ("add", "its origin"))
    )
    responses = Responses(values["least"], values["most"], values["of"], struck, added, random=values["random"])
    manifest = export_pairs(corpus, out, plan, responses)
    languages = manifest["languages"]
    counts = {split: sum(row[split] for row in languages) for split in SPLITS}
    replies = sum(row["responses"] for row in languages)
    summary = (
        f"{many(sum(counts.values()), 'pair')} in {many(len(languages), 'language')} written to {out}: "
        f"{', '.join(f'{split} {count:,}' for split, count in counts.items())}; "
        f"{'1 reply' if replies == 1 else f'{replies:,} replies'} in the response set."
    )
    warnings = []
    if not manifest["corpus"]["text_may_leave"]:
        warnings.append(
            "The licence does not allow publishing the text, so the files contain only ids, languages and scores, "
            "and there is no response set."
        )
    for option, list_name, consequence in (
        ("strike", "struck", "would not have been in the response set anyway,"),
        (
            "add",
            "added",
            "cannot be added: already in the response set, removed, or in a language that is not exported;",
        ),
    ):
        if unseen := manifest["response_set"]["unseen"][list_name]:
            replies_text, example = "1 reply" if len(unseen) == 1 else f"{len(unseen):,} replies", unseen[0]
            warnings.append(
                f"Note: {replies_text} in {values[option]} {consequence} for example in line {example['line']:,}: "
                f"{example['reply'][:60]}."
            )
    if not manifest["filter"]["scorers"]:
        warnings.append("Note: no scores were imported, so no pairs were dropped. See import_scores.")
    return Outcome([summary], warnings, manifest)


def _plan(values: Values) -> Plan:
    """Return the plan of the splits. Raise ActionError for invalid shares, and CorpusError if there are no pairs."""
    check_pairs(values["corpus"], manifest_of(values["corpus"]))
    shares = tuple(values["splits"]) or SHARES
    if len(shares) != len(SPLITS) or min(shares) < 0 or not sum(shares):
        raise ActionError(
            f"--splits is {' '.join(map(str, shares))!r}. It must be three whole numbers for train, valid and test, "
            'such as "80 10 10".'
        )
    return Plan(values["seed"], shares, values["least_pairs"], values["apart"], values["largest"])
