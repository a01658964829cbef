"""The actions for corpora of message-reply pairs: import threads, import scores such as toxicity, and export pairs."""

from dataclasses import asdict
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
)
from annotate.core.option import Option, share, sizes, whole_number
from annotate.goldsets.formats import mrs
from annotate.goldsets.formats.mrs import Responses, Struck, export_pairs, read_struck
from annotate.goldsets.set_folder import ExportError
from annotate.reports.table_formats import as_lines
from annotate.reports.tables import are, many
from corpora.core import listed
from corpora.threads import messages, scorers
from corpora.threads.pair_sets import SHARES, SPLITS, Plan
from corpora.threads.thread_import import import_threads, told_of

# --- Threads

FIELDS = tuple(dict.fromkeys((*messages.MESSAGE, *messages.TURNS)))


@action(
    "import_threads",
    "Make a corpus of message-reply pairs from messages that name the one they answer (columns id, parent_id and "
    "text, and optionally thread, score, deleted, language and author), or from lists of turns (columns thread and "
    "turns). Deleted and empty messages, those with a score under 1, and those whose language fastText is unsure of "
    "are left out, counted and listed with the reason. Name all files in one call; repeating it changes nothing.",
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
        help="keep pairs whose language has a fastText score above this",
    ),
    column(FIELDS, "parent_id=reply_to"),
    FORMAT,
    LONGEST_LINE,
    MAX_REJECTS,
)
def threads_action(values: Values, progress: Progress) -> Outcome:
    name = values["corpus"]
    options = ("licence", "text_may_leave", "source", "format", "least_certainty", "max_rejects")
    outcome = import_threads(name, values["files"], **import_arguments(values, progress, *options, fields=FIELDS))
    manifest = outcome.manifest
    threads, pairs = told_of(name, manifest), many(manifest.rows, "pair")
    rows = threads["declared"]
    rejects, repeats = (sum(getattr(each, of) for each in manifest.sources) for of in ("rejects", "duplicates"))
    rejects_files = f", listed in {', '.join(map(str, outcome.rejects))}" if rejects else ""
    said = (
        f"Corpus {name}: {pairs} from {many(len(manifest.sources), 'file')}; {many(repeats, 'message')} came twice, "
        f"{many(rejects, 'row')} rejected{rejects_files}."
    )
    if outcome.already:
        said = f"Corpus {name}: nothing is new; it has {pairs}."
    tables = [mrs.steps_table(mrs.steps_of(threads))]
    tables += [mrs.disagreement_table(rows)] if rows else []
    data = {"corpus": name, "pairs": manifest.rows, **threads}
    data |= {"duplicates": repeats, "rejects": rejects, "already": outcome.already}
    lines = [line for table in tables for line in ("", as_lines(table))]
    return Outcome([said, *lines], mrs.called_out(rows), data)


# --- Scores


@action(
    "import_scores",
    "Import the scores, from 0 to 1, that a scorer such as a toxicity detector gives to messages or pairs (columns "
    "id and score; a TSV file may lack a header). A pair is dropped if any scorer's score is above its threshold; a "
    "missing score drops nothing. Until something is drawn from the corpus, a new file or threshold replaces the "
    "scorer's earlier one.",
    CORPUS,
    FILE,
    Option("name", required=True, help="the scorer's name, for example detoxify"),
    Option("threshold", share, required=True, most=1, help="drop pairs with a score above this"),
    Option(
        "of",
        default=scorers.MESSAGE,
        choices=scorers.SIDES,
        help="what the ids name: messages (the higher score of a pair's two counts), or pairs (by the id of the reply)",
    ),
    column(scorers.FIELDS, "score=toxicity"),
    FORMAT,
)
def scores_action(values: Values, progress: Progress) -> Outcome:
    corpus = values["corpus"]
    arguments = import_arguments(values, progress, "name", "threshold", "of", "format", fields=scorers.FIELDS)
    imported = scorers.import_scores(corpus, values["file"], **arguments)
    scores, kept = imported.scores, imported.pairs - imported.dropped
    data = asdict(scores) | {"corpus": corpus, "pairs": imported.pairs, "kept": kept, "empty": imported.empty}
    data |= {"left_out": imported.outside, "already": imported.already}
    already = "already imported" if imported.already else f"{many(scores.rows, 'score')} from {scores.source}"
    said = (
        f"Scorer {scores.name} of corpus {corpus}: {already}; above {scores.threshold:g} and so dropped: "
        f"{many(scores.dropped, 'pair')}. All scorers together keep {kept:,} of {many(imported.pairs, 'pair')} and "
        f"drop {imported.dropped:,}."
    )
    return Outcome([said], _notes(corpus, imported), data)


def _notes(corpus: str, imported: scorers.Imported) -> list[str]:
    scores, warned = imported.scores, []
    if imported.replaced:
        warned.append(
            f"Note: these replace the scores of {scores.name} from {imported.replaced.source}, with the threshold "
            f"{imported.replaced.threshold:g}."
        )
    if imported.outside:
        left = listed(imported.first_outside, imported.outside, "id")
        warned.append(f"Note: left out, since no pair of corpus {corpus} has such a {scores.of}: {left}.")
    if scores.lacking:
        warned.append(
            f"Note: {are(scores.lacking, 'pair lacks', 'pairs lack')} a score of {scores.name}, which is not taken for "
            "0: without another reason they are kept."
        )
    if imported.draws and not imported.already:
        warned.append(
            f"Note: the filter is another one now. What was drawn before (draws: {imported.draws:,}) tells of the "
            "filter as it was; open another task to audit this one."
        )
    return warned


# --- Export

RESPONSE_SET, THE_SPLITS = "The response set", "The splits"


@action(
    "export_pairs",
    "Write the pairs of a corpus that no scorer drops: MRS's published folders in random splits, the set of "
    "frequent replies, JSONL, Parquet, what was left out and why, and a card with the count of every step.",
    CORPUS,
    Option(
        "out", Path, required=True, shown="FOLDER", help="the folder to write; it replaces an earlier export of pairs"
    ),
    Option("seed", required=True, help="the seed of the splits and of the order within them"),
    Option("least_pairs", whole_number, 1, least=1, shown="NUMBER", help="leave out languages with fewer pairs"),
    Option(
        "splits",
        sizes,
        default=(),
        shown="SHARES",
        help="the shares of train, valid and test in every language, as whole numbers; without it "
        f"{' '.join(map(str, SHARES))}",
        group=THE_SPLITS,
    ),
    Option(
        "apart",
        default="message",
        choices=("message", "thread"),
        help="keep equal messages, or whole threads, in one split",
        group=THE_SPLITS,
    ),
    Option(
        "least",
        whole_number,
        20,
        least=1,
        shown="NUMBER",
        help="the number of pairs from which on a reply is in the response set",
        group=RESPONSE_SET,
    ),
    Option("of", default="all", choices=("all", "train"), help="the pairs that are counted for it", group=RESPONSE_SET),
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
    refuses=(ExportError,),
)
def export_pairs_action(values: Values, progress: Progress) -> Outcome:
    corpus, out, shares = values["corpus"], values["out"], tuple(values["splits"]) or SHARES
    if len(shares) != len(SPLITS) or min(shares) < 0 or not sum(shares):
        raise ActionError(
            f"--splits is {' '.join(map(str, shares))!r}; write three whole numbers for train, valid and test, such as "
            '"80 10 10".'
        )
    struck = read_struck(values["strike"]) if values["strike"] else Struck()
    plan = Plan(values["seed"], shares, values["least_pairs"], values["apart"])
    manifest = export_pairs(corpus, out, plan, Responses(values["least"], values["most"], values["of"], struck))
    languages = manifest["languages"]
    counts = {split: sum(row[split] for row in languages) for split in SPLITS}
    replies = sum(row["responses"] for row in languages)
    told = (
        f"{many(sum(counts.values()), 'pair')} in {many(len(languages), 'language')} written to {out}: "
        f"{', '.join(f'{split} {count:,}' for split, count in counts.items())}; "
        f"{'1 reply' if replies == 1 else f'{replies:,} replies'} in the response set."
    )
    warned = []
    if not manifest["corpus"]["text_may_leave"]:
        warned.append("The licence keeps the text here: there are ids, languages and scores only, and no response set.")
    if unseen := manifest["response_set"]["unseen"]:
        replies_told = "1 reply" if len(unseen) == 1 else f"{len(unseen):,} replies"
        first = unseen[0]
        warned.append(
            f"Note: {replies_told} of {values['strike']} would not have been in the response set; the first is in line "
            f"{first['line']:,}: {first['reply'][:60]}."
        )
    if not manifest["filter"]["scorers"]:
        warned.append("Note: no scores were imported, so no pair was dropped; see import_scores.")
    return Outcome([told], warned, manifest)
