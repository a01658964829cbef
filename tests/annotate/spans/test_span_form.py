"""Answers that are spans: how they are read, checked, aggregated and compared."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.aggregation.answer_table import tabulate
from annotate.core.agreement import coefficients
from annotate.kinds import KINDS
from annotate.kinds.files import KindError, kind_of
from annotate.kinds.forms import FORMS
from annotate.kinds.forms.spans import NOTHING, Span, by_character, check_marks, majority, text_of

SPANS = FORMS["spans"]
LABELS = ["PER", "ORG", "LOC", "MISC"]


def test_spans_are_read_as_text_or_json_and_stored_in_the_order_of_the_text():
    assert SPANS.read(["9:12:LOC", "", "0:5:PER 2:3:ORG"]) == "0:5:PER 2:3:ORG 9:12:LOC"
    assert SPANS.read(['[{"start": 9, "end": 12, "label": "LOC"}]']) == "9:12:LOC"
    assert SPANS.read(["", NOTHING]) == NOTHING
    assert SPANS.read(["[]"]) == NOTHING
    assert SPANS.read(["", " "]) == ""


@pytest.mark.parametrize(
    "sent", ["PER", "0-5:PER", "a:5:PER", "0:5:", "-1:5:PER", "٠:٥:PER", f"{NOTHING} 0:5:PER", "[1]"]
)
def test_what_is_not_a_span_is_refused(sent):
    with pytest.raises(ValueError, match=r"[.]$"):
        SPANS.read([sent])


@pytest.mark.parametrize(
    ("label", "sentence"),
    [
        ("0:12:PER", "0:12:PER is outside the text, which has 11 characters."),
        ("5:5:PER", "5:5:PER is outside the text"),
        ("0:6:PER", "0:6:PER begins or ends with a space. Leave it out."),
        ("0:2:LOC 0:5:PER", "0:2:LOC and 0:5:PER overlap. Remove one."),
        ("0:4:PER", "0:4:PER cuts a character from its accents or signs."),
    ],
)
def test_bounds_spaces_overlaps_and_cut_characters_are_refused_with_a_sentence(label, sentence):
    with pytest.raises(ValueError, match=r"[.]$") as refused:
        check_marks(label, "Noe\u0301\u0308 walks", overlap=False, one=False)
    assert sentence in str(refused.value)


def test_overlaps_can_be_allowed_and_an_answer_can_be_of_one_span():
    check_marks("0:5:PER 0:9:ORG 2:3:LOC", "abcdefghij", overlap=True, one=False)
    with pytest.raises(ValueError, match="2 spans are marked, but only one is allowed"):
        check_marks("0:1:PER 2:3:PER", "abcdefghij", overlap=False, one=True)


@pytest.mark.parametrize("text", ["\u200fشرکت\u200c", "\u202bAda\u202c", "\ufeffAda", "Ada\u200e"])
def test_invisible_characters_at_the_ends_of_a_span_are_refused_but_not_within_it(text):
    with pytest.raises(ValueError, match="begins or ends with an invisible character"):
        check_marks(f"0:{len(text)}:PER", text, overlap=False, one=False)
    check_marks(f"0:{len(text) + 2}:PER", f"a{text}b", overlap=False, one=False)


def test_majority_keeps_the_spans_that_most_people_marked_alike():
    answers = ["0:5:PER 9:12:LOC", "0:5:PER", "0:4:PER 20:25:LOC"]
    assert {majority(order, (), 3) for order in permutations(answers)} == {"0:5:PER"}
    assert majority([NOTHING, NOTHING, "0:5:PER"], (), 3) == NOTHING
    assert majority(["0:5:PER", "0:4:PER", NOTHING], (), 3) is None
    assert majority(["10:11:PER 9:10:LOC"] * 2, (), 2) == "9:10:LOC 10:11:PER"


def test_majority_by_character_keeps_what_most_people_cover():
    answers = ["0:11:PER", "0:5:PER", "6:11:PER 12:13:LOC"]
    assert by_character(answers, (), 3) == "0:5:PER 6:11:PER"
    assert by_character(["0:5:PER 5:9:PER"] * 2, (), 2) == "0:5:PER 5:9:PER"
    assert by_character(["0:4:PER", "2:6:PER", "0:1:LOC"], (), 3) is None
    assert by_character(["0:4:PER", "2:6:PER", "7:9:LOC"], (), 3) == "2:4:PER"
    assert by_character(["0:1:PER", "2:3:PER", NOTHING], (), 3) is None


def test_characters_that_most_people_marked_in_different_ways_are_in_conflict():
    answers = ["0:4:PER 9:12:LOC", "0:2:PER 9:12:LOC", "0:4:LOC"]
    assert majority(answers, (), 3) is None
    assert by_character(answers, (), 3) is None  # nobody agrees with another about characters 2 and 3
    assert majority(["0:4:PER 9:12:LOC", "9:12:LOC", "0:4:LOC"], (), 3) is None
    assert majority(["0:4:PER 9:12:LOC", "9:12:LOC", "20:24:LOC"], (), 3) == "9:12:LOC"
    assert majority(["0:9:ORG 0:4:LOC", "0:9:ORG 5:9:LOC", NOTHING], (), 3) == "0:9:ORG"  # an accepted span covers them


_ANSWER = st.sets(st.integers(0, 4), max_size=5).map(
    lambda starts: text_of(Span(3 * n, 3 * n + 2, "PER") for n in starts)
)


@given(st.lists(_ANSWER, min_size=1, max_size=5))
def test_what_either_majority_returns_can_be_an_answer(answers):
    for rule in (majority, by_character):
        result = rule(answers, (), len(answers))
        if result is not None:
            SPANS.check(result, LABELS)
            check_marks(result, "ab " * 5, overlap=False, one=False)
    assert majority(answers, (), 0) == by_character(answers, (), 0)  # the bounds are the same in all answers


def test_alpha_counts_characters_and_f1_counts_spans():
    values = ["0:5:PER", "0:4:PER", "0:5:LOC", NOTHING]
    assert SPANS.unlike(values)[0].tolist() == [0, 1, 1, 1]
    assert SPANS.distances(values)["unitizing"][0].tolist() == [0, 1, 10, 6]
    assert [*SPANS.distances(values)] == ["nominal", "jaccard", "masi", "unitizing"]
    counts = tabulate([(n, who, value) for n, value in enumerate(values[:3]) for who in "ab"], values).counts()
    assert coefficients.alpha(counts, SPANS.distances(values)["unitizing"], seed=1).value == 1


def test_a_known_answer_is_met_by_most_of_its_characters():
    agrees = KINDS["ner"].rules.agrees
    assert agrees("0:5:PER", "0:5:PER 9:12:LOC")
    assert not agrees("0:5:LOC", "0:5:PER")
    assert agrees(NOTHING, NOTHING)
    assert not agrees(NOTHING, "0:5:PER")


KIND = """\
title = "Which words are rude?"
form = "spans"

[[layout]]
style = "passage"
fields = ["comment"]

[[answers]]
code = "insult"
name = "Insult"

[[answers]]
code = "threat"
name = "Threat"

[spans]
"""


def test_a_kind_of_spans_is_one_file():
    kind = kind_of("rude", KIND + 'overlap = true\ncolours = { threat = "red" }\n')
    marking = kind.publication.constants["marking"]
    assert (marking["field"], marking["overlap"], marking["one"], marking["nothing"]) == ("comment", True, False, True)
    assert marking["colours"] == {"insult": "blue", "threat": "red"}
    assert kind.name("3:9:threat 12:15:insult") == "Threat 3–9; Insult 12–15"
    assert kind.name(NOTHING) == "Nothing to mark"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('field = "text"', "'text' is not a field of the layout. Possible values: comment."),
        ('overlap = "no"', "overlap is 'no'; it must be true or false."),
        ('colours = { threat = "pink" }', "'pink' is not a colour."),
        ('tokens = "tokens"', "'tokens' is not a field of the kind. Add kept"),
        ("right_from = 2", "right_from is 2, but must be greater than 0"),
        ("least = 1", "'least' is not a key of [spans]."),
        ('one = true\n[options]\naggregation = "characters"', "aggregation characters requires several spans"),
    ],
)
def test_each_mistake_in_the_file_is_told_with_its_line(line, sentence):
    with pytest.raises(KindError, match=r"rude\.toml, line \d+") as refused:
        kind_of("rude", KIND + line)
    assert sentence in str(refused.value)
