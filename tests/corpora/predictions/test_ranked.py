"""import_predictions --ranked: runs of systems that rank labels for the records of a corpus."""

import gzip

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from corpora.core import CorpusError
from corpora.predictions.predictor_labels import find_predictor
from corpora.predictions.rankings import load_rankings
from corpora.storage.inventory import delete_predictions, predictor_rows
from corpora.storage.layout import corpus_dir, manifest_of
from tests.corpora.on_disk import bytes_of

pytestmark = pytest.mark.django_db

ACTS = [{"id": f"a{n}", "language": "en", "headline": "Regulation", "body": "Of the Council."} for n in range(1, 5)]
RUN = "a1 Q0 2443 1 0.2 s\na2 Q0 10 2 1 s\na2 Q0 9 1 1.0 s\na2 Q0 1565 3 7 s\na1 Q0 1565 2 0.93 s\na3 Q0 9 1 -1 s\n"
RANKED = {"a1": ["1565", "2443"], "a2": ["1565", "10", "9"], "a3": ["9"], "a4": []}


@pytest.fixture
def corpus(write, import_corpus):
    import_corpus("acts", write("acts.jsonl", ACTS), fields="headline body")
    return "acts"


@pytest.fixture
def importing(corpus, write, printed):
    def run(content=RUN, name="mine", version="1", file="mine.run", **options):
        options |= {"name": name, "version": version, "ranked": True}
        return printed("import_predictions", corpus, write(file, content), **options)

    return run


def test_a_run_is_kept_by_its_scores_listed_as_ranked_and_deleted(importing, capsys):
    run = f"x Q0 9 1 1 s\nx Q0 8 2 0.5 s\ny Q0 9 1 1 s\n{RUN}"
    output = importing(gzip.compress(run.encode()), file="mine.run.gz")
    assert "Predictor mine@1 of corpus acts: ranked labels for 3 records from mine.run.gz." in output
    assert "Note: 1 record has no ranked labels, because mine.run.gz contains no line for it." in output
    assert "Note: these ids were ignored, because corpus acts has no such records: 2 ids: x, y." in output
    assert load_rankings("acts", "mine", ["a4", "a1", "a2", "a3"]) == RANKED
    assert load_rankings("acts", "mine@1", ["a2"]) == {"a2": ["1565", "10", "9"]}
    before = bytes_of("acts")
    output = importing("\n".join(reversed(RUN.splitlines())))
    assert "Predictor mine@1 of corpus acts: already imported from mine.run.gz." in output
    assert bytes_of("acts") == before
    [row] = predictor_rows("acts")
    assert (row["predictor"], row["posts"], row["of"], row["ranked"]) == ("mine@1", 3, 4, True)
    call_command("predictors", "acts")
    assert "ranked" in capsys.readouterr().out
    delete_predictions("acts", "mine")
    assert predictor_rows("acts") == []
    assert list((corpus_dir("acts") / "predictions").iterdir()) == []


def test_another_run_needs_another_version_and_another_system_is_another_predictor(importing):
    importing()
    others = [RUN.replace("0.93", "0.1"), RUN + "a4 Q0 9 1 1 s\n", RUN.replace("a3 Q0 9 1 -1 s\n", "")]
    for version, other in enumerate(others, 2):
        with pytest.raises(CommandError, match=r"differs from mine@1, .* in 1 record: a\d.* another --version"):
            importing(other)
        importing(other, version=str(version))
    importing("a1 Q0 9 1 1 t\n", name="other")
    assert load_rankings("acts", "other", ["a1", "a2"]) == {"a1": ["9"], "a2": []}
    with pytest.raises(CorpusError, match=r"mine of corpus acts has several versions. Use one of mine@1, mine@2"):
        load_rankings("acts", "mine", ["a1"])


def test_once_the_corpus_has_grown_a_run_may_say_more_under_the_same_version(importing, import_corpus, write):
    importing()
    import_corpus("acts", write("more.jsonl", [ACTS[0] | {"id": "a5"}]), fields="headline body")
    [row] = predictor_rows("acts")
    assert (row["posts"], row["of"], row["complete"]) == (3, 5, False)
    with pytest.raises(CommandError, match="in 1 record: a1"):
        importing(RUN.replace("0.93", "0.1"))
    importing(RUN + "a5 Q0 9 1 1 s\n")
    assert load_rankings("acts", "mine", ["a1", "a5"]) == {"a1": ["1565", "2443"], "a5": ["9"]}
    [row] = predictor_rows("acts")
    assert (row["posts"], row["complete"]) == (4, True)


NOT_A_RUN = "but a run has 6: document, Q0, label, rank, score, system."


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("a1 Q0 9 1 nan s", "'nan' is not a score. Write a finite number such as 0.93."),
        ("a1 Q0 1565 2 0.5 s", "a1 has the label 1565 twice. Each label must have one score."),
        ("a1 Q0 9 1 0.5", f"The row has 5 fields, {NOT_A_RUN}"),
        ("a1 Q0 civil law 1 0.5 s", f"The row has 7 fields, {NOT_A_RUN}"),
        ("a1 Q0 9 1 0.5 t", "The system is 't', but earlier lines have 's'. Write each system to a "),
        (f"a1 Q0 {'9' * 201} 1 0.5 s", f"The label {'9' * 20}… has 201 characters. The limit is 200."),
        ("a1 Q0 9 1 0.5 s" + " " * (1 << 20), "The line is longer than 1,048,576 bytes."),
    ],
)
def test_a_line_that_is_none_of_a_run_is_refused_with_its_number_and_nothing_is_kept(importing, line, sentence):
    with pytest.raises(CommandError) as refused:
        importing(f"a1 Q0 1565 1 1 s\n{line}\n")
    assert f"mine.run, line 2: {sentence}" in str(refused.value)
    assert manifest_of("acts").predictions == ()
    assert list((corpus_dir("acts") / "predictions").iterdir()) == []


def test_where_a_vocabulary_is_named_its_newest_version_must_have_each_label(importing, write):
    call_command("import_vocabulary", "law", write("law.json", '{"9": {"label": "law"}}'), verbosity=0)
    with pytest.raises(CommandError, match=r"line 1: '2443' is not one of the 1 labels\. Correct or remove it\."):
        importing(vocabulary="law")
    importing("a1 Q0 9 1 1 s\n", vocabulary="law")
    with pytest.raises(CommandError, match=r"The vocabulary 'lex' does not exist. Available vocabularies: law 1"):
        importing(version="2", vocabulary="lex")


def test_what_needs_one_label_a_record_refuses_a_ranked_predictor(importing, corpus, write):
    importing()
    one = str(write("one.tsv", "".join(f"{act['id']}\tlaw\n" for act in ACTS)))
    call_command("import_predictions", corpus, one, name="one", version="1")
    task = {"kind": "topic", "seed": "1", "labels": "law trade", "predictor": "mine", "sets": "test 2 train 2"}
    for refused, error, sentence in (
        (lambda: find_predictor("acts", "mine"), CorpusError, "mine@1 of corpus acts ranks labels"),
        (lambda: load_rankings("acts", "one", []), CorpusError, "one@1 of corpus acts assigns one label per record"),
        (lambda: load_rankings("acts", "mind", []), CorpusError, "'mind'. .*: mine@1, one@1. Did you mean mine@1"),
        (
            lambda: call_command("import_predictions", corpus, one, name="mine", version="1"),
            CommandError,
            "mine@1 already exists and ranks labels. Choose another name or version",
        ),
        (
            lambda: importing(name="one"),
            CommandError,
            "one@1 already exists and assigns one label to each post or record",
        ),
        (
            lambda: call_command("open_task", "t", corpus=corpus, **task),
            CommandError,
            "mine@1 of corpus acts ranks labels",
        ),
    ):
        with pytest.raises(error, match=sentence):
            refused()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"column": ["label=lang"]}, "--column cannot be used with --ranked"),
        ({"format": "tsv"}, "--format cannot be used with --ranked"),
        ({"map": ["a=de"]}, "--map cannot be used with --ranked"),
        ({"name": "langid"}, "langid is the name of a built-in predictor"),
        ({"content": "x Q0 9 1 1 s\n"}, "contains none of the 4 records in corpus acts. Check the file"),
    ],
)
def test_options_that_do_not_go_together_and_runs_of_something_else_are_refused(importing, options, sentence):
    with pytest.raises(CommandError, match=sentence):
        importing(**options)


def test_runs_are_for_records_and_vocabularies_for_runs(import_corpus, write, corpus):
    run = str(write("mine.run", "1 Q0 9 1 1 s\n"))
    import_corpus("posts", write("posts.jsonl", [{"id": "1", "text": "Guten Morgen zusammen."}]))
    for name, options, sentence in (
        ("posts", {"ranked": True}, "Corpus posts contains posts, but records"),
        (corpus, {"vocabulary": "law"}, "--vocabulary applies only to ranked labels"),
    ):
        with pytest.raises(CommandError, match=sentence):
            call_command("import_predictions", name, run, name="mine", version="1", **options)
