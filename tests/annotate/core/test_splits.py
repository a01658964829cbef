"""Splits of a set by what belongs together, and sets with as many documents of each class, nested or refused."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise, product
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.core.draws.balanced_sets import (
    BalanceError,
    Document,
    Fault,
    Sizes,
    check_sizes,
    distinct_documents,
    draw_balanced_sets,
    find_faults,
    part_of,
)
from annotate.core.draws.splits import (
    DEV,
    SPLITS,
    TEST,
    TRAIN,
    Row,
    SplitError,
    buckets,
    compare_splits,
    components,
    counts,
    misses,
    ratios,
    shares,
    split,
    total_variation,
)

THREE = ratios("train=0.8,dev=0.1,test=0.1")
VALUES = st.integers(0, 12).map(str)
LANGUAGES = st.sampled_from(["en", "de", "fr"])


@st.composite
def tables(draw, languages=LANGUAGES):
    """Rows with two fields whose values come again."""
    drawn = draw(st.lists(st.tuples(languages, VALUES, VALUES), max_size=40))
    return [Row(f"r{number}", language, values) for number, (language, *values) in enumerate(drawn)]


@st.composite
def options(draw):
    train, dev, test = draw(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20)).filter(sum))
    if not dev + test:
        dev = 1
    whole = train + dev + test
    return {name: Fraction(part, whole) for name, part in zip(SPLITS, (train, dev, test), strict=True)}


@given(tables(), options(), st.text(max_size=5))
def test_no_value_is_in_two_splits_train_is_in_english_only_and_no_split_without_a_share_has_rows(
    rows, given_ratios, seed
):
    chosen = split(rows, given_ratios, seed=seed)
    seen = {}
    assert chosen.keys() == {row.id for row in rows}
    for row in rows:
        for field, value in enumerate(row.apart):
            assert seen.setdefault((field, value), chosen[row.id]) == chosen[row.id]
        assert given_ratios[chosen[row.id]]
        assert row.language == "en" or chosen[row.id] != "train"


@given(tables(), options(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing_and_a_seed_does(rows, given_ratios, shuffler):
    shuffled = rows[:]
    shuffler.shuffle(shuffled)
    assert split(rows, given_ratios, seed="1") == split(shuffled, given_ratios, seed="1")
    rows = [Row(f"r{number}", "en", [f"q{number}"]) for number in range(50)]
    assert split(rows, THREE, seed="1") != split(rows, THREE, seed="2")


@given(st.integers(0, 200), options(), st.text(max_size=5))
def test_of_rows_of_which_no_two_belong_together_test_and_dev_have_their_share_rounded_up(size, given_ratios, seed):
    rows = [Row(f"r{number}", "en", [f"q{number}"]) for number in range(size)]
    counts = Counter(split(rows, given_ratios, seed=seed).values())
    wanted = {name: share * size for name, share in given_ratios.items()}
    assert counts["test"] == ceil(wanted["test"])
    assert counts["dev"] == min(ceil(wanted["dev"]), size - counts["test"])
    assert 0 <= wanted["train"] - counts["train"] < 2


@given(
    st.lists(st.integers(1, 4), min_size=60, max_size=120),
    st.integers(1, 4),
    st.sampled_from(["en", "de"]),
    st.text(max_size=5),
)
def test_a_query_more_or_less_moves_hardly_more_rows_than_it_has(sizes, added, language, seed):
    rows = [
        Row(f"{query}-{page}", language, [f"q{query}"]) for query, pages in enumerate(sizes) for page in range(pages)
    ]
    more = [Row(f"new-{page}", language, ["another"]) for page in range(added)]
    before, after = (split(table, THREE, seed=seed) for table in (rows, rows + more))
    moved = Counter((before[row.id], after[row.id]) for row in rows if before[row.id] != after[row.id])
    # Besides the rows that make room, a query of four that stands across the end of a split moves that end by three,
    # and dev begins where test ends. Both may have grown by a row.
    across = {frozenset(("test", "dev")): added + 3, frozenset(("dev", "train")): max(added, 2) + 3 + 3}
    for pair, number in moved.items():
        assert number <= across[frozenset(pair)], pair


def test_a_chain_of_equal_questions_and_passages_is_one_component():
    rows = [
        Row("a", "en", ["who", "P1"]),
        Row("b", "en", ["when", "P1"]),
        Row("c", "en", ["when", "P2"]),
        Row("d", "en", ["P1", "who"]),  # a question that reads like a passage is none
    ]
    assert sorted(sorted(row.id for row in part) for part in components(rows)) == [["a", "b", "c"], ["d"]]


@pytest.mark.parametrize("other", ["cheap\tflights ", "Cheap  FLIGHTS", "ｃｈｅａｐ flights", "cheap \ufb02ights"])
def test_values_that_differ_by_white_space_case_or_width_alone_are_equal(other):
    assert len(components([Row("a", "en", [other]), Row("b", "en", ["cheap flights"])])) == 1
    assert len(components([Row("a", "fr", ["ou"]), Row("b", "fr", ["o\u00f9"])])) == 2


def test_a_component_larger_than_dev_or_test_goes_to_train_with_any_seed():
    rows = [Row(f"r{number}", "en", ["one"]) for number in range(60)]
    rows += [Row(f"s{number}", "en", [f"q{number}"]) for number in range(40)]
    for seed in range(20):
        chosen = split(rows, THREE, seed=str(seed))
        assert Counter(chosen.values()) == {"train": 80, "dev": 10, "test": 10}
        assert chosen["r0"] == "train"


def test_queries_of_many_pages_are_in_test_as_often_as_those_of_few():
    rows = [Row(f"{query}-{page}", "en", [f"q{query}"]) for query in range(200) for page in range(1 + query % 8)]
    pages = [0, 0]
    for seed in range(20):
        chosen = split(rows, THREE, seed=str(seed))
        queries = {row.apart[0]: row.id.split("-")[0] for row in rows if chosen[row.id] == "test"}
        pages[0] += sum(1 + int(query) % 8 for query in queries.values())
        pages[1] += len(queries)
    assert pages[0] / pages[1] == pytest.approx(4.5, abs=0.4)


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("train=0.8,dev=0.1", "The shares in 'train=0.8,dev=0.1' add up to 0.9. They must add up to 1."),
        ("train=0.8,valid=0.2", "'valid=0.2' is not a share of a split. Write shares as train=0.8,dev=0.1,test=0.1."),
        ("train=0.8,train=0.2", "The split train occurs twice. Specify one share for each split."),
        ("train=most,test=0.2", "'most' is not a share for the split train. Write a number such as 0.8."),
        ("train=1.5,test=-0.5", "The share of the split train must be between 0 and 1, not 1.5."),
        ("train=1/0,test=0.5", "'1/0' is not a share for the split train. Write a number such as 0.8."),
        ("", "'' is not a share of a split. Write shares as train=0.8,dev=0.1,test=0.1."),
    ],
)
def test_ratios_that_cannot_be_are_refused_with_a_sentence(option, sentence):
    with pytest.raises(SplitError) as refused:
        ratios(option)
    assert str(refused.value) == sentence


def test_languages_without_train_share_dev_and_test_in_their_ratio():
    assert shares("de", ratios("train=0.7,dev=0.1,test=0.2")) == {"dev": Fraction(1, 3), "test": Fraction(2, 3)}
    assert shares("en", THREE) == {"train": Fraction(4, 5), "dev": Fraction(1, 10), "test": Fraction(1, 10)}
    assert ratios("dev=1/3, test=2/3") == {"train": 0, "dev": Fraction(1, 3), "test": Fraction(2, 3)}
    only_train = "Only en has a train split, so there is no split for the rows in de. Specify a share for dev or test."
    with pytest.raises(SplitError, match=f"^{only_train}$"):
        split([Row("a", "de", ["q"])], ratios("train=1"), seed="1")


def test_a_split_far_from_its_share_is_reported_with_what_keeps_it_there():
    rows = [Row(f"{language}{n}", language, [f"q{n}"]) for n in range(60) for language in ("en", "de")]
    rows += [Row(f"more{n}", "en", [f"more{n}"]) for n in range(40)]
    chosen = split(rows, THREE, seed="1")
    train, dev, test = misses(rows, THREE, chosen)
    assert train[:3] == ("en", "train", 0.8)
    assert train[4:] == (100, 60, 1)
    assert (dev.split, test.split) == ("dev", "test")
    assert train.actual == pytest.approx(1 - dev.actual - test.actual)
    assert train.actual <= 0.4
    rows = [Row(f"{n}", "de", ["one" if n < 80 else f"q{n}"]) for n in range(100)]
    assert [(miss.actual, miss.largest) for miss in misses(rows, THREE, split(rows, THREE, seed="1"))] in (
        [(0.8, 80), (0.2, 80)],
        [(0.2, 80), (0.8, 80)],
    )
    assert [miss.rows for miss in misses(rows[79:82], THREE, split(rows[79:82], THREE, seed="1"))] == [3, 3]


@given(st.integers(20, 200), st.text(max_size=5))
def test_of_rows_that_nothing_holds_together_no_split_is_far_from_its_share(size, seed):
    rows = [Row(f"r{number}", "de", [f"q{number}"]) for number in range(size)]
    assert not misses(rows, THREE, split(rows, THREE, seed=seed))


COUNTS = st.lists(st.integers(0, 20), min_size=5, max_size=5).filter(any).map(np.array)
DOCUMENTS = {
    "train": [{"a", "b"}, {"a", "c"}, {"a"}, {"b"}],
    "dev": [{"b", "d"}, set()],
    "test": [{"e", "a"}],
}


def test_a_label_is_frequent_few_or_zero_by_the_documents_of_train_that_have_it():
    assert counts(DOCUMENTS["train"]) == {"a": 3, "b": 2, "c": 1}
    assert buckets(DOCUMENTS, "train", frequent_over=2) == {"frequent": {"a"}, "few": {"b", "c"}, "zero": {"d", "e"}}
    # As published, over 50.
    assert buckets(DOCUMENTS, "train") == {"frequent": set(), "few": {"a", "b", "c"}, "zero": {"d", "e"}}
    with pytest.raises(ValueError, match="not 0"):
        buckets(DOCUMENTS, "train", frequent_over=0)
    with pytest.raises(
        ValueError, match="The split 'training' is needed to count labels, but the splits are train, dev, test"
    ):
        buckets(DOCUMENTS, "training")


def test_splits_differ_by_half_the_sum_of_what_their_labels_shares_differ_by():
    # Shares of a, b, c: 1/2, 1/2, 0 and 1/4, 1/4, 1/2.
    for first, second, distance in (([3, 3, 0], [1, 1, 2], 0.5), ([1, 0], [0, 7], 1), ([1], [0], None)):
        assert total_variation(np.array(first), np.array(second)) == distance


@given(COUNTS, COUNTS, st.integers(1, 9))
def test_how_far_splits_differ_is_0_for_the_same_shares_and_the_same_either_way(first, second, times):
    assert total_variation(first, times * first) == 0
    assert total_variation(first, second) == total_variation(second, times * first)
    assert 0 <= total_variation(first, second) <= 1


def drawn_labels(chance, number, shares):
    return [{str(label) for label in chance.choice(len(shares), 3, replace=False, p=shares)} for _ in range(number)]


def test_random_splits_differ_as_chance_would_have_it_and_others_by_more():
    chance = np.random.default_rng(1)
    shares = np.arange(1, 31) / np.arange(1, 31).sum()
    first, second, other = (drawn_labels(chance, 200, weights) for weights in (shares, shares, shares[::-1]))
    alike, unlike = compare_splits(first, second, seed="1"), compare_splits(first, other, seed="1")
    assert 0 < alike.low <= alike.value <= alike.high < 0.2
    assert unlike.value > 0.3 > 0.2 > unlike.high
    assert compare_splits(first, second, seed="1") == alike != compare_splits(first, second, seed="2")
    assert compare_splits([{"a"}], [set()], seed="1") == compare_splits([], [], seed="1") == (None, None, None)


CLASSES = ("CCAT", "ECAT", "GCAT", "MCAT")


def documents(number, languages=("de", "en"), classes=CLASSES, apart=lambda language, label, n: ()):
    """This many documents of each class in each language."""
    return [
        Document(f"{language}-{label}-{n}", language, label, f"{label} {n}", apart(language, label, n))
        for language, label, n in product(languages, classes, range(number))
    ]


def largest_parts(result, language):
    """test, dev and the largest train set."""
    sets = result.sets[language]
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
        result = draw_balanced_sets(given_documents, ("a", "b", "c"), sizes, seed=seed, fill=fill)
    except BalanceError:
        return
    short = {(shortage.language, shortage.set, shortage.label): shortage.available for shortage in result.short}
    assert fill or not short
    held = {}
    for language, sets in result.sets.items():
        for name, ids in sets.items():
            assert len(set(ids)) == len(ids)
            counts = Counter(by_id[key].label for key in ids)
            for label in ("a", "b", "c"):
                assert counts[label] == short.get((language, name, label), sizes.all()[name] // 3)
            assert part_of(name) in fill or not any((language, name, label) in short for label in "abc")
            assert all(by_id[key].language == language for key in ids)
        trains = [set(sets[f"train.{size}"]) for size in sizes.train]
        assert all(smaller <= larger for smaller, larger in pairwise(trains))
        assert not list(find_faults(sets))
        for name, ids in largest_parts(result, language).items():
            for key in ids:
                for value in by_id[key].apart:
                    assert held.setdefault(value, name.split(".")[0]) == name.split(".")[0]


@given(GROUPED, SIZES, st.randoms())
def test_the_order_in_which_documents_come_does_not_matter(given_documents, sizes, random):
    def tried(some):
        try:
            return draw_balanced_sets(some, ("a", "b", "c"), sizes, seed="7")
        except BalanceError as error:
            return str(error)

    shuffled = list(given_documents)
    random.shuffle(shuffled)
    assert tried(given_documents) == tried(shuffled)


def test_what_suffices_is_shared_out_to_the_last_document_whatever_the_seed():
    sizes = {"test": 8, "dev": 4, "train.4": 4, "train.16": 16}
    for seed in "abc":
        result = draw_balanced_sets(documents(7), CLASSES, Sizes(8, 4, (4, 16)), seed=seed)
        assert result.short == []
        assert {name: len(ids) for name, ids in result.sets["de"].items()} == sizes
    one, other = (draw_balanced_sets(documents(20), CLASSES, Sizes(8, 4, (8,)), seed=seed).sets["en"] for seed in "ab")
    assert set(one["test"]) != set(other["test"])
    # A larger train set does not change the smaller ones, nor dev and test.
    more = draw_balanced_sets(documents(20), CLASSES, Sizes(8, 4, (8, 40)), seed="a").sets["en"]
    assert {name: set(ids) for name, ids in one.items()} == {name: set(more[name]) for name in one}


def test_a_class_that_is_too_small_or_leaves_too_few_is_refused_with_its_numbers():
    some = [item for item in documents(10) if (item.language, item.label) != ("de", "MCAT") or item.id.endswith("-1")]
    with pytest.raises(BalanceError, match=r"Too few documents of a class: de, MCAT: 1 available, 10 needed\. Specify"):
        draw_balanced_sets(some, CLASSES, Sizes(20, 8, (12,)), seed="7")
    tied = documents(4, ("de",), apart=lambda language, label, n: ("one",))
    with pytest.raises(BalanceError, match=r"de, CCAT: 0 available, 1 needed.*must be in the same part"):
        draw_balanced_sets(tied, CLASSES, Sizes(4, 4, ()), seed="7")


def test_with_fill_the_largest_train_sets_take_what_there_is_and_say_so():
    some = [item for item in documents(10) if (item.language, item.label) != ("de", "MCAT") or item.id[-1] in "12345"]
    result = draw_balanced_sets(some, CLASSES, Sizes(8, 8, (4, 24)), seed="7", fill=(TRAIN,))
    assert [tuple(shortage) for shortage in result.short] == [("de", "train.24", "MCAT", 6, 1)]
    sizes = {"test": 8, "dev": 8, "train.4": 4, "train.24": 19}
    assert {name: len(ids) for name, ids in result.sets["de"].items()} == sizes
    assert len(result.sets["en"]["train.24"]) == 24


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
    assert {(document.language, document.text.casefold().strip()[:3]) for document in merged.documents} == {
        ("de", "ein"),
        ("en", "ein"),
    }
    assert distinct_documents(reversed(some), seed="7").documents[::-1] == merged.documents


def test_what_is_wrong_with_lists_is_found():
    lists = {"train.2": ["a", "b"], "train.4": ["a", "c", "d", "d", "d"], "dev": ["e", "c"], "test": ["e", "f", "f"]}
    assert list(find_faults(lists)) == [
        Fault("train.4", "dev", ["c"]),
        Fault("dev", "test", ["e"]),
        Fault("train.4", "train.4", ["d", "d"]),
        Fault("test", "test", ["f"]),
        Fault("train.2", "train.4", ["b"]),
    ]
    assert not list(find_faults({"train.1": ["a"], "train.2": ["b", "a"], "dev": ["c"], "test": ["d"]}))
