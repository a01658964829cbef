"""import_vocabulary and vocabularies: files, versions, stored rows, and what the database refuses."""

import gzip
import json

import pytest
import rdflib
from django.conf import settings as django_settings
from django.db import IntegrityError, transaction
from rdflib.namespace import RDF, SKOS

from corpora.models import Broader, Concept, Label, Related, Scheme, Vocabulary
from corpora.vocabulary.concept_index import names_in, top_concepts, tree_of, vocabulary_named
from corpora.vocabulary.thesaurus import VocabularyError
from corpora.vocabulary.vocabulary_import import import_vocabulary

pytestmark = pytest.mark.django_db
EUROVOC = django_settings.BASE_DIR / "fixtures" / "eurovoc"
CONCEPTS, SCHEMES = EUROVOC / "concepts.json", EUROVOC / "schemes.json"
SMALL = {
    "1": {"label": "law", "label_de": "Recht"},
    "2": {"label": "civil law", "parents": ["1"], "related": ["3"], "alt_labels": ["private law"]},
    "3": {"label": "penal law", "parents": ["1"]},
}


def in_skos(format, *, with_other_labels=True):
    """Write the excerpt of EuroVoc as SKOS, with the addresses of the published one."""
    place = rdflib.Namespace("http://eurovoc.europa.eu/")
    graph = rdflib.Graph()
    schemes = json.loads(SCHEMES.read_text(encoding="utf-8"))

    def labelled(node, row):
        for tag, key in (("en", "label"), ("fr", "label_fr")):
            if row.get(key):
                graph.add((node, SKOS.prefLabel, rdflib.Literal(row[key], lang=tag)))

    for key, row in schemes["schemes"].items():
        graph.add((place[key], RDF.type, SKOS.ConceptScheme))
        labelled(place[key], row)
    for key, row in json.loads(CONCEPTS.read_text(encoding="utf-8")).items():
        node = place[key]
        graph.add((node, RDF.type, SKOS.Concept))
        labelled(node, row)
        for text in row["alt_labels"] if with_other_labels else ():
            graph.add((node, SKOS.altLabel, rdflib.Literal(text, lang="en")))
        for parent in row["parents"]:
            graph.add((node, SKOS.broader, place[parent]))
        for other in row["related"]:
            graph.add((node, SKOS.related, place[other]))
        # The published one also states that each concept is in EuroVoc.
        for scheme in [*schemes["in_scheme"][key], "100141"]:
            graph.add((node, SKOS.inScheme, place[scheme]))
    return graph.serialize(format=format, encoding="utf-8")


@pytest.fixture
def imported(write):
    """imported(rows) imports descriptors as a version of the vocabulary `small`."""

    def run(rows, **options):
        return import_vocabulary("small", [write("small.json", json.dumps(rows))], **options)

    return run


@pytest.fixture
def eurovoc():
    import_vocabulary("eurovoc", [CONCEPTS], schemes=SCHEMES)
    return vocabulary_named("eurovoc")


# --- formats


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "format"), [("e.ttl", "turtle"), ("e.rdf", "xml"), ("e.nt", "nt"), ("e.ttl.gz", "turtle")]
)
def test_eurovoc_as_skos_and_as_descriptors_is_the_same_vocabulary(write, eurovoc, name, format):
    content = in_skos(format)
    skos = write(name, gzip.compress(content) if name.endswith(".gz") else content)
    with_domains = import_vocabulary("eurovoc", [skos], schemes=SCHEMES)
    assert (with_domains.already, with_domains.version) == (True, 1)
    # SKOS has no domains of schemes, and nothing else is missing.
    assert import_vocabulary("skos", [skos]).concepts == eurovoc.concepts.count() == 549
    schemes = eurovoc.schemes.filter(concepts__isnull=False).values_list("key", flat=True)
    assert set(vocabulary_named("skos").schemes.values_list("key", "domain")) == {(key, None) for key in schemes}


@pytest.mark.both_databases
def test_every_concept_of_eurovoc_has_the_links_and_schemes_that_were_published(write, eurovoc):
    rows = json.loads(CONCEPTS.read_text(encoding="utf-8"))
    schemes = json.loads(SCHEMES.read_text(encoding="utf-8"))
    for concept in eurovoc.concepts.prefetch_related("broader", "related", "schemes", "labels"):
        row = rows[concept.key]
        assert {other.key for other in concept.broader.all()} == set(row["parents"])
        assert {other.key for other in concept.related.all()} == set(row["related"])
        assert {other.key for other in concept.schemes.all()} == set(schemes["in_scheme"][concept.key])
        labels = {text.strip() for text in (row["label"], row["label_fr"], *row["alt_labels"])}
        assert {label.text for label in concept.labels.all()} == labels
    scheme = eurovoc.schemes.get(key="100278")
    assert scheme.domain.labels["en"] == "72 GEOGRAPHY"
    assert all(rows[top.key]["parents"] == [] or top.broader.exists() for top in top_concepts(scheme))
    skos = write("e.ttl", in_skos("turtle", with_other_labels=False))
    assert import_vocabulary("eurovoc", [skos], schemes=SCHEMES).version == 2


SKOS_SOURCE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix x: <https://example.org/v#> .
x:s a skos:ConceptScheme ; skos:hasTopConcept x:1 . x:t a skos:ConceptScheme .
x:1 a skos:Concept ; skos:prefLabel "law"@en ; skos:narrower x:2 .
x:2 a skos:Concept ; skos:prefLabel "Recht"@de-at ; skos:hiddenLabel "Rehct"@de-at ; skos:inScheme x:t .
"""


def test_narrower_and_top_concepts_of_skos_are_read_from_the_other_end(write):
    import_vocabulary("small", [write("small.ttl", SKOS_SOURCE)])
    two = Concept.objects.get(key="2")
    assert [str(broader) for broader in two.broader.all()] == ["1"]
    assert set(two.labels.values_list("language", "text", "is_preferred")) == {
        ("de-AT", "Recht", True),
        ("de-AT", "Rehct", False),
    }
    assert list(Concept.objects.get(key="1").schemes.values_list("key", flat=True)) == ["s"]


def test_a_table_is_the_same_as_descriptors_with_or_without_a_header_and_in_several_files(write, imported):
    imported(SMALL)
    table = (
        "id\tlabel\tlabel_de\tparents\trelated\talt_labels\n"
        "1\tlaw\tRecht\n2\tcivil law\t\t1\t3\tprivate law\r\n\n3\tpenal law\t\t1\n"
    )
    assert import_vocabulary("small", [write("small.tsv", table)]).already
    bare = import_vocabulary("bare", [write("bare.tsv", "1\tlaw\n2\tcivil law\t1\n3\tboth\t1|2\n")])
    assert (bare.concepts, bare.languages) == (3, ["en"])
    both = Concept.objects.get(vocabulary__name="bare", key="3")
    assert set(both.broader.values_list("key", flat=True)) == {"1", "2"}
    first, second = write("first.tsv", "2\tcivil law\t1\n"), write("second.json", json.dumps({"1": {"label": "law"}}))
    assert import_vocabulary("together", [first, second]).concepts == 2
    assert Vocabulary.objects.get(name="together").source == "first.tsv, second.json"


def test_a_missing_value_in_a_table_is_no_parent_and_no_label_but_may_be_an_id(write):
    header = "id\tlabel\tlabel_de\tparents\trelated\talt_labels\n"
    import_vocabulary("gaps", [write("g.tsv", f"{header}1\tlaw\tnan\tnan\tNaN\t<NA>\n2\ttax\tSteuer\t1|nan\tnan\n")])
    labels = {("1", "en", "law"), ("2", "en", "tax"), ("2", "de", "Steuer")}
    assert set(Label.objects.values_list("concept__key", "language", "text")) == labels
    import_vocabulary("countries", [write("countries.tsv", "NA\tNamibia\nNA-KH\tKhomas\tNA\n")])
    assert set(Broader.objects.values_list("concept__key", "broader__key")) == {("2", "1"), ("NA-KH", "NA")}
    assert not Related.objects.exists()


# --- versions


@pytest.mark.both_databases
def test_the_same_file_again_changes_nothing_and_another_is_a_new_version(printed, write):
    assert "There are no vocabularies yet" in printed("vocabularies")
    one = write("one.json", json.dumps(SMALL))
    assert "version 1 (dry run): 3 concepts" in printed("import_vocabulary", "small", one, dry_run=True)
    assert not Vocabulary.objects.exists()
    assert "version 1: 3 concepts with 5 labels in de, en" in printed("import_vocabulary", "small", one)
    assert "the files are equal to version 1, so nothing was changed." in printed("import_vocabulary", "small", one)
    rows = {key: row for key, row in SMALL.items() if key != "3"} | {"4": {"label": "tax law"}}
    rows["2"] = {"label": "private law", "parents": ["1"], "label_de": "Privatrecht"}
    text = printed("import_vocabulary", "small", write("two.json", json.dumps(rows)))
    assert "Since version 1:\n  1 gone: 3 penal law\n  1 new: 4 tax law\n  1 renamed: 2 civil law → private law" in text
    assert set(vocabulary_named("small", 1).concepts.values_list("key", flat=True)) == {"1", "2", "3"}
    assert set(vocabulary_named("small").concepts.values_list("key", flat=True)) == {"1", "2", "4"}
    text = printed("import_vocabulary", "small", one)
    assert "the files are equal to version 1, so nothing was changed; the newest version is 2." in text
    listed = [line.split() for line in printed("vocabularies").splitlines()[1:]]
    assert [row[:3] for row in listed] == [["small", "1", "3"], ["small", "2", "3"]]
    assert ["one.json" in listed[0], "two.json" in listed[1]] == [True, True]
    assert [row["version"] for row in json.loads(printed("vocabularies", json=True))["vocabularies"]] == [1, 2]
    with pytest.raises(VocabularyError, match=r"vocabulary 'small 7' does not exist. Available vocabularies: small 1"):
        vocabulary_named("small", 7)


def test_of_many_changes_the_first_few_are_shown_and_json_has_them_all(printed, write):
    def rows(first, last, word):
        return json.dumps({f"{n:02}": {"label": f"{word} {n}"} for n in range(first, last)})

    printed("import_vocabulary", "many", write("one.json", rows(0, 20, "old")))
    two = write("two.json", rows(10, 40, "new"))
    text = printed("import_vocabulary", "many", two, dry_run=True)
    assert "10 gone, such as: 00 old 0; 01 old 1; 02 old 2; 03 old 3; 04 old 4\n" in text
    assert "\n  20 new, such as: 20 new 20" in text
    data = json.loads(printed("import_vocabulary", "many", two, json=True))
    assert (len(data["gone"]), len(data["new"]), len(data["renamed"])) == (10, 20, 10)
    assert data["renamed"]["11"] == ["old 11", "new 11"]


# --- what is odd, and may be meant


def test_what_is_odd_is_reported_and_imported(printed, write):
    rows = {"c_a": {"label": "law"}, "C_A": {"label": "Law"}, "2": {"label_de": "Steuer"}}
    file = write("odd.json", json.dumps(rows))
    text = printed("import_vocabulary", "odd", file)
    assert "these concepts have no preferred label in en, so another label is shown: 1 concept: 2." in text
    assert "several concepts share 1 label, ignoring case and Unicode forms: “Law” of C_A, c_a." in text
    assert "these ids differ only in case or Unicode forms, and are kept as separate concepts: C_A, c_a." in text
    assert "2 concepts: C_A, c_a." in printed("import_vocabulary", "odd2", file, language="de")
    assert Concept.objects.filter(vocabulary__name="odd").count() == 3


# --- what pages ask


def test_a_label_is_shown_in_the_language_or_in_english_or_in_any(imported):
    imported({**SMALL, "4": {"label_fr": "impôt", "label_de": "Steuer"}, "5": {"alt_labels_it": ["tassa"]}})
    vocabulary = Vocabulary.objects.get()
    shown = names_in(vocabulary, "de")
    expected = [("Recht", "de"), ("civil law", "en"), ("penal law", "en"), ("Steuer", "de"), ("tassa", "it")]
    assert [shown[key] for key in "12345"] == expected
    assert names_in(vocabulary, "it")["4"] == ("Steuer", "de")


@pytest.mark.both_databases
def test_paths_lead_from_the_top_over_the_broader_concept_that_comes_first(imported):
    parents = {"a": [], "b": ["a"], "c": ["a"], "d": ["c", "b"], "e": ["d", "a"]}
    imported({key: {"label": key, "parents": broader} for key, broader in parents.items()})
    tree = tree_of(vocabulary_named("small"))
    assert {key: "".join(tree.way_to(key)) for key in "abcde"} == {"a": "", "b": "a", "c": "a", "d": "ab", "e": "a"}
    assert list(map(str, Concept.objects.get(key="d").narrower.all())) == ["e"]
    circle = {key: {"label": key, "parents": [parent]} for key, parent in ("ab", "bc", "ca")}
    with pytest.raises(VocabularyError, match=r"cycle of 3: (a → b → c → a|b → c → a → b|c → a → b → c)"):
        imported(circle)


# --- what must never be


@pytest.mark.both_databases
def test_the_database_refuses_what_must_never_be(imported):
    imported(SMALL)
    small = Vocabulary.objects.get()
    one = Concept.objects.get(key="1")
    label = {"concept": one, "plain": b"x", "language": "en"}
    for refused in (
        lambda: Concept.objects.create(vocabulary=small, key="1"),
        lambda: Broader.objects.create(concept=one, broader=one),
        lambda: Related.objects.create(concept=one, related=one),
        lambda: Label.objects.create(**label, text="legislation", is_preferred=True),
        lambda: Label.objects.create(**label, text="law", is_preferred=False),
        lambda: Vocabulary.objects.create(name="small", version=1, source="", sha256="0"),
        lambda: Vocabulary.objects.create(name="small", version=2, source="", sha256=small.sha256),
        lambda: [Scheme.objects.create(vocabulary=small, key="s") for _ in range(2)],
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            refused()
