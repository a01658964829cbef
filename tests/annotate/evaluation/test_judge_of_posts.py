"""The certificate of a machine judge on a uniform set of posts, of which people read a part of each stratum."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotate.actions.registry import call_command
from corpora.storage.layout import Part, corpus_dir, manifest_of, write_manifest
from tests.annotate.evaluation.figures import figures, refusal, written

pytestmark = pytest.mark.django_db(transaction=True)

# 380 posts, of which 140 were read: rows of gold_folders.World.uniform, with what the judge says at the end.
TABLE = (
    (38, "de", "audited", "de", "de"),
    (2, "de", "audited", "en", "en"),
    (150, "de", "agreed", "", "de"),
    (10, "de", "agreed", "", "en"),
    (30, "en", "audited", "en", "en"),
    (90, "en", "agreed", "", "en"),
    (30, "", "disputed", "de", "de"),
    (25, "", "disputed", "en", "en"),
    (5, "", "disputed", "en", "de"),
)
# (200 x 38/40 + 30) / 380: the share of German in the draw, by stratum.
BY_PEOPLE = (200 * 38 / 40 + 30) / 380


@pytest.fixture
def judged(world, tmp_path):
    """judged(TABLE): the gold set, and a judge's file for the whole corpus, twice as large as the draw."""

    def make(table):
        gold, keys = world.uniform(table)
        others = [f"other-{n}" for n in range(len(keys))]
        parts = corpus_dir("corpus") / "parts"
        parts.mkdir()
        # The second part was added after the draw.
        for name, ids in (("1.parquet", [*keys, *others]), ("2.parquet", ["later"])):
            pq.write_table(pa.table({"id": ids}), parts / name)
        entries = (Part("1.parquet", 2 * len(keys), "0"), Part("2.parquet", 1, "0"))
        write_manifest("corpus", replace(manifest_of("corpus"), parts=entries))
        labels = [world.predictions[key] for key in keys]
        return gold, written(tmp_path / "judge.tsv", zip([*keys, *others], labels * 2, strict=True))

    return make


def test_shares_rest_on_the_posts_that_people_read(judged, run):
    gold, judge = judged(TABLE)
    report = run("--judge", judge, "--gold", gold, "--half-width", "4")
    alone = figures(report, "corpus_share", label="de", way="people alone")
    powered = figures(report, "corpus_share", label="de", way="prediction-powered")
    assert alone["value"] == pytest.approx(BY_PEOPLE)
    assert alone["units"] == 130
    assert alone["low"] < BY_PEOPLE < alone["high"]
    assert powered["high"] - powered["low"] < alone["high"] - alone["low"]
    # Of what the judge alone labels English where the detectors agree on German, all that was read is English.
    assert powered["value"] < alone["value"]
    assert figures(report, "answers_needed", label="de", needed="people alone")["value"] > 0
    assert "Of the 760 items that the judge labelled." in report["words"]["shares"]
    assert figures(report, "accuracy", posts="with und")["value"] > 0.9
    assert "The set contains no individual answers, so the judge is not compared with people." in report["told"]


def test_the_labels_on_which_detectors_agree_count_for_nothing(judged, run):
    turned = [(posts, *row[:-1], "en" if row[1] == "agreed" else row[-1]) for posts, *row in TABLE]
    gold, judge = judged(turned)
    report = run("--judge", judge, "--gold", gold)
    assert figures(report, "corpus_share", label="de", way="people alone")["value"] == pytest.approx(BY_PEOPLE)


def test_a_predictor_of_the_corpus_may_be_the_judge_of_posts(judged, run):
    gold, judge = judged(TABLE)
    with judge.open("a", encoding="utf-8") as file:
        file.write("later\ten\n")
    call_command("import_predictions", "corpus", judge, name="mine", version="1", verbosity=0)
    assert run("--judge", "mine@1", "--gold", gold)["rows"] == run("--judge", judge, "--gold", gold)["rows"]


def test_posts_on_which_no_judge_can_be_certified_are_refused(judged, world, tmp_path):
    unread = [(posts, *row) for posts, *row in TABLE if row[:2] != ["en", "audited"]]
    gold, judge = judged(unread)
    message = refusal("--judge", judge, "--gold", gold)
    assert "People read too few posts of the gold set stream on which the detectors agree (en (0 of 90))" in message
    assert message.endswith("Audit more posts with assay audit TASK --add N, and export the set again.")
    recall, _ = world.verify("recall", "de", [(30, "de", "de")])
    assert refusal("--judge", judge, "--gold", recall).startswith(
        "A judge's certificate requires exactly one uniform set"
    )
    assert refusal("--judge", judge, "--gold", gold, "--gold", recall).startswith(
        "A judge's certificate requires exactly one"
    )


def test_a_judge_of_posts_labels_every_post_of_the_corpus(judged):
    gold, judge = judged(TABLE)
    judge.write_text("".join(judge.read_text().splitlines(keepends=True)[:500]))
    sentence = "has labels for 500 of the 760 items from which the gold set stream"
    assert sentence in refusal("--judge", judge, "--gold", gold)
