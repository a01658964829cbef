"""Suggested replies measured on a set of message-reply pairs, from files to a report."""

import shutil

import pytest

from annotate.core.estimation.differences import holm
from tests.annotate.evaluation.figures import figures, refusal
from tests.annotate.reply_sets import reply_set, responses_file

ENGLISH = [
    ("Are you coming?", "Yes, I am."),
    ("Did it cost much?", "3.5 euros."),
    ("Here is your coat.", "Thank you!"),
    ("Here is your coat.", "Thank you!"),
    ("Hm", "..."),
    ("Tell me all.", " ".join(["word"] * 101)),
]
GERMAN = [("Wie geht es?", "Gut, danke.")]
SUGGESTED = {
    "Are you coming?": ["No.", "Yes, I am.", "Maybe."],
    "Did it cost much?": ["5.3 euros.", "Yes.", "No."],
    "Here is your coat.": ["Thank you!", "Thanks.", "No."],
    "Hm": ["...", "Yes.", "No."],
    "Tell me all.": ["word word", "Yes.", "No."],
    "Wie geht es?": ["Gut, danke.", "Schlecht."],
}


@pytest.fixture
def gold(tmp_path):
    return reply_set(tmp_path / "gold", {"de": GERMAN, "en": ENGLISH}, {"en": ["Thank you!", "Yes, I am."]})


def rows_of(pairs, suggested=SUGGESTED):
    return [(message, reply, *suggested[message]) for message, reply in pairs]


@pytest.fixture
def english(tmp_path):
    return responses_file(tmp_path / "mine", "en", rows_of(ENGLISH))


def values(report, *measures, **of):
    return tuple(figures(report, measure, **of)["value"] for measure in measures)


def test_a_folder_of_predictions_is_measured_by_language_and_in_all(gold, english, tmp_path, run):
    responses_file(tmp_path / "mine", "de", rows_of(GERMAN))
    report = run("--gold", gold, english.parent)
    assert (report["kind"], report["predictor"]["spelled"], report["gold"][0]["rows"]) == ("evaluation", "mine", 7)
    # The references of full stops alone and of 101 words are left out.
    assert "de: 1 example of 1 message; en: 4 examples of 3 messages, and 2 left out." in report["words"]["gold"][0]
    units = {measure: figures(report, measure, language="en")["units"] for measure in ("weighted_rouge", "p1", "mrr")}
    assert units == {"weighted_rouge": 4, "p1": 3, "mrr": 3}
    # "5 3 euros" has all words of "3 5 euros" and none of its pairs.
    expected = pytest.approx((1, 3 / 4, (3 + 1 / 6) / 4), abs=1e-7)
    assert values(report, "rouge1", "rouge2", "weighted_rouge", language="en") == expected
    # "Yes, I am." comes second, "Thank you!" first, both times.
    assert values(report, "p1", "mrr", language="en") == (2 / 3, pytest.approx((1 / 2 + 1 + 1) / 3))
    assert (figures(report, "rouge1")["units"], figures(report, "rouge1", language="de")["units"]) == (5, 1)
    assert values(report, "rouge2") == pytest.approx((4 / 5,), abs=1e-7)
    german = figures(report, "p1", language="de")
    assert (german["value"], german["units"], german["note"]) == (None, 0, "no reference is in the response set")
    # Of three messages no interval is given.
    english = [row for row in report["rows"] if row["of"] == {"language": "en"}]
    assert {(row["low"], row["note"]) for row in english} == {(None, "too few items for an interval")}


def test_several_systems_are_in_one_table_by_language_and_setting(gold, tmp_path, run):
    worse = {message: ["No.", *replies[1:]] for message, replies in SUGGESTED.items()}
    (tmp_path / "systems").mkdir()
    for setting, suggested in (("mt", worse), ("monolingual", SUGGESTED)):
        for language, pairs in (("en", ENGLISH), ("de", GERMAN)):
            responses_file(tmp_path / "systems" / setting, language, rows_of(pairs, suggested))
    report = run("--gold", gold, tmp_path / "systems")
    cells = {tuple(row["of"].values()): row for row in report["rows"] if row["measure"] == "weighted_rouge"}
    alone = run("--gold", gold, tmp_path / "systems" / "mt")
    for language in ("en", "de"):
        assert cells[language, "mt"]["value"] == figures(alone, "weighted_rouge", language=language)["value"]
    assert cells["all", "mt"]["value"] < cells["all", "monolingual"]["value"]
    [section, *_] = report["sections"]
    assert (section["of"], section["across"]) == (["language", "setting"], ["monolingual", "mt"])


def test_ranks_in_a_random_set_are_measured_where_the_set_has_one(gold, english, tmp_path, run):
    ranks = tmp_path / "mine" / "en_random_ranks.txt"
    lines = [f"{message}\t{reply}\t{place}\n" for place, (message, reply) in enumerate(ENGLISH, 1)]
    ranks.write_text("".join(lines), encoding="utf-8")
    sentence = "has ranks, but the set has no random replies in en. Remove the file."
    assert sentence in refusal("--gold", gold, english.parent)
    pairs = {"de": GERMAN, "en": ENGLISH}
    drawn = {"en": [f"Reply {n}." for n in range(9)]}
    wider = reply_set(tmp_path / "wider", pairs, {"en": ["Thank you!", "Yes, I am."]}, drawn)
    report = run("--gold", wider, english.parent)
    assert values(report, "random_p1", "random_mrr") == (1 / 4, pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4))
    # "Thank you!" is first both times, "Yes, I am." second, and each of these replies counts once.
    assert values(report, "macro_mrr") == (3 / 4,)
    ranks.unlink()
    assert not [row for row in run("--gold", wider, english.parent)["rows"] if row["measure"].startswith("random")]
    ranks.write_text("".join(lines).replace("\t4\n", "\t11\n"), encoding="utf-8")
    assert "has the rank '11'" in refusal("--gold", wider, english.parent)


def test_lines_are_joined_by_message_and_reference_and_all_others_are_reported(gold, english, tmp_path, run):
    plain = run("--gold", gold, english)
    no_german = "Test pairs in de are not measured, because there are no predictions for them."
    assert plain["told"] == [f"en_model_responses.txt: {no_german}"]
    # In another order, with blanks, Windows line ends, a line of no pair and one that occurs twice.
    rows = [
        ("Who?", "Me.", "You."),
        *((f" {row[0]} ", *row[1:]) for row in rows_of(ENGLISH)[::-1]),
        rows_of(ENGLISH)[0],
    ]
    file = responses_file(tmp_path / "other", "en", rows)
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    responses_file(file.parent, "fr", [("Qui ?", "Moi.", "Toi.")])
    report = run("--gold", gold, file.parent)
    assert report["rows"] == plain["rows"]
    notes = " ".join(report["told"])
    assert "2 lines were ignored (no test pair, or a repeated pair)" in notes
    assert "fr_model_responses.txt was ignored, because the set has no test pairs in fr." in notes


def test_fewer_than_three_suggestions_are_reported_and_the_best_of_them_counts(gold, tmp_path, run):
    fewer = {**SUGGESTED, "Are you coming?": ["Yes, I am.", ""], "Did it cost much?": []}
    report = run("--gold", gold, responses_file(tmp_path / "few", "en", rows_of(ENGLISH, fewer)))
    assert (
        "en_model_responses.txt: en: 2 examples have fewer than 3 suggested replies. The best suggestion "
        "counts; an example without suggestions counts as wrong." in report["told"]
    )
    assert values(report, "rouge1", "p1") == (pytest.approx(3 / 4, abs=1e-7), 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[1:], "has no line for 1 of the 6 test pairs in en. The first is 'Are you"),
        (
            lambda rows: [(row[0],) for row in rows],
            "line 1: The line must contain a message, the reference",
        ),
        (
            lambda rows: [("x", *row[1:]) for row in rows],
            "contains none of the 6 test pairs in en. The first two cells",
        ),
        (lambda rows: [], "has no line for 6 of the 6 test pairs in en"),
    ],
)
def test_predictions_that_do_not_fit_are_refused_in_a_sentence(gold, tmp_path, change, message):
    file = responses_file(tmp_path / "bad", "en", change(rows_of(ENGLISH)))
    sentence = refusal("--gold", gold, file, "--out", tmp_path / "out")
    assert str(file) in sentence
    assert message in sentence
    assert not (tmp_path / "out").exists()


def test_files_of_another_name_or_language_and_sets_without_pairs_or_with_changes_are_refused(gold, english, tmp_path):
    odd = english.with_name("replies.tsv")
    shutil.copy(english, odd)
    assert refusal("--gold", gold, odd).startswith(f"The name of {odd} does not contain a language")
    french = responses_file(tmp_path / "french", "fr", [])
    assert refusal("--gold", gold, french).startswith(f"{french} contains predictions for fr")
    (tmp_path / "empty").mkdir()
    assert "contains no prediction files" in refusal("--gold", gold, tmp_path / "empty")
    assert f"{tmp_path}/none does not exist" in refusal("--gold", gold, tmp_path / "none")
    bare = reply_set(tmp_path / "bare", {}, {"en": ["Yes."]})
    assert "The set bare in" in refusal("--gold", bare, english)
    (gold / "test/en/pairs.tsv").write_text("a\tb\tc\td\n")
    assert "pairs.tsv has changed since it was written" in refusal("--gold", gold, english)


@pytest.fixture
def many(tmp_path):
    """A set of forty messages, and a system that is right in this many of them."""
    pairs = [(f"Is it {number}?", "Yes, it is.") for number in range(40)]
    gold = reply_set(tmp_path / "many", {"en": pairs}, {"en": ["Yes, it is."]})

    def right_in(number, name):
        rows = [
            (*pair, "Yes, it is." if place < number else "Nothing like that", "Who knows")
            for place, pair in enumerate(pairs)
        ]
        return responses_file(tmp_path / name, "en", rows)

    return gold, right_in


def test_two_systems_are_compared_by_example_and_the_better_one_is_named(many, run):
    gold, right_in = many
    good, poor = right_in(36, "good"), right_in(12, "poor")
    report = run("--gold", gold, good.parent, "--against", poor.parent)
    for name in ("weighted_rouge", "rouge1", "p1", "mrr", "dist1"):
        whole = figures(report, name)
        assert whole["low"] < whole["value"] < whole["high"]
    comparison = report["comparison"]
    assert values(comparison, "weighted_rouge", "p1") == pytest.approx((24 / 40, 24 / 40), abs=1e-7)
    tested = [row for row in comparison["rows"] if row["p"] is not None]
    assert [(row["measure"], row["better"]) for row in tested] == [
        ("weighted_rouge", "first"),
        ("p1", "first"),
        ("mrr", "first"),
    ]
    assert [row["p_holm"] for row in tested] == holm([row["p"] for row in tested])
    back = figures(run("--gold", gold, poor.parent, "--against", good.parent)["comparison"], "weighted_rouge")
    assert (back["better"], back["p"]) == ("second", figures(comparison, "weighted_rouge")["p"])


def test_two_systems_are_compared_in_the_languages_that_both_have(gold, english, tmp_path, run):
    responses_file(tmp_path / "mine", "de", rows_of(GERMAN))
    other = responses_file(tmp_path / "other", "en", rows_of(ENGLISH, {key: ["No."] for key in SUGGESTED}))
    report = run("--gold", gold, english.parent, "--against", other)
    assert {tuple(row["of"]) for row in report["rows"]} == {(), ("language",)}
    assert {tuple(row["of"]) for row in report["comparison"]["rows"]} == {()}
    assert report["words"]["comparison"] == [
        "Only one system has predictions for de, so these languages are not compared."
    ]
    assert figures(report["comparison"], "rouge1")["note"] == "fewer than 20 messages"
    german = responses_file(tmp_path / "german", "de", rows_of(GERMAN))
    assert "no language in common: one has predictions for en, the other for de" in refusal(
        "--gold", gold, other, "--against", german
    )
