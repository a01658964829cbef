import csv

import pytest

from annotate.goldsets.formats import xglue

BREAKS = "\t\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
HARD = [
    "she said \"yes\", and 'no'",
    '"',
    "a\tb",
    "one\r\ntwo\rthree\nfour",
    *(f"a{separator}b" for separator in BREAKS),
    "שלום עולם \u200fאב",
    "مرحبا بالعالم",
    "👩‍👩‍👧‍👦 🇩🇪 👍🏽",
    "\ufeffbegins with a mark",
    " blanks around ",
    "back\\slash \\n \\t",
    "a,b;c|d",
    "𐍈 beyond the first plane",
    "#not a comment",
    "NA",
]


def rows_of(values, language="en", split="train", label="Good"):
    return [
        {
            "language": language,
            "split": split,
            "label": label,
            "query": value,
            "title": values[-1],
            "description": value,
        }
        for value in values
    ]


def published_reader(path):
    """Read a file as the XGLUE readers do."""
    with path.open(encoding="utf-8-sig") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def as_written(value):
    value = value.replace("\r\n", " ")
    for separator in BREAKS:
        value = value.replace(separator, " ")
    return value


def test_hard_fields_are_read_back_row_for_row(tmp_path):
    xglue.write_files(tmp_path, "qadsm", rows_of(HARD))
    expected = [[as_written(value), "NA", as_written(value), "Good"] for value in HARD]
    assert published_reader(tmp_path / "xglue.qadsm.en.train") == expected
    assert xglue.read_xglue(tmp_path / "xglue.qadsm.en.train", 4) == expected
    # Nor does a reader who splits lines as Python does see more rows than there are.
    assert len((tmp_path / "xglue.qadsm.en.train").read_text(encoding="utf-8-sig").splitlines()) == len(HARD)
    # Any first character survives. A byte order mark is written only before a field that begins with one.
    for number, value in enumerate(HARD):
        (folder := tmp_path / str(number)).mkdir()
        xglue.write_files(folder, "qadsm", rows_of([value]))
        assert published_reader(folder / "xglue.qadsm.en.train")[0][0] == as_written(value)
    xglue.write_files(tmp_path, "qadsm", rows_of(["plain", "\ufeffmarked"]))
    assert (tmp_path / "xglue.qadsm.en.train").read_bytes().startswith(b"plain\t")


def test_files_are_named_as_published_with_the_labels_of_test_beside_it(tmp_path):
    rows = [
        *rows_of(["a", "b"]),
        *rows_of(["c"], split="dev"),
        *rows_of(["d"], split="test", label="Bad"),
        *rows_of(["e"], "de", "dev"),
        *rows_of(["f"], "fr", "test"),
    ]
    assert xglue.write_files(tmp_path, "qadsm", rows) == {
        "xglue.qadsm.en.train": 2,
        "xglue.qadsm.en.dev": 1,
        "xglue.qadsm.en.test": 1,
        "xglue.qadsm.en.test.labels": 1,
        "xglue.qadsm.de.dev": 1,
        "xglue.qadsm.fr.test": 1,
        "xglue.qadsm.fr.test.labels": 1,
    }
    assert sorted(path.name for path in tmp_path.glob("xglue.*")) == sorted(xglue.write_files(tmp_path, "qadsm", rows))
    assert (tmp_path / "xglue.qadsm.en.test").read_text() == "d\td\td\n"
    assert (tmp_path / "xglue.qadsm.en.test.labels").read_text() == "Bad\n"
    assert (tmp_path / "xglue.qadsm.de.dev").read_text() == "e\te\te\tGood\n"


@pytest.mark.parametrize(
    ("languages", "named"),
    [
        (["zh-CN", "de"], {"zh", "de"}),
        (["zh-TW"], {"zh"}),
        (["pt-BR", "no"], {"pt", "no"}),
        (["zh-CN", "zh-TW"], {"zh-CN", "zh-TW"}),
        (["pt", "pt-BR"], {"pt", "pt-BR"}),
        (["hi-Latn"], {"hi-Latn"}),
    ],
)
def test_a_language_is_named_without_its_region_where_the_set_has_no_other_region_of_it(tmp_path, languages, named):
    rows = [row for language in languages for row in rows_of(["f"], language, "test")]
    files = {f"xglue.qadsm.{code}.test{part}" for code in named for part in ("", ".labels")}
    assert set(xglue.write_files(tmp_path, "qadsm", rows)) == files


NEWS = {"language": "ru", "title": "A title", "body": "A body.", "label": "sports"}
PAIR = {"id": "17", "language": "de", "sentence1": "Eins.", "sentence2": "Zwei.", "label": "1"}
NLI = {"language": "en", "premise": "It rains.", "hypothesis": "It is wet.", "label": "entailment"}
WRITTEN = {"language": "fr", "passage": "Il pleut.", "body": "Il pleut.", "label": "Pleut-il ?"}


@pytest.mark.parametrize(
    ("published", "row", "files"),
    [
        ("nc", NEWS | {"split": "dev"}, {"xglue.nc.ru.dev": "A title\tA body.\tsports\n"}),
        (
            "qg",
            WRITTEN | {"split": "test"},
            {"xglue.qg.fr.src.test": "Il pleut.\n", "xglue.qg.fr.tgt.test": "Pleut-il ?\n"},
        ),
        (
            "ntg",
            WRITTEN | {"split": "train"},
            {"xglue.ntg.fr.src.train": "Il pleut.\n", "xglue.ntg.fr.tgt.train": "Pleut-il ?\n"},
        ),
        (
            "xnli",
            NLI | {"split": "train"},
            {
                "XNLI/multinli.train.en.tsv": "premise\thypo\tlabel\nIt rains.\tIt is wet.\tentailment\n",
            },
        ),
        (
            "xnli",
            NLI | {"split": "test"},
            {"XNLI/en.test": "It rains.\tIt is wet.\n", "XNLI/en.test.labels": "entailment\n"},
        ),
        (
            "pawsx",
            PAIR | {"split": "dev"},
            {"PAWSX/de/dev_2k.tsv": "id\tsentence1\tsentence2\tlabel\n17\tEins.\tZwei.\t1\n"},
        ),
        (
            "pawsx",
            PAIR | {"split": "test"},
            {
                "PAWSX/de/test_2k.tsv": "id\tsentence1\tsentence2\n17\tEins.\tZwei.\n",
                "PAWSX/de/test_2k.tsv.labels": "1\n",
            },
        ),
    ],
)
def test_the_files_of_each_task_have_the_published_names_columns_and_heads(tmp_path, published, row, files):
    assert xglue.write_files(tmp_path, published, [row]) == dict.fromkeys(files, 1)
    assert {file: (tmp_path / file).read_text() for file in files} == files


QA = {"language": "en", "split": "train", "label": "1", "question": "who?", "passage": "She did."}


def test_questions_to_be_generated_are_those_that_people_confirmed(tmp_path):
    rows = [
        QA,
        QA | {"question": "when?", "label": "0"},
        QA | {"question": "where\nto?", "passage": "To\tRome."},
        QA | {"split": "dev", "language": "de", "question": "wer?"},
        QA | {"split": "test", "language": "de", "question": "was?"},
    ]
    assert xglue.write_files(tmp_path, "qam", rows) == {
        "xglue.qam.en.train": 3,
        "xglue.qam.de.dev": 1,
        "xglue.qam.de.test": 1,
        "xglue.qam.de.test.labels": 1,
        "xglue.qg.en.src.train": 2,
        "xglue.qg.en.tgt.train": 2,
        "xglue.qg.de.src.dev": 1,
        "xglue.qg.de.tgt.dev": 1,
        "xglue.qg.de.src.test": 1,
        "xglue.qg.de.tgt.test": 1,
    }
    assert xglue.read_xglue(tmp_path / "xglue.qg.en.src.train", 1) == [["She did."], ["To Rome."]]
    assert xglue.read_xglue(tmp_path / "xglue.qg.en.tgt.train", 1) == [["who?"], ["where to?"]]
    # Files of what is not finished are named so.
    assert {*xglue.write_files(tmp_path, "qam", [QA | {"split": "test"}], mark=".unfinished")} == {
        f"xglue.{name}" for name in ("qam.en.unfinished.test", "qam.en.unfinished.test.labels")
    } | {f"xglue.qg.en.unfinished.{side}.test" for side in ("src", "tgt")}


def test_the_pages_of_one_query_stand_together_where_its_first_one_stands(tmp_path):
    def page(query, title, split="train"):
        return {"language": "en", "split": split, "label": "4", "query": query, "title": title, "snippet": "s"}

    rows = [page("b", "1"), page("a", "2"), page("b", "3"), page("c\td", "4"), page("a", "5"), page("c d", "6")]
    xglue.write_files(tmp_path, "wpr", rows)
    assert [cells[:2] for cells in xglue.read_xglue(tmp_path / "xglue.wpr.en.train", 4)] == [
        ["b", "1"], ["b", "3"], ["a", "2"], ["a", "5"], ["c d", "4"], ["c d", "6"],
    ]  # fmt: skip


def test_a_cell_too_long_for_the_published_readers_is_refused_before_anything_is_written(tmp_path):
    xglue.write_files(tmp_path, "qam", [QA | {"passage": "x" * xglue.LONGEST_CELL}])
    assert len(published_reader(tmp_path / "xglue.qam.en.train")) == 1
    with pytest.raises(xglue.XglueError) as refused:
        xglue.write_files(tmp_path / "none", "qam", [QA, QA | {"passage": "x" * (xglue.LONGEST_CELL + 1)}])
    assert str(refused.value) == (
        "xglue.qam.en.train, line 2 would have a cell of 131,073 characters, but readers of these files accept at "
        "most 131,072."
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"a\tb\n", "{path}, line 1 has 2 cells instead of 3."),
        (b"a\tb\tc\n\n", "{path}, line 2 has 1 cells instead of 3."),
        (b"a\tb\t\xff\n", "{path} is not UTF-8. Save it as UTF-8."),
    ],
)
def test_a_file_that_is_not_of_the_format_is_refused_with_its_line(tmp_path, content, sentence):
    path = tmp_path / "xglue.qam.en.train"
    path.write_bytes(content)
    with pytest.raises(xglue.XglueError) as refused:
        xglue.read_xglue(path, 3)
    assert str(refused.value) == sentence.format(path=path)
    with pytest.raises(xglue.XglueError, match="cannot be read: No such file"):
        xglue.read_xglue(tmp_path / "none", 3)
