"""The list of languages is open: what a task's file adds is routed, read, predicted, drawn, exported and measured like
any other.
"""

import json
import shutil

import pytest
from django.core.management import CommandError

from annotate.actions.registry import call_command
from annotate.core import stages
from annotate.kinds import language
from annotate.kinds.files import kind_of, read_kind
from annotate.models import Annotator, LanguageRoute, Task
from annotate.work.queue import take
from annotate.work.routes import is_language
from annotate.work.task_creation import TaskError, with_defaults
from corpora.core.languages import LANGUAGES, LISTED
from tests.annotate.acts import NO_CHECKS
from tests.annotate.evaluation.figures import accuracy

ADDED = """
[languages.pcm]
name = "Nigerian Pidgin"
autonym = "Naijá"
script = "Latn"

[languages.pt-BR]
name = "Brazilian Portuguese"
autonym = "português brasileiro"
under = "pt"

[languages.pt-PT]
name = "European Portuguese"
autonym = "português europeu"
under = "pt"
"""
WHICH = 'base = "language"\nlabels = ["en", "pt-BR", "pt-PT", "pcm"]\n[options]\naudit_share = 0\naudit_least = 0\n'
POSTS = {
    "1": "Abeg wetin dey happen for this side, my people no dey hear anything since morning o.",
    "2": "How far, I dey come your side tomorrow make we yarn small about the matter wey dey ground.",
    "3": "The weather has been lovely this week and we have all been outside a lot with the dogs.",
    "4": "O ônibus atrasou de novo e a gente ficou uma hora esperando no ponto debaixo de chuva.",
    "5": "O autocarro atrasou-se outra vez e estivemos uma hora à espera na paragem debaixo de chuva.",
    "6": "Na so we see am o, everybody just dey look as if dem never chop since yesterday.",
}
AUTHOR = "somebody"
LABELS = {"1": "pcm", "2": "pcm", "3": "en", "4": "pt-BR", "5": "pt-PT", "6": "pcm"}


@pytest.fixture
def which(tmp_path):
    path = tmp_path / "which.toml"
    path.write_text(WHICH + ADDED, encoding="utf-8")
    return path


@pytest.fixture
def kind_file(tmp_path):
    path = tmp_path / "is_it.toml"
    path.write_text('base = "verify"\n' + ADDED, encoding="utf-8")
    return path


@pytest.fixture
def small_task(make_task, which):
    """small_task([("pt", "pt", "pt")]) opens a task of the file with a post for each of these votes."""

    def make(entries, name="small", **fields):
        kind = read_kind(which)
        return make_task(entries, name=name, kind=kind, **{"labels": list(kind.labels)} | fields)

    return make


@pytest.fixture
def corpus(db, tmp_path):
    rows = tmp_path / "posts.jsonl"
    rows.write_text(
        "".join(
            json.dumps({"id": key, "text": text, "author": AUTHOR, "posted_at": f"2014-0{key}-15"}) + "\n"
            for key, text in POSTS.items()
        ),
        encoding="utf-8",
    )
    call_command("import_corpus", "naija", str(rows), licence="CC0-1.0", text_may_leave=True, verbosity=0)
    call_command("prelabel", "naija", processes=1, verbosity=0)


def forget():
    """Clear caches, as in a new process."""
    kind_of.cache_clear()
    LANGUAGES.data = {code: language for code, language in LANGUAGES.data.items() if code in LISTED}


def label_all(client, annotator, task, label_of=LABELS.get):
    """Answer all units through the API with the posts' own labels."""
    client.force_login(annotator.user)
    by_text = {text: key for key, text in POSTS.items()}
    while lease := client.post(f"/api/v1/tasks/{task}/next/").json()["lease"]:
        label = label_of(by_text[lease["text"]])
        sent = client.post(f"/api/v1/leases/{lease['id']}/judge/", {"label": label}, content_type="application/json")
        assert sent.status_code == 200, sent.json()


# --- routing


def test_agreement_on_a_code_that_varieties_stand_under_settles_nothing_there(small_task, make_task):
    unit = small_task([("pt", "pt", "pt")]).units.get()
    assert (unit.stage, unit.candidates, unit.language) == (stages.QUEUED, ["pt"], "pt")
    other = make_task([("pt", "pt", "pt")], labels=["en", "pt"]).units.get()
    assert (other.stage, other.label) == (stages.AGREED, "pt")
    # Nor where code and variety are both labels.
    both = small_task([("pt", "pt", "pt"), ("en", "en", "en")], name="both", labels=["en", "pt", "pt-BR"])
    assert [unit.stage for unit in both.units.order_by("position")] == [stages.QUEUED, stages.AGREED]


def test_what_detectors_call_portuguese_goes_to_readers_of_either_variety_unless_a_route_parts_them(small_task, person):
    ana, rui = person("ana", "pt-BR"), person("rui", "pt-PT")
    for reader in (ana, rui):
        task = small_task([("pt", "pt en", "pt")], name=reader.user.username)
        assert take(reader, task).unit == task.units.get()
    assert take(person("eve", "en"), small_task([("pt", "pt en", "pt")], name="other")) is None
    LanguageRoute.objects.create(language="pt-PT", queue="pt-PT")
    task = small_task([("pt", "pt", "pt")])
    assert task.units.get().language == "pt"
    assert take(rui, task) is None
    assert take(ana, task)


def test_a_route_may_name_what_a_tasks_file_adds(small_task, person, client, manager):
    client.force_login(manager)
    row = {"language": "en", "queue": "en", "extra_candidates": "pcm"}
    LanguageRoute.objects.filter(language="en").delete()
    page = client.post("/manage/routes/new/", row | {"extra_candidates": "qaa"})
    assert "&#x27;qaa&#x27; is not a known language code" in page.text
    small_task([], name="earlier")
    forget()
    assert client.post("/manage/routes/new/", row).status_code == 302
    task = small_task([("en", "en de", "de en")])
    assert task.units.get().candidates == ["en", "pcm"]
    eve, amaka = person("eve", "en"), person("amaka", "pcm")
    client.force_login(eve.user)
    lease = client.post("/api/v1/tasks/small/next/").json()["lease"]
    assert client.post(f"/api/v1/leases/{lease['id']}/skip/", content_type="application/json").status_code == 200
    assert take(amaka, task).unit.language == "pcm"
    client.force_login(manager)
    forget()
    assert "Nigerian Pidgin" in client.get(f"/manage/tasks/{task.name}/").text


def test_labels_are_offered_with_name_and_autonym_whatever_happens_to_the_file(small_task, which, person, client):
    small_task([("en", "en de", "de en")])
    which.unlink()
    client.force_login(person("amaka", "en pcm").user)
    forget()
    page = client.post("/tasks/small/start/", headers={"HX-Request": "true"}).text
    for shown in (
        '<span>Nigerian Pidgin<small lang="pcm">Naijá</small></span>',
        'Brazilian Portuguese<small lang="pt-BR">português brasileiro',
    ):
        assert shown in page


# --- people


def people(tmp_path, languages="pcm:5 en:5"):
    path = tmp_path / "people.csv"
    path.write_text(f"username,name,languages\namaka,Amaka,{languages}\n", encoding="utf-8")
    return path


def test_people_read_what_a_tasks_file_adds_and_before_that_it_is_said_how(tmp_path, small_task, which):
    with pytest.raises(CommandError, match=r"in a table \[languages\.CODE\]"):
        call_command("add_annotators", people(tmp_path, "qaa:5 en:5"))
    table = people(tmp_path)
    small_task([])
    forget()
    call_command("add_annotators", table, verbosity=0)
    levels = Annotator.objects.get().languages
    assert dict(levels.values_list("language", "level")) == {"pcm": 5, "en": 5}
    # They may be entered before the task with the same file.
    levels.all().delete()
    Task.objects.all().delete()
    forget()
    call_command("add_annotators", table, languages=which, verbosity=0)
    assert levels.filter(language="pcm").exists()
    which.write_text(WHICH, encoding="utf-8")
    with pytest.raises(CommandError, match=r"which\.toml contains no table \[languages\.CODE\]"):
        call_command("add_annotators", table, languages=which)


def test_an_added_code_that_is_not_known_is_looked_for_in_one_statement(small_task, django_assert_num_queries):
    small_task([], name="first")
    small_task([], name="second")
    forget()
    with django_assert_num_queries(1):
        assert is_language("pcm")
        assert is_language("pt-BR")
    with django_assert_num_queries(1):
        assert not is_language("xx")


def test_a_kind_or_a_task_without_the_file_does_not_know_what_another_adds(
    small_task, make_task, corpus, client, manager, which
):
    small_task([])
    with pytest.raises(CommandError, match=r"'qaa': unknown language code.*To add a language"):
        call_command("open_task", "t", size=2, labels=["qaa"], corpus="naija", seed="1", verbosity=0)
    client.force_login(manager)
    page = client.post(f"/manage/tasks/{make_task([]).name}/settings/change/", {"labels": "de pt-BR"})
    assert "The language pt-BR is defined only in another task" in page.text
    with pytest.raises(TaskError):  # decoys are for verification
        with_defaults(read_kind(which), {"decoy_share": 0.5})


def test_a_task_lists_any_language_by_its_code_alone(corpus, person, client, manager, tmp_path):
    call_command("add_annotators", people(tmp_path, "pcm_Latn:5 eng:5"), verbosity=0)
    call_command(
        "open_task", "t", size=6, labels=["eng", "pcm_Latn", "rus_Latn"], corpus="naija", seed="1", verbosity=0
    )
    task, amaka = Task.objects.get(), Annotator.objects.get()
    assert task.labels == ["en", "pcm", "ru-Latn"]
    assert dict(amaka.languages.values_list("language", "level")) == {"pcm": 5, "en": 5}
    client.force_login(amaka.user)
    page = client.post("/tasks/t/start/", headers={"HX-Request": "true"}).text
    assert "Nigerian Pidgin" in page
    assert "Russian (Latin)" in page
    # A manager's form keeps languages that its list does not suggest.
    client.force_login(manager)
    page = client.get(f"/manage/accounts/{amaka.pk}/").text
    assert 'name="language" value="pcm"' in page


def test_two_tasks_cannot_call_a_code_differently(small_task, corpus, tmp_path):
    small_task([])
    forget()
    path = tmp_path / "other.toml"
    path.write_text(WHICH + ADDED.replace("Nigerian Pidgin", "Naija"), encoding="utf-8")
    with pytest.raises(CommandError, match="pcm was already added as 'Nigerian Pidgin'"):
        call_command("open_task", "t", kind=str(path), corpus="naija", seed="1", size=2, verbosity=0)
    assert not Task.objects.filter(name="t").exists()


# --- the whole way


@pytest.fixture
def predicted(corpus, which, tmp_path):
    """A classifier that is right on all posts except the last, which it labels English."""
    path = tmp_path / "mine.tsv"
    path.write_text("".join(f"{key}\t{'en' if key == '6' else label}\n" for key, label in LABELS.items()))
    call_command("import_predictions", "naija", str(path), name="mine", version="1", languages=which, verbosity=0)
    forget()
    return path


@pytest.fixture
def labelled(predicted, which, person, client, monkeypatch):
    """A task of the file in which two readers labelled all posts: one confirms the other's labels."""
    monkeypatch.setattr(language, "LEAST_LETTERS", 1000)
    options = {**NO_CHECKS, "corpus": "naija", "seed": "1", "verbosity": 0}
    call_command("open_task", "which", kind=str(which), size=6, **options)
    for reader in [person(name, "en pcm pt-BR pt-PT") for name in ("amaka", "bola")]:
        label_all(client, reader, "which")
    task = Task.objects.get(name="which")
    assert dict(task.units.values_list("item__key", "label")) == LABELS
    return task


def test_what_is_added_is_exported_with_its_name_and_measured(labelled, predicted, tmp_path):
    def evaluated(predictions, **options):
        forget()
        call_command("evaluate", predictions, gold=[out], out=tmp_path / "report", verbosity=0, **options)
        report = json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
        return accuracy(report)["value"], (tmp_path / "report" / "report.md").read_text(encoding="utf-8")

    forget()
    out, coarse = tmp_path / "gold", tmp_path / "mine2.tsv"
    call_command("export_gold", "which", out=out, verbosity=0)
    assert "| pcm | Nigerian Pidgin | 3 |" in (out / "README.md").read_text(encoding="utf-8")
    added = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["task"]["added_languages"]
    assert added["pcm"] == {"name": "Nigerian Pidgin", "autonym": "Naijá", "script": "Latn"}
    assert added["pt-PT"]["under"] == "pt"
    right, report = evaluated(predicted)
    assert right == pytest.approx(5 / 6)
    assert "Nigerian Pidgin" in report
    # A predictor that says Portuguese alone is right on both varieties.
    coarse.write_text("".join(f"{key}\t{label[:2] if '-' in label else label}\n" for key, label in LABELS.items()))
    shutil.rmtree(tmp_path / "report")
    assert evaluated(coarse, map=["pt=pt-BR,pt-PT"])[0] == 1.0


@pytest.mark.parametrize("design", ["recall", "precision"])
def test_what_is_added_is_drawn_for_by_predictions_and_verified(predicted, kind_file, person, client, design):
    more = ["--history", "2014-01-01..2014-02-01"] if design == "recall" else []
    window = ["--window", "2014-02-01..2014-07-01", "--size", "9"]
    drawn = ["--corpus", "naija", "--seed", "1", "--predictor", "mine", "--languages", "pcm", *window, *more]
    call_command("open_task", "is_it", "--kind", str(kind_file), "--design", design, *drawn, verbosity=0, **NO_CHECKS)
    task = Task.objects.get(name="is_it")
    assert task.title == "Is this post in Nigerian Pidgin?"
    assert set(task.units.values_list("asked", "language")) == {("pcm", "pcm")}
    forget()
    amaka = person("amaka", "pcm")
    client.force_login(amaka.user)
    page = client.post("/tasks/is_it/start/", headers={"HX-Request": "true"}).text
    assert '<span>Is this <b>Nigerian Pidgin</b>?</span> <small lang="pcm">Naijá</small>' in page
    label_all(client, amaka, "is_it", label_of=lambda key: "pcm" if LABELS[key] == "pcm" else "not-pcm")
    by_author = {"2": "pcm", "3": "not-pcm", "4": "not-pcm", "5": "not-pcm", "6": "pcm"}
    labels = dict(task.units.values_list("item__key", "label"))
    assert labels == (by_author if design == "recall" else {"2": "pcm"})


def decoys(labelled, kind_file, name):
    """Return the labels of the decoys for each language."""
    options = {"corpus": "naija", "seed": "1", "predictor": "mine", "decoy_share": 1.0, "verbosity": 0}
    drawn = {"design": "precision", "languages": ["pcm", "pt-BR"], "size": 9}
    call_command("open_task", name, kind=str(kind_file), **drawn, **options)
    labels = {}
    for unit in Task.objects.get(name=name).units.exclude(known_answer="").select_related("item"):
        assert unit.known_answer == f"not-{unit.asked}"
        labels.setdefault(unit.asked, set()).add(LABELS[unit.item.key])
    return labels


def test_decoys_of_an_added_language_are_what_may_be_taken_for_it_and_no_variety_of_the_code_that_is_asked(
    labelled, kind_file
):
    """The other variety, since detectors call both Portuguese; of Pidgin, which no detector names, what the routes say
    it is like.
    """
    labels = decoys(labelled, kind_file, "before")
    assert labels.keys() == {"pt-BR"}
    assert "pt-BR" not in labels["pt-BR"]
    LanguageRoute.objects.update_or_create(language="en", defaults={"queue": "en", "extra_candidates": ["pcm"]})
    labels = decoys(labelled, kind_file, "after")
    assert labels.keys() == {"pcm", "pt-BR"}
    assert "pcm" not in labels["pcm"]
    # A post in Brazilian Portuguese is Portuguese, and the answer of one task is used in another.
    drawn = {"corpus": "naija", "seed": "1", "design": "precision", "predictor": "cld2", "languages": ["pt"], "size": 9}
    call_command("open_task", "is_pt", decoy_share=1.0, reuse=True, verbosity=0, **drawn)
    units = Task.objects.get(name="is_pt").units.filter(item__key__in=["4", "5"])
    assert not units.exclude(known_answer="").exists()
    assert set(units.values_list("stage", "label")) == {("LABELLED", "pt")}
