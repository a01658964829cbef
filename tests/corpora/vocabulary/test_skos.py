"""SKOS as published by others: ids, deprecated concepts, ISO 25964 hierarchies, SKOS-XL, and unusual XML."""

import pytest

from annotate.actions.registry import call_command
from corpora.models import Concept, Label, Vocabulary
from corpora.vocabulary.concept_index import find, names_in, top_concepts, tree_of, vocabulary_named
from corpora.vocabulary.skos import ids_of
from corpora.vocabulary.thesaurus import VocabularyError
from corpora.vocabulary.vocabulary_import import import_vocabulary

pytestmark = pytest.mark.django_db
PREFIXES = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix x: <http://ex.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix dcterms: <http://purl.org/dc/terms/> .
@prefix iso: <http://purl.org/iso25964/skos-thes#> . @prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
"""


@pytest.fixture
def imported(write):
    """imported(turtle) imports a version of the vocabulary `v`."""
    return lambda turtle: import_vocabulary("v", [write("v.ttl", PREFIXES + turtle)])


def concepts(**labels):
    return " ".join(f'x:{key} a skos:Concept ; skos:prefLabel "{label}"@en .' for key, label in labels.items())


# --- ids


@pytest.mark.parametrize(
    ("addresses", "ids"),
    [
        ("http://e.org/a http://e.org/v#b", "a b"),
        ("http://e.org/Smart#this http://e.org/Web/this", "Smart#this Web/this"),
        ("http://e.org/id/Smart#it http://e.org/2/", "Smart#it 2"),
        ("http://e.org/a/1 http://e.org/b/1 http://e.org/b/2", "a/1 b/1 2"),
        ("http://e.org/1 https://f.org/1", "e.org/1 f.org/1"),
        ("http://e.org/1 http://e.org/1/", "http://e.org/1 http://e.org/1/"),
        ("urn:uuid:1 http://e.org/?tema=10", "urn:uuid:1 ?tema=10"),
    ],
)
def test_an_id_takes_as_much_of_the_address_as_tells_concepts_apart(addresses, ids):
    assert ids_of(addresses.split()) == dict(zip(addresses.split(), ids.split(), strict=True))


def test_an_id_that_takes_more_of_the_address_than_before_is_reported(capsys, write):
    def imported_text(turtle, file):
        call_command("import_vocabulary", "v", str(write(file, PREFIXES + turtle)))
        return "".join(capsys.readouterr())

    one = '<http://e.org/a/1> a skos:Concept ; skos:prefLabel "a"@en .'
    two = one + '<http://e.org/b/1> a skos:Concept ; skos:prefLabel "b"@en .'
    imported_text(one, "1.ttl")
    text = imported_text(two, "2.ttl")
    assert "the last part of an address is not unique, so these ids contain more of it: 2 ids: a/1, b/1." in text
    assert "these shorter ids of version 1 no longer exist: 1." in text
    assert "are equal to version" in imported_text(two, "2.ttl")


def test_what_has_no_address_is_refused_since_its_id_would_change_at_each_import(imported):
    for turtle, sentence in (
        ('[] a skos:Concept ; skos:prefLabel "Nameless"@en .', "The concept “Nameless” has no URI"),
        ('x:2 skos:inScheme [ skos:prefLabel "Part"@en ] .', "The scheme “Part” has no URI"),
        ('[] a skos:ConceptScheme ; skos:prefLabel "Whole"@en .', "The scheme “Whole” has no URI"),
        ("x:2 skos:broader [] .", "Concept 2 has a broader concept without a URI. Add a URI"),
        ("x:2 skos:related [] .", "Concept 2 has a related concept without a URI. Add a URI"),
    ):
        with pytest.raises(VocabularyError, match=f"v.ttl: {sentence}"):
            imported(concepts(**{"2": "two"}) + turtle)
    assert not Vocabulary.objects.exists()


# --- deprecated concepts

OLD = concepts(a="wire", b="radio", c="wires in houses", d="wire mesh", e="wire rope") + (
    "x:a owl:deprecated true ; dcterms:isReplacedBy x:b ; skos:broader x:b . x:c skos:broader x:a ."
    'x:d dcterms:isReplacedBy <http://other.org/9> . x:e owl:deprecated false ; skos:historyNote "New." .'
    "x:a skos:inScheme x:s . x:c skos:inScheme x:s ."
)


def test_deprecated_concepts_are_reported_and_kept_and_neither_found_nor_browsed(imported, capsys, write):
    imported(OLD.replace("owl:deprecated true ; dcterms:isReplacedBy x:b ;", ""))
    made = imported(OLD)
    assert (made.version, made.oddities.deprecated) == (2, {"a": ["b"], "d": []})
    vocabulary = vocabulary_named("v")
    assert [hit.concept.key for hit in find(vocabulary, "wire", "en")] == ["e", "c"]
    assert names_in(vocabulary, "en")["a"].text == "wire"
    assert tree_of(vocabulary).narrower.get("b", 0) == 0
    # A concept below a deprecated one becomes a top concept of its scheme.
    assert [top.key for top in top_concepts(vocabulary.schemes.get())] == ["c"]
    call_command("import_vocabulary", "w", str(write("w.ttl", PREFIXES + OLD)), dry_run=True)
    sentence = (
        "these deprecated concepts are kept for documents that have them, but not offered: 2 concepts: a (use b), d."
    )
    assert sentence in "".join(capsys.readouterr())


# --- what is read


def test_hierarchies_of_iso_25964_are_read_and_of_transitive_ones_the_nearest(imported):
    imported(
        concepts(a="a", b="b", c="c", d="d", e="e")
        + "x:b iso:broaderGeneric x:a . x:a iso:narrowerPartitive x:c . x:d iso:broaderInstantial x:c ."
        "x:e skos:broaderTransitive x:d, x:c, x:a . x:a skos:narrowerTransitive x:d ."
    )
    links = set(Concept.objects.exclude(broader=None).values_list("key", "broader__key"))
    assert links == {("b", "a"), ("c", "a"), ("d", "c"), ("e", "d")}


def test_labels_in_skos_xl_are_read_and_what_is_odd_or_not_read_is_counted(imported):
    made = imported(
        'x:a a skos:Concept ; xl:prefLabel [ xl:literalForm "maize"@en ] ; xl:altLabel x:l .'
        'x:l a xl:Label ; xl:literalForm "corn"@en . x:c a skos:Collection ; skos:prefLabel "Group"@en .'
        'x:o a x:Other ; skos:prefLabel "Other"@en .' + concepts(b="caf\u00e9", d="Cafe\u0301", e="cafe")
    )
    assert [hit.concept.key for hit in find(vocabulary_named("v"), "corn", "en")] == ["a"]
    assert names_in(vocabulary_named("v"), "en")["a"].text == "maize"
    assert made.oddities.unread == {"collection": 1, "labelled resource outside skos:Concept": 1}
    assert [sorted(keys) for keys in made.oddities.shared.values()] == [["b", "d"]]


def test_all_faults_of_a_file_are_reported_at_once(imported, write):
    faulty = """x:a a skos:Concept ; skos:prefLabel "a"@en, "b"@en ; skos:broader <http://o.org/a> . [] a skos:Concept .
    x:d a skos:Concept ; skos:prefLabel "d"@en ; skos:related x:d . x:e a skos:Concept ."""
    with pytest.raises(VocabularyError) as refused:
        imported(faulty)
    for part in (
        *("v.ttl: 5 errors:\n", "no URI", "two preferred labels", "related to itself"),
        "Concept a has 1 unknown broader concept: http://o.org/a. Add the missing concepts, or remove the links.\n",
        "Concept e has no label in any language. Add one, or remove the concept.",
    ):
        assert part in f"{refused.value}\n"
    rows = "\n".join(["id\tlabel\tlabel_de", *(f"{n}\ta\tb\tc" for n in range(9)), "a b\tx"])
    with pytest.raises(VocabularyError, match="10 errors; the first 5 are:\nline 2: The row has 4 fields"):
        import_vocabulary("v", [write("v.tsv", rows)])


# --- XML

RDF = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">'
    '\n<skos:Concept rdf:about="http://ex.org/a"><skos:prefLabel xml:lang="fr">été</skos:prefLabel>\n'
    '<skos:altLabel xml:lang="{}">estate</skos:altLabel></skos:Concept></rdf:RDF>'
)


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "utf-16", "utf-8-sig"])
def test_rdf_xml_is_read_in_the_encoding_that_it_declares(write, encoding):
    declaration = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>'
    # UTF-16 is recognized by its first bytes.
    text = ("" if encoding == "utf-16" else declaration) + RDF.format("it")
    import_vocabulary("v", [write("v.rdf", text.encode(encoding))])
    assert names_in(vocabulary_named("v"), "fr")["a"].text == "été"


@pytest.mark.parametrize("declared", ["", '<?xml version="1.0"?>', '<?xml version="1.0" encoding="utf-8"?>'])
def test_rdf_xml_in_another_encoding_than_it_declares_is_refused_with_the_way_out(write, declared):
    why = r"line 2: the text is not UTF-8; save it as UTF-8, or declare the encoding in the first line, .* <\?xml"
    with pytest.raises(VocabularyError, match=why):
        import_vocabulary("v", [write("v.rdf", (declared + RDF.format("it")).encode("latin-1"))])


def test_a_language_tag_that_is_none_costs_its_label_and_is_named_with_its_line_and_concept(write):
    imported = import_vocabulary("v", [write("v.rdf", RDF.format("unibo.it").encode())])
    assert imported.oddities.rejected == [
        "line 3: A label of http://ex.org/a has an invalid language code, 'unibo.it'."
    ]
    assert [label.language for label in Label.objects.all()] == ["fr"]
    assert import_vocabulary("w", [write("w.rdf", RDF.format("pt_BR").encode())]).languages == ["fr", "pt-BR"]


def test_a_label_with_a_tag_that_is_too_long_is_left_out(imported):
    result = imported('x:a a skos:Concept ; skos:prefLabel "a"@en, "b"@zh-Latn-CN-pinyin .')
    assert (result.languages, len(result.oddities.rejected)) == (["en"], 1)
