"""Sets in which every class has as many documents, in every language: nested, equal and disjoint, or refused."""

from collections import Counter
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.draws.balanced_sets import (
    BalanceError,
    Document,
    Fault,
    Sizes,
    balanced,
    check_sizes,
    distinct_documents,
    faults,
    part_of,
)
from annotate.core.draws.splits import DEV, TEST, TRAIN

CLASSES = ("CCAT", "ECAT", "GCAT", "MCAT")


def documents(number, languages=("de", "en"), classes=CLASSES, apart=lambda language, label, n: ()):
    """So many of each class in each language."""
    return [
        Document(f"{language}-{label}-{n}", language, label, f"{label} {n}", apart(language, label, n))
        for language, label, n in product(languages, classes, range(number))
    ]


def parts(found, language):
    """test, dev and the largest train set."""
    sets = found.sets[language]
    trains = sorted((name for name in sets if name.startswith("train")), key=lambda name: int(name.split(".")[1]))
    return {name: set(sets[name]) for name in ("test", "dev", *trains[-1:]) if name in sets}


GROUPED = st.lists(
    st.builds(
        Document,
        st.uuids().map(str),
        st.sampled_from(("de", "en")),
        st.sampled_from(("a", "b", "c")),
        st.just(""),
        st.one_of(st.just(()), st.integers(0, 30).map(lambda n: (str(n),))),
    ),
    max_size=120,
)
SIZES = st.builds(
    lambda test, dev, steps: Sizes(3 * test, 3 * dev, tuple(3 * sum(steps[: n + 1]) for n in range(len(steps)))),
    st.integers(0, 4),
    st.integers(0, 3),
    st.lists(st.integers(1, 4), max_size=3),
)


@pytest.mark.slow
@given(GROUPED, SIZES, st.text(max_size=3), st.sampled_from(((), (TRAIN,), (TEST, DEV, TRAIN))))
def test_sets_are_nested_equal_and_disjoint_or_refused(given_documents, sizes, seed, fill):
    by_id = {document.id: document for document in given_documents}
    try:
        found = balanced(given_documents, ("a", "b", "c"), sizes, seed=seed, fill=fill)
    except BalanceError:
        return
    short = {(each.language, each.set, each.label): each.available for each in found.short}
    assert fill or not short
    held = {}
    for language, sets in found.sets.items():
        for name, ids in sets.items():
            assert len(set(ids)) == len(ids)
            counts = Counter(by_id[key].label for key in ids)
            for label in ("a", "b", "c"):
                assert counts[label] == short.get((language, name, label), sizes.all()[name] // 3)
            assert part_of(name) in fill or not any((language, name, label) in short for label in "abc")
            assert all(by_id[key].language == language for key in ids)
        trains = [set(sets[f"train.{size}"]) for size in sizes.train]
        assert all(smaller <= larger for smaller, larger in pairwise(trains))
        assert not list(faults(sets))
        for name, ids in parts(found, language).items():
            for key in ids:
                for value in by_id[key].apart:
                    assert held.setdefault(value, name.split(".")[0]) == name.split(".")[0]


@given(GROUPED, SIZES, st.randoms())
def test_the_order_in_which_documents_come_does_not_matter(given_documents, sizes, random):
    def tried(some):
        try:
            return balanced(some, ("a", "b", "c"), sizes, seed="7")
        except BalanceError as error:
            return str(error)

    shuffled = list(given_documents)
    random.shuffle(shuffled)
    assert tried(given_documents) == tried(shuffled)


def test_what_suffices_is_shared_out_to_the_last_document_whatever_the_seed():
    sizes = {"test": 8, "dev": 4, "train.4": 4, "train.16": 16}
    for seed in "abc":
        result = balanced(documents(7), CLASSES, Sizes(8, 4, (4, 16)), seed=seed)
        assert result.short == []
        assert {name: len(ids) for name, ids in result.sets["de"].items()} == sizes
    one, other = (balanced(documents(20), CLASSES, Sizes(8, 4, (8,)), seed=seed).sets["en"] for seed in "ab")
    assert set(one["test"]) != set(other["test"])
    # A larger train set does not change the smaller ones, nor dev and test.
    more = balanced(documents(20), CLASSES, Sizes(8, 4, (8, 40)), seed="a").sets["en"]
    assert {name: set(ids) for name, ids in one.items()} == {name: set(more[name]) for name in one}


def test_translations_of_one_sentence_are_in_one_split_in_all_languages():
    sentences = documents(10, ("de", "en", "fr"), apart=lambda language, label, n: (f"{label} {n}",))
    found = balanced(sentences, CLASSES, Sizes(16, 8, (8, 16)), seed="7")
    by_id = {document.id: document.apart[0] for document in sentences}
    where = {}
    for language in ("de", "en", "fr"):
        for name, ids in parts(found, language).items():
            for key in ids:
                where.setdefault(by_id[key], set()).add(name.split(".")[0])
    assert all(len(names) == 1 for names in where.values())


def test_a_class_that_is_too_small_or_leaves_too_few_is_refused_with_its_numbers():
    some = [each for each in documents(10) if (each.language, each.label) != ("de", "MCAT") or each.id.endswith("-1")]
    with pytest.raises(BalanceError, match=r"Too few documents of a class: de, MCAT: 1 available, 10 needed\. Specify"):
        balanced(some, CLASSES, Sizes(20, 8, (12,)), seed="7")
    tied = documents(4, ("de",), apart=lambda language, label, n: ("one",))
    with pytest.raises(BalanceError, match=r"de, CCAT: 0 available, 1 needed.*must be in the same part"):
        balanced(tied, CLASSES, Sizes(4, 4, ()), seed="7")


def test_with_fill_the_largest_train_sets_take_what_there_is_and_say_so():
    some = [each for each in documents(10) if (each.language, each.label) != ("de", "MCAT") or each.id[-1] in "12345"]
    found = balanced(some, CLASSES, Sizes(8, 8, (4, 24)), seed="7", fill=(TRAIN,))
    assert [tuple(each) for each in found.short] == [("de", "train.24", "MCAT", 6, 1)]
    assert {name: len(ids) for name, ids in found.sets["de"].items()} == {
        "test": 8,
        "dev": 8,
        "train.4": 4,
        "train.24": 19,
    }
    assert len(found.sets["en"]["train.24"]) == 24


def test_sizes_that_cannot_be_are_refused():
    for sizes, classes, why in (
        (Sizes(1000, 0, ()), "abcdefg", r"1,000 documents in test cannot .* 7 classes\. Use 994 or 1,001\."),
        (Sizes(0, 3, ()), "abcd", r"3 documents in dev cannot .* 4 classes\. Use 4\."),
        (Sizes(0, 0, (8, 8)), "ab", "The sizes of train must increase"),
        (Sizes(0, 0, ()), "ab", "No set was requested"),
        (Sizes(4, 4, (4,)), "a", "at least two classes, but the number of classes is 1"),
    ):
        with pytest.raises(BalanceError, match=why):
            check_sizes(sizes, classes)


def test_equal_texts_are_one_document_and_of_two_classes_none():
    some = [
        Document("1", "de", "CCAT", "Ein Satz."),
        Document("2", "de", "CCAT", "  ein  SATZ. "),
        Document("3", "en", "CCAT", "Ein Satz."),
        Document("4", "de", "GCAT", "Noch einer."),
        Document("5", "de", "MCAT", "noch einer."),
        Document("6", "de", "GCAT", "ＮＯＣＨ einer."),
    ]
    merged = distinct_documents(some, seed="7")
    assert (merged.equal, merged.differing) == ({"de": 1, "en": 0}, {"de": 3})
    assert {(each.language, each.text.casefold().strip()[:3]) for each in merged.documents} == {
        ("de", "ein"),
        ("en", "ein"),
    }
    assert distinct_documents(reversed(some), seed="7").documents[::-1] == merged.documents


def test_what_is_wrong_with_lists_is_found():
    lists = {"train.2": ["a", "b"], "train.4": ["a", "c", "d", "d", "d"], "dev": ["e", "c"], "test": ["e", "f", "f"]}
    assert list(faults(lists)) == [
        Fault("train.4", "dev", ["c"]),
        Fault("dev", "test", ["e"]),
        Fault("train.4", "train.4", ["d", "d"]),
        Fault("test", "test", ["f"]),
        Fault("train.2", "train.4", ["b"]),
    ]
    assert not list(faults({"train.1": ["a"], "train.2": ["b", "a"], "dev": ["c"], "test": ["d"]}))
