"""Records of several named fields: imported unchanged, refused with a reason, drawn by language and in groups."""

import hashlib
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError
from hypothesis import given, settings
from hypothesis import strategies as st

from annotate.actions.registry import call_command
from corpora.core import CorpusError
from corpora.draws.part_draws import sample_records
from corpora.draws.samples import frame_of, items_of, record, sample_uniform
from corpora.engines import posts_by_author
from corpora.models import Corpus, Draw, Item
from corpora.storage.layout import corpus_dir, manifest_of, read_manifest, write_manifest
from corpora.storage.schemas import POST_SCHEMA
from tests.corpora.on_disk import bytes_of, posts, rejects

pytestmark = pytest.mark.django_db

FIELDS = "query title description"


def ad(key, language="en", query="red shoes", title="Shoes in red", description="Free delivery."):
    return {"id": key, "language": language, "query": query, "title": title, "description": description}


HARD = [
    ad("tab", "en", "a\tb", 'He said "no"', "line one\nline two\r\nline three"),
    ad("rtl", "he", "נעליים\u200f אדומות", "'quoted", "\u202ebackwards\u202c …"),
    ad("emoji", "de", "👩‍👩‍👧‍👦 schuhe", "\ttitle", "a@b.example, ask @shop, ＠x\u2028end "),
    ad("comma", "fr", 'a,"b";c', "\\N", "=1+1\ufeff"),
]


def imported(import_corpus, *files, name="c", fields=FIELDS, **options):
    return import_corpus(name, *files, fields=fields, **options)


def as_csv(rows):
    quoted = [['"' + value.replace('"', '""') + '"' for value in row.values()] for row in rows]
    return "".join(",".join(cells) + "\n" for cells in [list(rows[0]), *quoted])


def test_every_character_of_a_field_stays_as_it_is_in_the_corpus_and_in_items(write, import_corpus, tmp_path):
    texts = ["\n".join(row[field] for field in FIELDS.split()) for row in HARD]
    pq.write_table(pa.Table.from_pylist(HARD), tmp_path / "a.parquet")
    files = [write("a.jsonl", HARD), write("a.csv", as_csv(HARD)), tmp_path / "a.parquet"]
    for name, file in zip(("c", "csv", "parquet"), files, strict=True):
        output = imported(import_corpus, file, name=name)
        assert f"Corpus {name}: 4 records from 1 new file; 0 duplicates dropped, 0 rows rejected." in output
        rows = posts(name)
        assert [{key: row[key] for key in HARD[0]} for row in rows] == HARD
        assert [row["text"] for row in rows] == texts
        assert {(row["author"], row["posted_at"], row["url"]) for row in rows} == {("", None, "")}
    for sample in sample_records(Corpus.objects.get(name="c"), None, size=None, seed="s"):
        record(sample)
    for row, text in zip(HARD, texts, strict=True):
        item = Item.objects.get(key=row["id"])
        assert (item.language, item.fields) == (row["language"], {field: row[field] for field in FIELDS.split()})
        assert (item.votes, item.letters, item.posted_at, item.text) == ({}, 0, None, text)
    quoted = write("a.tsv", 'id\tlanguage\tquestion\tpassage\n1\ten\t"why\tBecause "so".\n')
    imported(import_corpus, quoted, name="tsv", fields="question passage")
    assert [(row["question"], row["passage"]) for row in posts("tsv")] == [('"why', 'Because "so".')]


def test_the_manifest_and_the_parts_name_the_fields_in_order(write, import_corpus):
    imported(import_corpus, write("a.jsonl", HARD), fields="title query")
    assert manifest_of("c").fields == ("title", "query")
    schema = pq.read_schema(corpus_dir("c") / "parts" / "000001.parquet")
    assert schema.names == [*POST_SCHEMA.names, "language", "title", "query"]
    assert all(not schema.field(name).nullable for name in ("language", "title", "query"))
    assert posts()[0]["text"] == 'He said "no"\na\tb'
    import_corpus("p", write("p.jsonl", [{"id": "1", "text": "a"}]))
    manifest = bytes_of("p")["manifest.json"]
    assert b"fields" not in manifest
    assert b"language" not in manifest
    write_manifest("p", manifest_of("p"))
    assert bytes_of("p")["manifest.json"] == manifest


def test_columns_may_have_other_names_and_fields_those_of_sql_and_records_an_author(write, import_corpus):
    row = {"key": "1", "lang": "en", "q": "why", "answer": "so"}
    more = {"author": "Ann", "posted_at": "2014-07-01T12:00:00Z", "url": "https://e.org/a"}
    columns = ["id=key", "language=lang", "select=q", "order=answer"]
    imported(import_corpus, write("a.jsonl", [row | more]), fields="select order", column=columns)
    (made,) = posts()
    assert (made["id"], made["language"], made["select"], made["url"]) == ("1", "en", "why", "https://e.org/a")
    assert [post["id"] for post in posts_by_author("c", made["author"], 10)] == ["1"]
    (sample,) = sample_records(Corpus.objects.get(), None, size=1, seed="s", together="order")
    assert [row["fields"] for row in sample.rows] == [{"select": "why", "order": "so"}]
    with pytest.raises(CommandError, match="The fields are: id, language, select, order, author"):
        imported(import_corpus, write("b.jsonl", [row]), fields="select order", column=["text=q"])


BAD = [
    ({"title": None}, "The title is missing."),
    ({"description": " \u200b\n"}, "The description is empty."),
    ({"query": ""}, "The query is empty."),
    ({"query": 7}, "The query is a number. It must be a string."),
    ({"query": "a\0"}, "The query contains a NUL character, which databases cannot store."),
    ({"title": "\ud800"}, "The title contains half of a surrogate pair, which is not a character."),
    ({"id": ""}, "The id is empty."),
    ({"language": None}, "The language is missing."),
    ({"language": " "}, "The language is empty."),
    ({"language": 1}, "The language is a number. It must be a string."),
    ({"language": "xx"}, "The language 'xx' is not a known language code; write a code such as de or zh-CN."),
    ({"language": "NaN"}, "The language is NaN, which other programs write for a missing value."),
    (
        {"language": "als"},
        "The language 'als' is not a known language code; write sq (Albanian) or gsw",
    ),
    ({"language": "Englisch"}, "The language 'Englisch' is not a known language code; did you mean en (English)?"),
    ({"language": "de, fr"}, "The language 'de, fr' is not a known language code; there are several languages, so"),
    ({"url": "x"}, "The url is not a web address. It must begin with http:// or https:// and contain no spaces."),
]


def test_what_is_wrong_with_a_record_is_listed_with_its_line(tmp_path, import_corpus):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(ad(str(n)) | wrong) + "\n" for n, (wrong, _) in enumerate([*BAD, ({}, "")])))
    assert f"1 accepted, 0 duplicates, {len(BAD)} rejected" in imported(import_corpus, path)
    for line, (reject, (_, reason)) in enumerate(zip(rejects(), BAD, strict=True), 1):
        assert (reject["line"], reject["reason"][: len(reason)]) == (line, reason)


def test_a_language_can_be_declared_for_a_whole_file(write, import_corpus):
    languages = ({}, {"language": "de"}, {"language": "fr"})
    rows = [{"id": str(n), "query": "a"} | language for n, language in enumerate(languages, 1)]
    imported(import_corpus, write("a.jsonl", rows), fields="query", language="de")
    assert [(row["id"], row["language"]) for row in posts()] == [("1", "de"), ("2", "de")]
    assert rejects()[0]["reason"] == "The language is fr, but de is declared for the whole file."
    import_corpus("c", write("b.csv", "id,query\n9,x\n"), language="it")
    assert posts()[-1]["language"] == "it"
    output = import_corpus("c", write("c.jsonl", [{"id": "8", "query": "b", "language": "deu"}]), language="German")
    assert posts()[-1]["language"] == "de"
    assert [source.language for source in manifest_of("c").sources] == ["de", "it", "de"]
    assert "c.jsonl: The language of 1 row was converted: deu as de (line 1)." in output


IN_EXPORTS = ["label", "stage", "set", "judgments", "concepts", "preferred"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        *(({"fields": name}, f"have the name {name}, because exported sets .* body={name}") for name in IN_EXPORTS),
        ({"fields": "query text"}, "The field name text is reserved .* --fields body --column body=text"),
        ({"fields": "query Title"}, "'Title' is not a valid field name. Use up to 30 lower-case letters"),
        ({"fields": 'query a"b'}, "'a\"b' is not a valid field name"),
        ({"fields": "query query"}, "--fields contains query twice"),
        ({"fields": "query", "language": "xx"}, "--language xx: The language 'xx' is not a known language code"),
        ({"fields": "", "language": "de"}, "Only records can have a declared language"),
        ({"fields": "", "labels": "topic"}, "Only records can have declared labels"),
        ({"fields": "query snippet"}, "has no column snippet. Its columns are: id, language, query, title"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_made(write, import_corpus, options, sentence):
    with pytest.raises(CommandError, match=sentence):
        import_corpus("c", write("a.jsonl", [ad("1")]), **options)
    assert read_manifest("c") is None
    assert not Corpus.objects.exists()


def test_posts_and_records_of_other_fields_do_not_mix(write, import_corpus):
    import_corpus("p", write("p.jsonl", [{"id": "1", "text": "a"}]))
    imported(import_corpus, write("a.jsonl", [ad("1")]))
    for name, fields, sentence in (
        ("p", FIELDS, "Corpus p contains posts, not records with query"),
        ("c", "query title", "Corpus c contains records with the fields query title description, not records"),
        ("c", "title query description", "not records with title query description"),
    ):
        with pytest.raises(CommandError, match=sentence):
            imported(import_corpus, write("b.jsonl", [ad("2")]), name=name, fields=fields)
    with pytest.raises(CommandError, match=r"b\.jsonl has no column.* query.*. Its columns are: id, language"):
        import_corpus("c", write("b.jsonl", [{"id": "2", "language": "en", "text": "a"}]))
    imported(import_corpus, write("c.jsonl", [ad("3")]), fields="")
    assert [row["id"] for row in posts()] == ["1", "3"]


def test_the_same_record_twice_is_dropped_and_another_under_its_id_rejected(write, import_corpus):
    first = ad("1", title="a\nb", description="c")
    again = [
        first,
        first | {"title": "a", "description": "b\nc"},  # other bounds, so the same text
        first | {"language": "de"},
        first | {"query": "x"},
    ]
    assert "1 accepted, 1 duplicate, 3 rejected" in imported(import_corpus, write("a.jsonl", [first, *again]))
    assert [(reject["line"], reject["reason"]) for reject in rejects()] == [
        (line, "The id 1 already occurred with other fields or another language. The first row is kept.")
        for line in (3, 4, 5)
    ]
    output = imported(import_corpus, write("b.jsonl", [*again, ad("2")]))
    assert "1 accepted, 1 duplicate, 3 rejected" in output, "so too where the first is in an earlier part"


@pytest.fixture
def ads(write, import_corpus):
    """Twelve queries in English with 1 to 4 ads each, and five in German with two."""
    rows = [ad(f"en{q}-{n}", "en", f"query {q}") for q in range(12) for n in range(1 + q % 4)]
    rows += [ad(f"de{q}-{n}", "de", f"query {q}") for q in range(5) for n in range(2)]
    imported(import_corpus, write("a.jsonl", rows[::2]), write("b.jsonl", rows[1::2]))
    return Corpus.objects.get(name="c")


def ticket(*of):
    return hashlib.md5(":".join(of).encode()).hexdigest(), of[-1]


def keys(sample):
    return [row["id"] for row in sample.rows]


def test_detectors_and_designs_of_posts_refuse_records(ads, write):
    with pytest.raises(
        CommandError, match=r"Corpus c contains records .fields: query title description. with declared"
    ):
        call_command("prelabel", "c", processes=1)
    with pytest.raises(
        CorpusError, match=r"contains records .fields: query title description.* a corpus of posts is required"
    ):
        sample_uniform(ads, size=5, seed="s")
    path = str(write("p.tsv", "en0-0\ten\n"))
    with pytest.raises(CommandError, match="Corpus c contains records, but --map is only for posts"):
        call_command("import_predictions", "c", path, name="ours", version="1", map=["en=de"])


def test_a_draw_for_each_language_is_in_order_of_the_hash(ads):
    de, en = sample_records(ads, None, size=8, seed="s")
    assert (de.language, en.language) == ("de", "en")
    for sample in (de, en):
        ids = [row["id"] for row in posts() if row["language"] == sample.language]
        assert keys(sample) == sorted(ids, key=lambda key: ticket("s", sample.language, key))[:8]
        assert (sample.frame_size, sample.size, sample.asked) == (len(ids), 8, 8)
        assert sample.parameters == {"together": "", "left_out": 0}
    draw, items = record(en)
    assert Draw.objects.get() == draw
    assert (draw.design, draw.language, draw.seed, draw.parts, draw.detectors) == ("records", "en", "s", 2, [])
    assert draw.frame_digest == frame_of(manifest_of("c"), 2)["digest"]
    assert draw.chance == 8 / 30
    assert [item.key for item in items] == keys(en)
    (all_of_it,) = sample_records(ads, ["de"], size=None, seed="s")
    (more,) = sample_records(ads, ["de"], size=1000, seed="s")
    assert (all_of_it.size, all_of_it.asked, more.size, more.asked) == (10, 10, 10, 1000)
    assert keys(all_of_it) == keys(more)
    assert record(all_of_it)[0].chance == 1


def test_a_draw_in_groups_takes_whole_groups_in_order_of_the_hash(ads):
    (sample,) = sample_records(ads, ["en"], size=4, seed="s", together="query")
    queries = list(dict.fromkeys(row["fields"]["query"] for row in sample.rows))
    assert queries == sorted((f"query {q}" for q in range(12)), key=lambda query: ticket("s", "en", query))[:4]
    whole = [row["id"] for row in posts() if row["language"] == "en" and row["query"] in queries]
    assert sorted(keys(sample)) == sorted(whole)
    stretches = [row["fields"]["query"] for row in sample.rows]
    assert stretches == sorted(stretches, key=queries.index), "records of one group stand together"
    assert sample.parameters == {"together": "query", "left_out": 0, "groups": 4, "frame_groups": 12}
    draw, _ = record(sample)
    assert (draw.asked, draw.size, draw.frame_size) == (4, len(whole), 30)
    assert draw.chance == 4 / 12, "a record has the chance of its group"
    (everything,) = sample_records(ads, ["en"], size=None, seed="s", together="query")
    assert (everything.asked, everything.size) == (12, 30)


ROWS = [ad(f"{language}{n}", language, f"q{n % 5}") for language in ("en", "fr") for n in range(17)]
IDS = [row["id"] for row in ROWS]


@pytest.mark.slow
def test_a_draw_is_its_seeds_holds_whole_groups_and_nothing_left_out(write, import_corpus):
    imported(import_corpus, write("a.jsonl", ROWS))
    corpus = Corpus.objects.get(name="c")

    @settings(max_examples=15)
    @given(
        seed=st.text("abc:", min_size=1, max_size=4),
        size=st.none() | st.integers(1, 20),
        together=st.sampled_from(["", "query"]),
        left=st.sets(st.sampled_from([*IDS, "stranger"]), max_size=30),
    )
    def check(seed, size, together, left):
        frames = {
            language: [row for row in ROWS if row["language"] == language and row["id"] not in left]
            for language in ("en", "fr")
        }
        languages = [language for language, frame in frames.items() if frame]

        def draw(size):
            return sample_records(corpus, languages, size=size, seed=seed, together=together, leave_out=left)

        for sample, again, larger in zip(draw(size), draw(size), draw(size and size + 1), strict=True):
            frame = {row["id"]: row[together or "id"] for row in frames[sample.language]}
            drawn = {frame[key] for key in keys(sample)}
            assert keys(sample) == keys(again) == keys(larger)[: sample.size]
            assert len(set(keys(sample))) == sample.size
            assert {key for key, value in frame.items() if value in drawn} == set(keys(sample))
            assert len(drawn) == min(size or len(frame), len(set(frame.values())))
            assert (sample.frame_size, sample.parameters["left_out"]) == (len(frame), 17 - len(frame))
            assert {row["language"] for row in sample.rows} == {sample.language}

    check()


GERMAN = {f"de{q}-{n}" for q in range(5) for n in range(2)}


def test_what_cannot_be_drawn_is_refused(ads, write, import_corpus):
    for languages, options, sentence in (
        (["en", "it"], {}, "Corpus c has no records in it. Available languages: de, en."),
        ([], {}, "No language is selected"),
        (None, {"size": 0}, "must be at least one record"),
        (None, {"size": 0, "together": "query"}, "must be at least one group"),
        (None, {"seed": ""}, "The seed has 0 characters"),
        (None, {"together": "snippet"}, "has no field 'snippet' .* Its fields are: query, title, description"),
        (None, {"together": "text"}, "has no field 'text'"),
        (["de"], {"leave_out": GERMAN}, "All records of corpus c in de are"),
    ):
        with pytest.raises(CorpusError, match=sentence):
            sample_records(ads, languages, **({"size": 3, "seed": "s"} | options))
    import_corpus("p", write("p.jsonl", [{"id": "1", "text": "a"}]))
    with pytest.raises(
        CorpusError, match=r"Corpus p contains posts, but records with several fields are required. Import records"
    ):
        sample_records(Corpus.objects.get(name="p"), None, size=1, seed="s")
    for name, ids, sentence in (
        ("p", ["1"], "Corpus p contains posts"),
        ("c", ["en0-0", "nobody", "query 1"], "Corpus c does not contain 2 ids: nobody, query 1"),
        ("c", "abcdefghi", "does not contain 9 ids, the first: a, b, c, d, e"),
    ):
        with pytest.raises(CorpusError, match=sentence):
            items_of(Corpus.objects.get(name=name), ids)
    assert not Item.objects.exists()
    items_of(ads, ["de0-0"])
    Item.objects.update(fields={"query": "other"})
    with pytest.raises(CorpusError, match="Record de0-0 was drawn earlier, and its fields"):
        items_of(ads, ["de0-0"])


def test_items_of_named_records_are_made_once_and_returned_again(ads):
    made = items_of(ads, ["en3-1", "de0-0"])
    assert [item.key for item in made] == ["en3-1", "de0-0"]
    assert (made[1].language, made[1].fields["query"]) == ("de", "query 0")
    (sample,) = sample_records(ads, ["de"], size=None, seed="s")
    _, drawn = record(sample)
    assert made[1].pk in {item.pk for item in drawn}
    assert [item.pk for item in items_of(ads, ["de0-0", "en3-1", "de0-0"])] == [made[n].pk for n in (1, 0, 1)]
    assert Item.objects.count() == 11
    assert items_of(ads, []) == []


def test_a_corpus_that_was_deleted_meanwhile_is_not_drawn_from(ads):
    (sample,) = sample_records(ads, ["de"], size=None, seed="s")
    Corpus.objects.all().delete()
    for draw in (lambda: record(sample), lambda: items_of(ads, ["de0-0"])):
        with pytest.raises(CorpusError, match=r"Corpus c has been deleted in the meantime, so nothing was drawn\."):
            draw()


# --- labels that came with records: kept one or several, counted, and rejected where they are none


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
