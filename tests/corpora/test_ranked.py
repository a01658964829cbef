"""import_predictions --ranked: runs of systems that rank labels for the records of a corpus."""

import gzip

import pytest
from django.core.management import CommandError

from annotate.actions.commands import call_command
from corpora.core import CorpusError
from corpora.predictions.predictor_labels import find_predictor
from corpora.predictions.rankings import ranked_for
from corpora.storage.inventory import delete_predictions, predictors_there
from corpora.storage.layout import corpus_dir, manifest_of
from tests.corpora.on_disk import bytes_of

pytestmark = pytest.mark.django_db

ACTS = [
    {"id": f"a{number}", "language": "en", "headline": "Regulation", "body": "Of the Council."}
    for number in range(1, 5)
]
RUN = "a1 Q0 2443 1 0.2 s\na2 Q0 10 2 1 s\na2 Q0 9 1 1.0 s\na2 Q0 1565 3 7 s\na1 Q0 1565 2 0.93 s\na3 Q0 9 1 -1 s\n"
RANKED = {"a1": ["1565", "2443"], "a2": ["1565", "10", "9"], "a3": ["9"], "a4": []}


@pytest.fixture
def corpus(write, import_corpus):
    import_corpus("acts", write("acts.jsonl", ACTS), fields="headline body")
    return "acts"


@pytest.fixture
def importing(corpus, write, capsys):
    """Imports a run and returns what was said."""

    def run(content=RUN, name="mine", version="1", file="mine.run", **options):
        path = write(file, content)
        call_command("import_predictions", corpus, str(path), name=name, version=version, ranked=True, **options)
        said = capsys.readouterr()
        return said.out + said.err

    return run


def test_a_run_is_kept_by_its_scores_and_read_for_the_records_that_are_asked_for(importing):
    said = importing()
    assert "Predictor mine@1 of corpus acts: ranked labels for 3 records from mine.run." in said
    assert "Note: 1 record has no line in mine.run, and so no ranked labels." in said
    assert ranked_for("acts", "mine", ["a4", "a1", "a2", "a3"]) == RANKED
    assert ranked_for("acts", "mine@1", ["a2"]) == {"a2": ["1565", "10", "9"]}


def test_a_packed_run_is_the_same_run_and_the_same_again_changes_nothing(importing):
    importing(gzip.compress(RUN.encode()), file="mine.run.gz")
    before = bytes_of("acts")
    said = importing("\n".join(reversed(RUN.splitlines())))
    assert "Predictor mine@1 of corpus acts: already imported from mine.run.gz." in said
    assert bytes_of("acts") == before


def test_another_run_needs_another_version_and_another_system_is_another_predictor(importing):
    importing()
    for other in (RUN.replace("0.93", "0.1"), RUN + "a4 Q0 9 1 1 s\n", RUN.replace("a3 Q0 9 1 -1 s\n", "")):
        before = bytes_of("acts")
        with pytest.raises(
            CommandError, match=r"says something else of 1 record: a\d than mine@1 .* another --version"
        ):
            importing(other)
        assert bytes_of("acts") == before
        version = str(len(manifest_of("acts").predictions) + 1)
        importing(other, version=version)
    importing("a1 Q0 9 1 1 t\n", name="other")
    assert ranked_for("acts", "other", ["a1", "a2"]) == {"a1": ["9"], "a2": []}
    with pytest.raises(CorpusError, match="mine has several versions for corpus acts; say which: mine@1, mine@2"):
        ranked_for("acts", "mine", ["a1"])


def test_once_the_corpus_has_grown_a_run_may_say_more_under_the_same_version(importing, import_corpus, write):
    importing()
    import_corpus("acts", write("more.jsonl", [ACTS[0] | {"id": "a5"}]), fields="headline body")
    [row] = predictors_there("acts")
    assert (row["posts"], row["of"], row["complete"]) == (3, 5, False)
    with pytest.raises(CommandError, match="says something else of 1 record: a1"):
        importing(RUN.replace("0.93", "0.1"))
    importing(RUN + "a5 Q0 9 1 1 s\n")
    assert ranked_for("acts", "mine", ["a1", "a5"]) == {"a1": ["1565", "2443"], "a5": ["9"]}
    [row] = predictors_there("acts")
    assert (row["posts"], row["complete"]) == (4, True)


def test_records_that_the_corpus_has_not_are_left_out_and_told(importing):
    said = importing("x Q0 9 1 1 s\nx Q0 8 2 0.5 s\ny Q0 9 1 1 s\n" + RUN)
    assert "Note: left out, since corpus acts has no such records: 2 ids: x, y." in said
    assert ranked_for("acts", "mine", RANKED) == RANKED


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("a1 Q0 9 1 nan s", "line 2: 'nan' is not a score; write a finite number such as 0.93."),
        ("a1 Q0 1565 2 0.5 s", "line 2: a1 has the label 1565 twice; give each label one score."),
        ("a1 Q0 9 1 0.5", "line 2: The row has 5 fields where a run has 6: document, Q0, label, rank, score, system."),
        (
            "a1 Q0 civil law 1 0.5 s",
            "line 2: The row has 7 fields where a run has 6: document, Q0, label, rank, score, system.",
        ),
        (
            "a1 Q0 9 1 0.5 t",
            "line 2: the system is 't', and 's' in the lines before; put the lines of each system into a file of their "
            "own.",
        ),
        (f"a1 Q0 {'9' * 201} 1 0.5 s", f"line 2: The label {'9' * 20}… has 201 characters; 200 are the most."),
        ("a1 Q0 \0 1 0.5 s", "line 2: The row holds a NUL character, which databases refuse."),
        ("a1 Q0 9 1 0.5 s" + " " * (1 << 20), "line 2: The line is longer than 1,048,576 bytes."),
    ],
)
def test_a_line_that_is_none_of_a_run_is_refused_with_its_number_and_nothing_is_kept(importing, line, sentence):
    with pytest.raises(CommandError) as refused:
        importing(f"a1 Q0 1565 1 1 s\n{line}\n")
    assert f"mine.run, {sentence}" in str(refused.value)
    assert manifest_of("acts").predictions == ()
    assert list((corpus_dir("acts") / "predictions").iterdir()) == []


def test_where_a_vocabulary_is_named_its_newest_version_must_have_each_label(importing, write):
    call_command("import_vocabulary", "law", write("law.json", '{"9": {"label": "law"}}'), verbosity=0)
    with pytest.raises(CommandError, match=r"line 1: '2443' is not one of the 1 labels; correct it, or leave it out\."):
        importing(vocabulary="law")
    importing("a1 Q0 9 1 1 s\n", vocabulary="law")
    with pytest.raises(CommandError, match="There is no vocabulary 'lex'; there is: law 1"):
        importing(version="2", vocabulary="lex")


def test_what_needs_one_label_a_record_refuses_a_ranked_predictor(importing, corpus, write, capsys):
    importing()
    one = write("one.tsv", "".join(f"{act['id']}\tlaw\n" for act in ACTS))
    call_command("import_predictions", corpus, str(one), name="one", version="1")
    capsys.readouterr()
    with pytest.raises(
        CorpusError, match="mine@1 ranks labels for the records of corpus acts, and this needs one that"
    ):
        find_predictor("acts", "mine")
    with pytest.raises(CorpusError, match="one@1 of corpus acts gives each record a single label and ranks none"):
        ranked_for("acts", "one", ["a1"])
    with pytest.raises(
        CorpusError, match=r"There is no predictor 'mind' for corpus acts; there is: langid.*Did you mean mine@1"
    ):
        ranked_for("acts", "mind", ["a1"])
    with pytest.raises(CommandError, match="mine@1 is a predictor that ranks labels; choose another name or version"):
        call_command("import_predictions", corpus, str(one), name="mine", version="1")
    with pytest.raises(CommandError, match="one@1 is a predictor that gives each post or record one label"):
        importing(name="one")
    with pytest.raises(CommandError, match="mine@1 ranks labels"):
        call_command(
            "open_task",
            "t",
            corpus=corpus,
            kind="topic",
            seed="1",
            labels="law trade",
            predictor="mine",
            sets="test 2 train 2",
        )


def test_ranked_predictors_are_listed_as_such_and_can_be_deleted(importing, capsys):
    importing()
    [row] = predictors_there("acts")
    assert (row["predictor"], row["posts"], row["of"], row["ranked"]) == ("mine@1", 3, 4, True)
    call_command("predictors", "acts")
    assert "ranked" in capsys.readouterr().out
    delete_predictions("acts", "mine")
    assert predictors_there("acts") == []
    assert list((corpus_dir("acts") / "predictions").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"column": ["label=lang"]}, "--column is for files that give each post one label"),
        ({"format": "tsv"}, "--format is for files that give each post one label"),
        ({"map": ["a=de"]}, "--map is for files that give each post one label"),
        ({"name": "langid"}, "langid is a predictor that every corpus has"),
        ({"content": "x Q0 9 1 1 s\n"}, "no line of any of the 4 records of corpus acts; give a run of these"),
    ],
)
def test_options_that_do_not_go_together_and_runs_of_something_else_are_refused(importing, options, sentence):
    with pytest.raises(CommandError, match=sentence):
        importing(**options)


def test_runs_are_for_records_and_vocabularies_for_runs(import_corpus, write, corpus):
    run = write("mine.run", "1 Q0 9 1 1 s\n")
    import_corpus("posts", write("posts.jsonl", [{"id": "1", "text": "Guten Morgen zusammen."}]))
    with pytest.raises(CommandError, match="Corpus posts holds posts, not records"):
        call_command("import_predictions", "posts", str(run), name="mine", version="1", ranked=True)
    with pytest.raises(CommandError, match="--vocabulary is for ranked labels alone"):
        call_command("import_predictions", corpus, str(run), name="mine", version="1", vocabulary="law")
