"""A predictor measured on a uniform set together with those of its triggers there that people read afterwards."""

import json

import pytest

from annotate.core.estimation.proportions import proportion
from annotate.evaluation.subjects import EvaluationError, read_sets, subject_of_file
from tests.annotate.evaluation.figures import accuracy, by_label, close, interval, run, values

# Of 100 posts on which the detectors agree on English, 20 were audited; ten that the predictor calls German were not.
STREAM = (
    (20, "en", "audited", "en", "en"),
    (70, "en", "agreed", "", "en"),
    (10, "en", "agreed", "", "de"),
    (30, "de", "audited", "de", "de"),
    (30, "de", "agreed", "", "de"),
)
TRIGGERS = slice(90, 100)


@pytest.fixture
def verified(world):
    """verified(["de", "not-de"]) exports the stream, and a set of its unread triggers that got these labels."""

    def make(labels, table=STREAM, triggers=TRIGGERS, label="de", predictor="mine@1"):
        stream, keys = world.uniform(table)
        shared = list(zip(keys[triggers], labels, strict=False))
        folder, _ = world.verify("triggers", label, [], shared=shared, predictor=predictor, of="stream")
        return stream, folder

    return make


def width(estimate):
    return estimate["high"] - estimate["low"]


def test_what_was_verified_counts_in_the_precision_and_recall_of_its_label_and_in_accuracy(world, verified):
    stream, triggers = verified(["de"] * 4 + ["not-de"] * 6)
    alone, both = run(world.subject(), stream), run(world.subject(), stream, triggers)
    assert values(alone, "precision")["de"] == close("60/70")
    assert values(both, "precision")["de"] == close("64/70")
    assert accuracy(both)["value"] == close("154/160")
    assert values(both, "recall")["de"] == 1
    for before, after in (
        (accuracy(alone), accuracy(both)),
        *((by_label(report, "precision")["de"] for report in (alone, both)),),
        *((by_label(report, "recall")["de"] for report in (alone, both)),),
    ):
        assert width(after) < width(before)
        assert after["units"] > before["units"]
    for measure in ("precision", "recall"):
        assert both["words"][measure][0].startswith("Measured on the triggers set and uniform set")
    assert both["warnings"] == []
    # Measures of other labels do not use it, since a No does not say what a post is.
    for measure in ("recall", "precision"):
        assert by_label(both, measure)["en"] == by_label(alone, measure)["en"]
    assert both["confusion"] == alone["confusion"]
    assert by_label(both, "precision").keys() == {"de", "en"}


def test_five_drawn_at_random_stand_for_all_ten_of_them(world, verified):
    sets = verified(["de"] * 2 + ["not-de"] * 3)
    report = run(world.subject(), *sets)
    assert values(report, "precision")["de"] == close("64/70")
    assert accuracy(report)["value"] == close("154/160")


def test_undefined_posts_are_wrong_with_und_and_left_out_without(world, verified):
    sets = verified(["de"] * 4 + ["und"] * 6)
    report = run(world.subject(), *sets)
    assert values(report, "precision")["de"] == close("64/70")
    assert values(report, "precision_without_und")["de"] == close("64/64")
    assert accuracy(report, "without und")["value"] == close("154/154")


def test_the_bounds_meet_where_all_triggers_were_read(world, verified):
    """The detectors never agree on Dutch, so that precision of Dutch rests on verified and disputed posts alone."""
    table = (
        (30, "en", "audited", "en", "en"),
        (22, "en", "agreed", "", "en"),
        (8, "en", "agreed", "", "nl"),
        (12, "", "disputed", "nl", "nl"),
    )
    stream, triggers = verified(["nl"] * 3 + ["not-nl"] * 5, table, slice(52, 60), "nl")
    wide = by_label(run(world.subject(), stream), "precision")["nl"]
    full = by_label(run(world.subject(), stream, triggers), "precision")["nl"]
    assert wide["value"] == close("12/20")
    assert wide["high"] > 0.9
    plain = proportion(15, 20)
    assert (full["value"], full["units"], interval(full)) == (close("15/20"), 20, (plain.low, plain.high))


def test_audited_triggers_stand_for_themselves_and_those_that_were_verified_for_the_others(world, verified):
    """Each of ten audited posts stands for ten; that both audited triggers are German says nothing of the others."""
    table = (
        (28, "en", "audited", "en", "en"),
        (2, "en", "audited", "de", "de"),
        (250, "en", "agreed", "", "en"),
        (20, "en", "agreed", "", "de"),
        (30, "de", "audited", "de", "de"),
    )
    stream, triggers = verified(["de"] + ["not-de"] * 9, table, slice(280, 290))
    report = run(world.subject(), stream, triggers)
    # 30 of the agreed, two audited, and two of twenty.
    assert values(report, "precision")["de"] == close("34/52")


def test_a_post_that_was_audited_since_counts_as_the_audit_found_it(world):
    stream, keys = world.uniform([(30, "en", "audited", "en", "en"), (5, "en", "audited", "de", "de")])
    shared = [(key, "not-de") for key in keys[30:]]
    triggers, _ = world.verify("triggers", "de", [], shared=shared, predictor="mine@1", of="stream")
    assert values(run(world.subject(), stream, triggers), "precision")["de"] == 1


def test_the_set_is_refused_alone_and_with_another_uniform_set(world, verified):
    _, triggers = verified(["de"] * 10)
    why = r"triggers-de contains only the posts of the uniform set stream on which a predictor disagrees .* Add the"
    with pytest.raises(EvaluationError, match=why):
        run(world.subject(), triggers)
    other, _ = world.uniform(STREAM, "other")
    with pytest.raises(EvaluationError, match=why):
        run(world.subject(), other, triggers)


def test_triggers_of_another_predictor_are_reported_and_left_out(world, verified):
    stream, triggers = verified(["de"] * 10, predictor="mine@2")
    alone, both = run(world.subject(), stream), run(world.subject(), stream, triggers)
    [warning] = both["warnings"]
    assert warning.startswith("The gold set triggers-de contains unread triggers of mine@2")
    assert both["rows"] == alone["rows"]


def test_a_file_that_may_be_the_predictor_gets_a_warning_to_name_the_predictor(world, verified, tmp_path):
    stream, triggers = verified(["de"] * 10)
    path = tmp_path / "mine.tsv"
    rows = [json.loads(line) for line in (stream / "gold.jsonl").read_text().splitlines()]
    path.write_text("id\tlabel\n" + "".join(f"{row['id']}\tde\n" for row in rows))
    sets = read_sets([stream, triggers], allow_erased=False, unfinished=False)
    [warning] = run(subject_of_file(path, {}, sets=sets), stream, triggers)["warnings"]
    assert warning.endswith(
        "do not measure mine.tsv. If mine.tsv was imported as mine@1, specify mine@1 instead of the file."
    )


def test_triggers_that_the_uniform_set_did_not_contain_yet_are_reported(world):
    stream, keys = world.uniform(STREAM)
    _, later = world.uniform(((2, "en", "agreed", "", "de"),), "later")
    shared = [*zip(keys[TRIGGERS], ["de"] * 4 + ["not-de"] * 6, strict=True), *((key, "de") for key in later)]
    triggers, _ = world.verify("triggers", "de", [], shared=shared, predictor="mine@1", of="stream")
    report = run(world.subject(), stream, triggers)
    assert values(report, "precision")["de"] == close("64/70")
    assert report["warnings"] == [
        "The uniform set lacks 2 posts that people verified as unread triggers, because it was exported before "
        "they were drawn. Export it again to include them."
    ]


def test_triggers_do_not_count_where_the_uniform_set_is_naive(world, verified):
    table = ((4, "en", "audited", "en", "en"), (40, "en", "agreed", "", "de"))
    stream, triggers = verified(["de"] * 40, table, slice(4, 44))
    report = run(world.subject(), stream, triggers)
    assert report["warnings"][-1] == "For the same reason, the unread triggers that people verified do not count."
    assert values(report, "precision") == values(run(world.subject(), stream), "precision")


def test_two_predictors_are_compared_without_triggers(world, verified):
    stream, triggers = verified(["de"] * 10)
    subjects = world.subject(), world.subject("cld2", built_in=True)
    alone = run(subjects[0], stream, against=subjects[1])["comparison"]
    assert run(subjects[0], stream, triggers, against=subjects[1])["comparison"] == alone
