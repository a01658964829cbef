"""House rules that concern several packages."""

import ast
import csv
import json
import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
# Rows of a source file that may occur here; we may not copy the rest of the file.
CAPS = {"lingua_sentences": 30, "lingua_single_words": 10, "afrisenti_tweets": 20}
# Written so that this file does not name what it forbids.
FORBIDDEN = re.compile(r"/(?:work|root|farm)/|://[a-z.]*(?:pypi|pythonhosted|npmjs|debian)\.", re.IGNORECASE)


@cache
def committed_files():
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_path_of_a_machine_or_a_registry():
    places = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in committed_files()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1)
        if FORBIDDEN.search(line)
    ]
    assert places == []


@pytest.fixture(scope="module")
def posts():
    with open(FIXTURES / "demo_posts.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def truth():
    with open(FIXTURES / "demo_truth.tsv", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("\t") for line in file)


def test_demo_posts_stay_within_what_their_sources_allow_and_mark_what_is_invented(posts, truth):
    rows = Counter(post["origin"] for post in posts)
    over = {origin: n for origin, n in rows.items() if n > CAPS.get(origin.split("/")[0], n)}
    assert over == {}
    assert {origin.split("/")[0] for origin in rows} == {*CAPS, "cld2_unittest"}
    assert all(post["invented"] == ["id", "author", "posted_at", "url"] for post in posts)
    assert all(post["url"] == f"https://example.org/invented/{post['id']}" for post in posts)
    assert all(post["author"].startswith("invented_author_") for post in posts)
    # Each post has one id and one true label.
    assert [post["id"] for post in posts] == list(truth)
    assert len(set(truth.values())) >= 40


def test_the_fixtures_readme_counts_right(posts, truth):
    readme = (FIXTURES / "README.md").read_text(encoding="utf-8")
    sources = Counter(post["origin"].split("/")[0] for post in posts)
    for source, rows in sources.items():
        assert re.search(rf"^\| `{source}/` .*\| {rows:,} \|$", readme, re.MULTILINE), (source, rows)
    assert f"{len(set(truth.values()))} languages" in readme
    assert f"({len({post['author'] for post in posts})} of" in readme.replace("\n", " ")


def test_every_listed_language_of_the_demo_has_a_reader(truth):
    with open(FIXTURES / "annotators.csv", encoding="utf-8", newline="") as file:
        people = list(csv.DictReader(file))
    levels = {}
    for person in people:
        assert person["name"].endswith(" Invented")
        for pair in person["languages"].split():
            code, level = pair.split(":")
            assert 0 <= int(level) <= 5
            levels[code] = max(levels.get(code, 0), int(level))
    # Languages that are not on the 2015 list; their answer is "und".
    off_list = "af az be eo ga ha kk la lg mi mk mn pcm sn so sq st sw tn ts xh yo zu"
    assert " ".join(sorted(code for code in set(truth.values()) if levels.get(code, 0) < 4)) == off_list


# The fields of each kind of record, and its answers.
RECORDS = {
    "ad_relevance": (("query", "title", "description"), ("Good", "Bad")),
    "qa_match": (("question", "passage"), ("1", "0")),
    "web_ranking": (("query", "title", "snippet"), ("4", "3", "2", "1", "0")),
}


LANGUAGES = ("en", "fr", "de")


def records(name, language):
    with open(FIXTURES / "records" / f"{name}.{language}.jsonl", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize("name", RECORDS)
def test_there_are_sixty_records_with_as_many_of_each_answer_in_each_purpose(name):
    fields, answers = RECORDS[name]
    keys = ["id", "language", *fields, "truth", "why", "purpose"]
    # pages are dealt out by whole queries of five
    sizes = {"practice": 5, "test": 15} if name == "web_ranking" else {"practice": 4, "test": 16}
    sizes |= {"queue": 10, "": 30}
    balance = {(purpose, answer): size // len(answers) for purpose, size in sizes.items() for answer in answers}
    texts = ""
    for language in LANGUAGES:
        rows = records(name, language)
        assert all(list(row) == keys for row in rows)
        assert all(row[key].strip() for row in rows for key in keys if key != "purpose")
        assert [row["id"] for row in rows] == [f"{name.split('_')[0]}-{language}-{n:03}" for n in range(1, 61)]
        assert {row["language"] for row in rows} == {language}
        assert len({tuple(row[field] for field in fields) for row in rows}) == 60
        assert Counter((row["purpose"], row["truth"]) for row in rows) == balance
        texts += "".join(row[field] for row in rows for field in fields)
        if name == "web_ranking":
            queries = [[(row["query"], row["purpose"]) for row in rows[n : n + 5]] for n in range(0, 60, 5)]
            assert all(len(set(pages)) == 1 for pages in queries)
            assert len({pages[0] for pages in queries}) == 12
    # Some records contain characters that break files.
    assert [mark for mark in '\t\n"' if mark not in texts] == []
    assert any(ord(mark) > 0xFFFF for mark in texts)  # an emoji


def test_the_folder_of_records_holds_each_kind_in_each_language_and_nothing_else():
    names = {f"{name}.{language}.jsonl" for name in RECORDS for language in LANGUAGES}
    assert {path.name for path in (FIXTURES / "records").iterdir()} == names


def test_the_guidelines_examples_are_in_no_record():
    for name, (fields, _) in RECORDS.items():
        for language in LANGUAGES:
            text = (ROOT / "annotate" / "kinds" / f"{name}.{language}.md").read_text(encoding="utf-8")
            examples = {line.split("|")[1].strip().casefold() for line in text.splitlines() if line.startswith("|")}
            assert len(examples) >= 3
            assert examples.isdisjoint(row[fields[0]].casefold() for row in records(name, language))


def test_every_variable_that_the_settings_read_is_explained():
    settings = (ROOT / "deploy" / "settings.py").read_text(encoding="utf-8")
    names = {"DATABASE_URL", *re.findall(r"\bASSAY_[A-Z_]+[A-Z]\b", settings)}
    names |= {f"ASSAY_{name}" for name in re.findall(r'installation_key\("(\w+)"\)', settings)}
    example = (ROOT / "deploy" / "env.example").read_text(encoding="utf-8")
    assert names == {"DATABASE_URL", *re.findall(r"^#?(ASSAY_[A-Z_]+)=", example, re.MULTILINE)}


# English that makes a reader stop: "who" without a noun before it, and archaic phrases.
STUMBLES = re.compile(
    r"\b(?:for|of|by|to|from|than|if|where|like) who\b"
    r"|(?:^|[.;] )Who (?:is|has|gives|guesses|always|never|cannot)\b"
    r"|\b(?:has|have|had) not the\b|\bhas them not\b|\bcounts? (?:no more|for nothing)\b|\bso the others\b"
)


def prose(path):
    """Yield the texts of a file with their lines: the comments and strings of Python, every line of a template."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.lineno, " ".join(node.value.split())
    for number, line in enumerate(source.splitlines(), 1):
        if path.suffix != ".py" or "#" in line:
            yield number, line


def test_no_sentence_has_a_who_without_somebody_before_it():
    stumbles = [
        f"{path.relative_to(ROOT)}:{number}: {stumble.group()}"
        for path in committed_files()
        if path.relative_to(ROOT).parts[0] in ("annotate", "corpora", "deploy")
        and path.suffix in (".py", ".html", ".sql")
        for number, text in prose(path)
        if (stumble := STUMBLES.search(text))
    ]
    assert stumbles == []


def test_what_a_browser_waits_for_is_a_function():
    """A string is evaluated again at each check, which our content security policy forbids."""
    files = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    awaited = [what for text in files for what in re.findall(r"wait_for_function\(\s*f?[\"']+(.*)", text)]
    assert awaited
    assert [what for what in awaited if "=>" not in what] == []
