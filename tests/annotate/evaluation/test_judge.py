"""The certificate of a machine judge that labelled a whole corpus, from the files to the report."""

import random
import re

import pytest

from annotate.actions.registry import call_command
from tests.annotate.evaluation.figures import figures, refusal, rows_of, written

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
PEOPLE = ("ann", "bea", "cem")


def truth_of(key):
    return "123"[int(key[1:]) % 3]


def erring(share, seed):
    chance = random.Random(seed)
    return lambda key: truth_of(key) if chance.random() > share else chance.choice("123")


@pytest.fixture
def certified(reviews, tmp_path, run):
    """certified(.1): the report on a judge that errs in this share of 240 records, of which three people read 90."""

    def make(wrong, *options):
        slip = erring(0.05, 1)
        gold = reviews(240, lambda name, key: slip(key), PEOPLE, size=45, redundancy="3")
        says = erring(wrong, 2)
        judge = written(tmp_path / "judge.tsv", [(f"r{n}", says(f"r{n}")) for n in range(240)])
        return gold, judge, run("--judge", judge, "--gold", gold, "--corpus", "reviews", *options)

    return make


def test_a_good_judge_may_stand_in_for_people(certified):
    gold, _, report = certified(0.03)
    read = len(rows_of(gold))
    assert "can replace a person: it wins against 3 of 3 people" in " ".join(report["words"]["by-person"])
    with_people = figures(report, "pairwise_agreement", answers="judge with people")
    among = figures(report, "pairwise_agreement", answers="people with each other")
    assert with_people["units"] == among["units"] == read
    assert with_people["low"] < with_people["value"] < with_people["high"]
    assert with_people["count"] is None
    assert [row["note"] for row in report["rows"] if row["measure"] == "judge_close"] == ["the judge wins"] * 3


def ways_of(report, *ways):
    return ([figures(report, "corpus_share", label=label, way=way) for label in "123"] for way in ways)


def test_a_judge_narrows_shares_that_are_estimated_in_three_ways_but_a_poor_one_or_one_of_one_label_does_not(
    certified, tmp_path, run
):
    gold, _, report = certified(0.1, "--half-width", "4")
    widths = {}
    for way in ("people alone", "Rogan-Gladen", "prediction-powered"):
        share = figures(report, "corpus_share", label="3", way=way)
        assert share["low"] < 1 / 3 < share["high"]
        widths[way] = share["high"] - share["low"]
        assert figures(report, "answers_needed", label="3", needed=way)["value"] > 0
    assert widths["prediction-powered"] < widths["people alone"]
    for name, label_of in (("poor", erring(1.0, 2)), ("one", lambda key: "1")):
        labels = written(tmp_path / f"{name}.tsv", [(f"r{n}", label_of(f"r{n}")) for n in range(240)])
        report = run("--judge", labels, "--gold", gold, "--corpus", "reviews")
        assert "cannot replace a person" in " ".join(report["words"]["by-person"])
        powered, alone = ways_of(report, "prediction-powered", "people alone")
        same = [place for place, row in enumerate(powered) if row["note"].startswith("same as people alone")]
        assert same
        for place in same:
            assert (powered[place]["low"], powered[place]["high"]) == (alone[place]["low"], alone[place]["high"])
        notes = [powered[place]["note"] for place in same]
        if name == "poor":
            assert all("too weakly" in note and note.endswith("; at least 0.11 is needed)") for note in notes)
        else:
            reason = "same as people alone, because the judge or people gave this label to none or all"
            assert len(notes) == 3
            assert all(note.startswith(reason) for note in notes)


def test_what_a_certificate_lacks_is_one_sentence(certified, tmp_path):
    gold, judge, _ = certified(0.1)
    lines = judge.read_text().splitlines(keepends=True)
    ids = {row["id"] for row in rows_of(gold)}
    some = tmp_path / "some.tsv"
    some.write_text("".join(line for line in lines if line.split("\t")[0] in ids or line < "r2"))
    assert "of the 240 items from which the gold set mood was drawn" in refusal(
        "--judge", some, "--gold", gold, "--corpus", "reviews"
    )
    some.write_text("".join(line for line in lines if line.split("\t")[0] in ids))
    assert f"for only the {len(ids)} items of the set" in refusal("--judge", some, "--gold", gold)
    some.write_text("".join(lines[:-1]) + "invented\t1\n")
    assert "has labels for 239 of the 240 items" in refusal("--judge", some, "--gold", gold)
    assert "was drawn from corpus reviews, not other" in refusal("--judge", judge, "--gold", gold, "--corpus", "other")
    assert refusal(judge, "--judge", judge, "--gold", gold).startswith("Specify either predictions to measure, or")
    assert refusal("--judge", judge, "--gold", gold, "--split", "test").startswith(
        "--split cannot be used with --judge"
    )
    assert refusal("--gold", gold).startswith("There is nothing to measure.")


def test_a_refusal_of_the_judge_is_a_wrong_answer_in_agreement_and_no_label_in_shares(certified, tmp_path, run):
    gold, judge, report = certified(0.05)
    labels = dict(line.split("\t") for line in judge.read_text().splitlines())
    refused = [key for key in labels if labels[key] == truth_of(key) == "3" and int(key[1:]) % 4 == 0]
    path = written(tmp_path / "refusing.tsv", [(key, "" if key in refused else label) for key, label in labels.items()])
    certificate = run("--judge", path, "--gold", gold)
    read = {row["id"] for row in rows_of(gold)}
    hidden = len(read & set(refused))
    assert 0 < hidden < len(refused)
    assert f"The judge refused {len(refused)} of them." in certificate["words"]["shares"][0]
    assert figures(certificate, "refused")["note"] == f"{hidden} of {len(read)}"
    before, after = (
        figures(evaluation, "pairwise_agreement", answers="judge with people")["value"]
        for evaluation in (report, certificate)
    )
    lost = sum(
        sum(answer["label"] == labels[row["id"]] for answer in row["judgments"]) / len(row["judgments"])
        for row in rows_of(gold)
        if row["id"] in refused
    )
    assert after == pytest.approx(before - lost / len(read))
    for way in ("people alone", "Rogan-Gladen", "prediction-powered"):
        share = figures(certificate, "corpus_share", label="3", way=way)
        assert share["low"] < 1 / 3 < share["high"]


def test_a_predictor_of_the_corpus_may_be_the_judge(certified, run):
    gold, judge, report = certified(0.1)
    call_command("import_predictions", "reviews", judge, name="mine", version="1", verbosity=0)
    assert run("--judge", "mine@1", "--gold", gold)["rows"] == report["rows"]
    assert refusal("--judge", "mine@2", "--gold", gold).startswith("Corpus reviews has no predictor 'mine@2'.")
    assert refusal("--judge", "langid", "--gold", gold)


def test_the_page_shows_the_shares_side_by_side(certified, tmp_path):
    gold, judge, _ = certified(0.1)
    call_command("evaluate", judge=str(judge), gold=[gold], out=tmp_path / "out", verbosity=0)
    page = (tmp_path / "out" / "report.html").read_text()
    drawn = page.split("Share of each label in the corpus</h2>")[1].split("</svg></div>")[0].split("<table")[0]
    assert drawn.count("<title>") >= 3
    for way in ("people alone", "Rogan-Gladen", "prediction-powered"):
        assert way in drawn
    agreement = page.split("Agreement with people</h2>")[1].split("</table>")[0]
    assert re.search(r">[+−]\d+\.\d \[[+−]", agreement)  # the difference, in points


def test_a_set_that_is_no_sample_is_refused(crowd, tmp_path):
    judge = written(tmp_path / "judge.tsv", [*((row["id"], row["label"]) for row in rows_of(crowd)), ("another", "1")])
    assert "have probability 1, so they are not a sample of" in refusal("--judge", judge, "--gold", crowd)
