"""How a long text is parted into paragraphs for the eye."""

import pytest

from annotate.pages.item_view import LONGEST, paragraphs


def test_short_lines_are_paragraphs_as_they_are():
    assert paragraphs("One. Two.\n\n  Three.") == ["One. Two.", "", "  Three."]


@pytest.mark.parametrize(
    "sentence",
    [
        "The council met again on Monday and put the matter off. ",
        'She said: "Nobody has told us when it will be decided." ',
        "明日の会議では予算について話し合う予定です。",
        "उन्होंने कहा कि बैठक कल होगी और सब लोग आएँगे। ",
        "هل ستبدأ المباراة في موعدها غدا مساء في العاصمة؟ ",
    ],
    ids=["english", "quotes", "japanese", "hindi", "arabic"],
)
def test_a_line_that_is_too_long_is_parted_at_ends_of_sentences(sentence):
    text = sentence * 100
    parts = paragraphs(text)
    assert "".join(parts) == text
    assert len(parts) > 3
    assert max(map(len, parts)) < LONGEST
    assert all(part.endswith(sentence[-6:]) for part in parts)


def test_no_line_is_parted_behind_an_abbreviation_or_before_a_small_letter():
    text = "Dr. Khan of the U.S. office met Mr. Obi at approx. nine " * 60
    assert paragraphs(text) == [text]
