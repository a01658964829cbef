"""Labels by machines: the detectors' votes on posts, and labels suggested for records."""

from annotate.actions.action import CORPUS, Outcome, action
from annotate.core.option import Option, flag, whole_number
from annotate.reports.tables import many
from corpora.core import NAMED
from corpora.core.voters import VOTERS, in_words
from corpora.predictions.concept_rankers import NEAREST, Suggested, suggest
from corpora.storage.layout import manifest_of
from corpora.votes.vote_run import PIECE, prelabel

# --- The detectors' votes


@action(
    "prelabel",
    "Have the detectors name the languages of every post of a corpus. Stopped or killed, it goes on where it "
    f"was: parts that are done are kept, and of the one under way every {PIECE:,} posts; Spark does those under way "
    "once more. Run again, it does the parts that have been added since.",
    CORPUS,
    Option("k", whole_number, 3, least=1, help="how many languages a detector names at most"),
    Option(
        "processes",
        whole_number,
        least=1,
        help="how many processes of this machine work at a time; by default one for each core, or all that Spark has "
        "where ASSAY_ENGINE is spark",
    ),
    Option(
        "again",
        flag,
        False,
        help="replace votes made by other detector versions or another k; a draw made from the old votes can then "
        "no longer be extended",
    ),
)
def prelabel_action(values, progress) -> Outcome:
    name = values["corpus"]
    progress.begin(manifest_of(name).rows, "post")
    chosen = {option: values[option] for option in ("k", "processes", "again")}
    manifest = prelabel(name, **chosen, progress=progress.advance)
    agreed = sum(votes.unanimous for votes in manifest.votes)
    have = "post has" if manifest.rows == 1 else "posts have"
    told = (
        f"Corpus {name}: {manifest.rows:,} {have} votes; on {agreed:,} ({agreed / manifest.rows:.1%}) "
        f"all {in_words(len(VOTERS))} detectors name the same language."
    )
    return Outcome([told], data={"corpus": name, "posts": manifest.rows, "agreed": agreed})


# --- Suggested labels


@action(
    "suggest",
    "Rank labels of a vocabulary for the records of a corpus, as two predictors: label-match, by the labels whose "
    "words stand in a record, and nearest, by the labels that came with the records most like it, never with itself. A "
    "record's first field is taken for its title. The same again changes nothing.",
    CORPUS,
    Option("vocabulary", required=True, shown="NAME", help="the vocabulary of the labels, in its newest version"),
    Option(
        "learn_from",
        default="",
        shown="FIELD=VALUE",
        help="the records whose labels are suggested for others like them, as in split=train; by default all that have "
        "labels",
    ),
    Option(
        "apart",
        default="",
        shown="FIELD",
        help="a field; records with an equal value, such as translations, do not learn from one another",
    ),
    Option("depth", whole_number, 20, least=1, help="how many labels a record has at the most, from either system"),
)
def suggest_action(values, progress) -> Outcome:
    corpus = values["corpus"]
    manifest = manifest_of(corpus)
    # Records are read, and then, if they have labels, held against those.
    progress.begin(manifest.rows * (2 if manifest.declared else 1), "record")
    chosen = {name: values[name] for name in ("learn_from", "apart", "depth")}
    suggested = suggest(corpus, values["vocabulary"], **chosen, progress=progress.advance)
    told = ": already made" if suggested.already else ""
    of = many(manifest.rows, "record")
    said = [
        f"Predictor {each} of corpus {corpus}{told}: ranked labels for {each.rows:,} of {of}, from {each.source}."
        for each in suggested.predictors
    ]
    if suggested.learned:
        said.append(f"The labels of {many(suggested.learned, 'record')} were learned from.")
    return Outcome(said, _odd(suggested), _data(corpus, suggested))


def _odd(suggested: Suggested) -> list[str]:
    warned = []
    if NEAREST not in {each.name for each in suggested.predictors}:
        warned.append(f"Note: no record has a label of the vocabulary, so {NEAREST} was not made.")
    if outside := suggested.outside:
        first = ", the first" if len(outside) > NAMED else ""
        named = ", ".join(sorted(outside)[:NAMED])
        warned.append(
            f"Note: left out, since {suggested.vocabulary} has no such concept: {many(len(outside), 'label')} of the "
            f"records{first}: {named}."
        )
    return warned


def _data(corpus: str, suggested: Suggested) -> dict[str, object]:
    return {
        "corpus": corpus,
        "vocabulary": suggested.vocabulary.name,
        "version": suggested.vocabulary.version,
        "predictors": [{"predictor": str(each), "records": each.rows} for each in suggested.predictors],
        "learned": suggested.learned,
        "left_out": dict(sorted(suggested.outside.items())),
        "already": suggested.already,
    }
