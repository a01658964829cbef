"""Labels that came with records: kept one or several, counted, and rejected where they are none."""

import pytest
from django.core.management import CommandError

from corpora.storage.layout import manifest_of
from tests.corpora.on_disk import posts, rejects

pytestmark = pytest.mark.django_db


def story(key, topic, text="Shares rose."):
    return {"id": key, "language": "en", "body": text, "topic": topic}


def stories(import_corpus, *files, **options):
    return import_corpus("c", *files, fields="body", labels="topic", **options)


def test_labels_that_come_with_records_are_kept_one_or_several(write, import_corpus):
    topics = ["CCAT", ["CCAT", "MCAT", "CCAT"], [], " ECAT; GCAT ;", ""]
    output = stories(import_corpus, write("a.jsonl", [story(str(n), topic) for n, topic in enumerate(topics)]))
    assert [row["declared"] for row in posts("c")] == [["CCAT"], ["CCAT", "MCAT"], [], ["ECAT", "GCAT"], []]
    assert "Records of the corpus with one label: 1 (CCAT 1); with several labels: 2; without labels: 2." in output
    assert "by language" not in output


def test_shares_of_labels_are_shown_by_language_and_rare_labels_share_a_column(write, import_corpus):
    rows = [story(f"en{number}", topic) for number, topic in enumerate(["CCAT", "CCAT", "CCAT", "MCAT"])]
    rows += [story(f"de{number}", topic) | {"language": "de"} for number, topic in enumerate(["CCAT", "GCAT"])]
    rows.append(story("several", "CCAT; MCAT") | {"language": "de"})
    lines = stories(import_corpus, write("a.jsonl", rows)).splitlines()
    start = lines.index("Records with one label, by language:")
    assert [line.split() for line in lines[start + 1 :]] == [
        ["language", "records", "CCAT", "GCAT", "MCAT"],
        ["de", "2", "50.0%", "50.0%", "0.0%"],
        ["en", "4", "75.0%", "0.0%", "25.0%"],
    ]
    rows = [story(f"{code}{number}", f"T{number}") | {"language": code} for code in ("de", "en") for number in range(8)]
    rows.append(story("more", "T0"))
    lines = import_corpus("rare", write("b.jsonl", rows), fields="body", labels="topic").splitlines()
    assert lines[-2].split() == ["de", "8", *["12.5%"] * 6, "25.0%"]
    assert lines[-3].split() == ["language", "records", "T0", "T1", "T2", "T3", "T4", "T5", "others"]


NO_LABELS = [
    (None, "The label is missing. Write an empty string or list if a record has no label."),
    (4, "The label is a number. It must be a string or a list of strings."),
    ([4], "The labels contain a number. Each label must be a string."),
    (["CCAT", None], "The labels contain null. Each label must be a string."),
    ("a\tb", "A label contains a tab, a newline or another invisible character."),
    ("x" * 101, "A label has 101 characters. The limit is 100."),
]


def test_what_is_no_label_is_a_reject_and_so_is_a_record_that_comes_again_with_another(write, import_corpus):
    anything_else = {"id": "x", "language": "en", "body": "Prices fell.", "more": "ECAT"}
    rows = [story("1", "CCAT"), story("1", "CCAT"), story("1", "MCAT"), anything_else]
    rows += [story(str(n), topic) for n, (topic, _) in enumerate(NO_LABELS, 2)]
    stories(import_corpus, write("a.jsonl", rows))
    assert manifest_of("c").sources[0].duplicates == 1
    assert sorted((reject["line"], reject["reason"]) for reject in rejects()) == [
        (3, "The id 1 already occurred with other fields, another language or other labels. The first row is kept."),
        (4, "The label is missing. Write an empty string or list if a record has no label."),
        *((line, reason) for line, (_, reason) in enumerate(NO_LABELS, 5)),
    ]


def test_a_corpus_has_labels_in_all_its_files_or_in_none(write, import_corpus):
    stories(import_corpus, write("a.jsonl", [story("1", "CCAT")]))
    with pytest.raises(CommandError, match=r"have declared labels. Name the column of labels with --labels"):
        import_corpus("c", write("b.jsonl", [story("2", "CCAT")]))
    stories(import_corpus, write("b.jsonl", [story("2", "CCAT")]))
    import_corpus("plain", write("c.jsonl", [story("1", "CCAT")]), fields="body")
    with pytest.raises(CommandError, match=r"have no declared labels. Remove --labels"):
        import_corpus("plain", write("d.jsonl", [story("2", "CCAT")]), labels="topic")
