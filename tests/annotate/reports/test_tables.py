"""Tables whose headings sort them, without a script."""

import pickle

import pytest

from annotate.reports.tables import NUMBER, Cell, Column, table

HEADS = [Column("name", "name"), Column("count", "how many", NUMBER)]
CELLS = [(Cell("b", "b"), Cell("1,000", 1000)), (Cell("a", "a"), Cell("–")), (Cell("c", "c"), Cell("20", 20))]
ROWS = [{"name": name, "count": number} for name, number in CELLS]


@pytest.mark.parametrize(
    ("asked", "order"),
    [
        ("", "bac"),
        ("t.name", "abc"),
        ("t.-name", "cba"),
        ("t.count", "cba"),
        ("t.-count", "bca"),
        ("other.name", "bac"),
        ("t.what", "bac"),
        ("t.-", "bac"),
        ("-", "bac"),
    ],
)
def test_a_table_is_sorted_by_what_stands_in_the_address_and_what_is_not_known_comes_last(asked, order):
    found = table("letters", HEADS, ROWS, slug="t", asked=asked)
    assert "".join(row[0].shown for row in found.rows) == order


def test_what_stands_below_the_rows_stays_there_and_a_table_without_a_name_is_not_sorted():
    below = {"name": Cell("all", "A"), "count": Cell("1,020", 1020)}
    found = table("letters", HEADS, ROWS, total=[below], slug="t", asked="t.-count")
    assert [row[0].shown for row in found.rows] == ["b", "c", "a", "all"]
    plain = table("letters", HEADS, ROWS, asked=".name")
    assert [row[0].shown for row in plain.rows] == ["b", "a", "c"]
    assert {(head.sort, head.aria) for head in plain.headings} == {("", "")}


def test_a_heading_links_to_its_order_and_pressed_again_to_the_other():
    def links(asked):
        found = table("letters", HEADS, ROWS, slug="t", asked=asked)
        return [(head.sort, head.aria) for head in found.headings]

    assert links("") == [("t.name", ""), ("t.-count", "")]
    assert links("t.name") == [("t.-name", "ascending"), ("t.-count", "")]
    assert links("t.-count") == [("t.name", ""), ("t.count", "descending")]


def test_a_table_that_was_kept_in_a_file_has_its_rows_and_is_sorted():
    heads = [HEADS[0], Column("count", "how many", NUMBER, lambda row: row["count"])]
    kept = pickle.loads(pickle.dumps(table("letters", heads, ROWS, slug="t", asked="t.-count")))
    assert [row[0].shown for row in kept.rows] == ["b", "c", "a"]
    assert [head.aria for head in kept.headings] == ["", "descending"]
