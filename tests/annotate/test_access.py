"""Who may ask for what: every address of the site, by every kind of person; and what an answer never tells."""

import json
import re

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from knox.models import AuthToken

from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Annotator, Judgment, Task, Trial
from annotate.quality.qualification import next_question
from annotate.work import accounts
from annotate.work.adjudication import settle
from annotate.work.judging import judge, skip
from annotate.work.queue import take, take_sheet
from tests.annotate.acts import answer, begin
from tests.annotate.conftest import DISPUTED
from tests.annotate.hands import sent

# Nobody; an account that is not an annotator's; the annotator whose lease, judgment and token the request names;
# another annotator; an adjudicator, whose settled unit it names; a manager, who is no annotator.
WHO = ("nobody", "guest", "ann", "bea", "ada", "manager")

# address: (GET by each of WHO), (POST by each of WHO). 302 of nobody is to the login; 405: the address takes no such
# request. 404 and 409 tell another annotator no more than that the thing is not theirs; the API's undo names none.
PAGES = {
    "home": ((302, 200, 200, 200, 200, 200), (302, 405, 405, 405, 405, 405)),
    "login": ((200, 200, 200, 200, 200, 200), (200, 200, 200, 200, 200, 200)),
    "logout": ((302, 405, 405, 405, 405, 405), (302, 302, 302, 302, 302, 302)),
    "invite": ((200, 200, 200, 200, 200, 200), (302, 302, 302, 302, 302, 302)),
    "account": ((302, 200, 200, 200, 200, 200), (302, 200, 200, 200, 200, 200)),
    "queue": ((302, 403, 200, 200, 200, 403), (302, 405, 405, 405, 405, 405)),
    "start": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 302, 302, 403)),
    "judge": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 404, 404, 403)),
    "undo": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 409, 409, 403)),
    "pause": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 302, 302, 403)),
    "sheet": ((302, 403, 200, 200, 200, 403), (302, 405, 405, 405, 405, 405)),
    "sheet-start": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 302, 302, 403)),
    # Of a sheet the rest is saved: what another annotator's is not is said on the page.
    "sheet-judge": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 200, 200, 403)),
    "answers": ((302, 403, 200, 200, 200, 403), (302, 405, 405, 405, 405, 405)),
    "guidelines": ((302, 403, 200, 200, 200, 200), (302, 405, 405, 405, 405, 405)),
    # Bea has not practised yet, and Ada reads no language of the task.
    "qualification": ((302, 403, 200, 200, 403, 403), (302, 405, 405, 405, 405, 405)),
    "qualification-practice": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 302, 403, 403)),
    "qualification-test": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 409, 403, 403)),
    "qualification-answer": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 404, 404, 403)),
    "adjudication": ((302, 403, 403, 403, 200, 403), (302, 405, 405, 405, 405, 405)),
    "adjudicate": ((302, 403, 403, 403, 200, 403), (302, 403, 403, 403, 302, 403)),
    "unsettle": ((302, 405, 405, 405, 405, 405), (302, 403, 403, 403, 302, 403)),
    **dict.fromkeys(
        ["manage", *(f"manage-{page}" for page in ("task", "people", "tests", "agreement", "rule", "person"))],
        ((302, 403, 403, 403, 403, 200), (302, 405, 405, 405, 405, 405)),
    ),
    "manage-lift": ((302, 405, 405, 405, 405, 405), (302, 403, 403, 403, 403, 302)),
    "manage-pause": ((302, 405, 405, 405, 405, 405), (302, 403, 403, 403, 403, 302)),
    "manage-void": ((302, 403, 403, 403, 403, 200), (302, 403, 403, 403, 403, 302)),
    "favicon.ico": ((302, 302, 302, 302, 302, 302), (302, 302, 302, 302, 302, 302)),
}
API = {
    "api-docs": ((200, 200, 200, 200, 200, 200), (405, 405, 405, 405, 405, 405)),
    "api-schema": ((200, 200, 200, 200, 200, 200), (405, 405, 405, 405, 405, 405)),
    "api-tasks": ((401, 403, 200, 200, 200, 403), (401, 405, 405, 405, 405, 405)),
    "api-progress": ((401, 403, 200, 200, 200, 403), (401, 405, 405, 405, 405, 405)),
    "api-next": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 200, 200, 403)),
    "api-undo": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 200, 409, 403)),
    "api-judge": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 404, 404, 403)),
    "api-skip": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 404, 404, 403)),
    "api-release": ((401, 405, 405, 405, 405, 405), (401, 403, 204, 404, 404, 403)),
    "api-qualification": ((401, 403, 200, 200, 200, 403), (401, 405, 405, 405, 405, 405)),
    "api-practise": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 200, 403, 403)),
    "api-test": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 409, 403, 403)),
    "api-answer": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 404, 404, 403)),
}
# The admin's addresses by a few of them: all are behind the same gate, which lets staff in.
ADMIN = {
    "admin:index": (302, 302, 302, 302, 302, 200),
    "admin:annotate_task_changelist": (302, 302, 302, 302, 302, 200),
    "admin:annotate_annotator_changelist": (302, 302, 302, 302, 302, 200),
    "admin:annotate_annotator_import": (302, 302, 302, 302, 302, 200),
    "admin:annotate_unit_changelist": (302, 302, 302, 302, 302, 200),
    "admin:annotate_judgment_changelist": (302, 302, 302, 302, 302, 200),
    "admin:annotate_judgment_add": (302, 302, 302, 302, 302, 403),
    "admin:annotate_task_reroute": (302, 302, 302, 302, 302, 403),
    "admin:auth_user_changelist": (302, 302, 302, 302, 302, 200),
}
# What a logged-in person can post by a form of ours.
FORMS = (
    *("logout", "account", "start", "judge", "undo", "pause", "sheet-start", "sheet-judge"),
    *("adjudicate", "unsettle"),
    *("manage-lift", "manage-pause", "manage-void"),
    *("qualification-practice", "qualification-test", "qualification-answer"),
)


class World:
    """A task in the middle of its work, and for each address the arguments and the fields that name Ann's things."""

    def __init__(self, make_task, make_records_task, person, manager):
        self.task = task = make_task([DISPUTED] * 7, rounds=1)
        ann, bea = person("ann", "de"), person("bea", "de")
        ada = person("ada", adjudicates=True)
        guest = User.objects.create_user("guest", password="a long password")
        skip(ann, take(ann, task).pk)
        skip(ann, take(ann, task).pk)
        self.waiting, settled = task.units.filter(stage=stages.ADJUDICATION)
        settle(ada, settled.pk, Answer("en", "I read the language"))
        judgment = judge(ann, take(ann, task).pk, Answer("de", comment="a comment of Ann's"))
        judge(bea, take(bea, task).pk, Answer("en", comment="a comment of Bea's"))
        AuthToken.objects.create(ann.user)
        lease = take(ann, task)
        asking = make_task([DISPUTED] * 3, name="asking", asked="de")
        on_sheet = take_sheet(ann, asking)
        crowd = make_records_task(languages=["de"], gold={"practice": ["1"], "test": ["1", "0"]}, test_items=2)
        practice = begin(ann, crowd, "de", Trial.PRACTICE)
        answer(ann, next_question(practice).pk, "1")
        question = next_question(begin(ann, crowd, "de", Trial.TEST))
        invited = Annotator.objects.create(user=User.objects.create_user("ivy"))
        self.who = {
            "nobody": None,
            "guest": guest,
            "ann": ann.user,
            "bea": bea.user,
            "ada": ada.user,
            "manager": manager,
        }
        self.arguments = {
            "invite": [accounts.invite(invited)],
            **{name: [task.name] for name in ("queue", "start", "judge", "undo", "pause", "answers", "guidelines")},
            **{name: [asking.name] for name in ("sheet", "sheet-start", "sheet-judge")},
            **{f"manage-{page}": [task.name] for page in ("task", "people", "tests", "agreement", "rule")},
            **{f"manage-{page}": [task.name, ann.pk] for page in ("person", "lift", "pause", "void")},
            "adjudication": [task.name],
            "adjudicate": [task.name, self.waiting.pk],
            "unsettle": [task.name, settled.pk],
            **{name: [task.name] for name in ("api-progress", "api-next", "api-undo")},
            **{name: [lease.pk] for name in ("api-judge", "api-skip", "api-release")},
            "api-qualification": [crowd.name],
            **{name: [crowd.name, "de"] for name in ("api-practise", "api-test", "qualification")},
            **{f"qualification-{name}": [crowd.name, "de"] for name in ("practice", "test", "answer")},
            "api-answer": [question.pk],
            "admin:annotate_task_reroute": [task.pk],
        }
        self.fields = {
            "login": {"username": "ann", "password": "wrong"},
            "invite": {"new_password1": "quite a long one", "new_password2": "quite a long one"},
            "account": {"make": "1"},
            "judge": {"lease": lease.pk, "answer": "de"},
            "undo": {"judgment": judgment.pk},
            "sheet-judge": {"lease": [each.pk for each in on_sheet]}
            | {f"answer-{each.pk}": "not-de" for each in on_sheet},
            "adjudicate": {"label": "de", "reason": "I read the language"},
            **{name: {"reason": "asleep"} for name in ("manage-pause", "manage-void")},
            "api-judge": {"label": "de"},
            "api-answer": {"label": "1"},
            "qualification-answer": {"question": question.pk, "answer": "1"},
        }

    def address(self, name):
        return "/favicon.ico" if name == "favicon.ico" else reverse(name, args=self.arguments.get(name))

    def client(self, who, **options):
        client = Client(**options)
        if user := self.who[who]:
            client.force_login(user)
        return client

    def send(self, client, method, name):
        if method == "GET":
            return client.get(self.address(name))
        json = {"content_type": "application/json"} if name.startswith("api-") else {}
        return client.post(self.address(name), self.fields.get(name, {}), **json)

    def statuses(self, name, method):
        """Each person's answer, every time in the same world."""
        found = []
        for who in WHO:
            with transaction.atomic():
                found.append(self.send(self.client(who), method, name).status_code)
                transaction.set_rollback(True)
        return tuple(found)


@pytest.fixture
def world(make_task, make_records_task, person, manager):
    return World(make_task, make_records_task, person, manager)


def addresses(patterns):
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield pattern.name or str(pattern.pattern)
        elif pattern.namespace != "admin":
            yield from addresses(pattern.url_patterns)


def test_the_tables_have_every_address():
    assert sorted(addresses(get_resolver().url_patterns)) == sorted([*PAGES, *API])


@pytest.mark.parametrize("name", [*PAGES, *API])
def test_who_may_ask_for_what(world, name):
    asked, posted = (PAGES | API)[name]
    assert dict(zip(WHO, world.statuses(name, "GET"), strict=True)) == dict(zip(WHO, asked, strict=True))
    assert dict(zip(WHO, world.statuses(name, "POST"), strict=True)) == dict(zip(WHO, posted, strict=True))


def test_the_admin_is_the_managers(world):
    assert {name: world.statuses(name, "GET") for name in ADMIN} == ADMIN


def test_nobody_is_sent_to_the_login_and_back(world):
    for name in set(PAGES) - {"login", "logout", "invite", "favicon.ico"}:
        assert world.client("nobody").get(world.address(name)).url == f"/login/?next={world.address(name)}", name


def test_a_token_opens_what_a_session_opens(world):
    for who in WHO[1:]:
        headers = {"Authorization": f"Token {AuthToken.objects.create(world.who[who])[1]}"}
        for name, (asked, posted) in API.items():
            with transaction.atomic():
                assert Client().get(world.address(name), headers=headers).status_code == asked[WHO.index(who)]
                answer = Client().post(
                    world.address(name), world.fields.get(name, {}), content_type="application/json", headers=headers
                )
                assert answer.status_code == posted[WHO.index(who)], (who, name)
                transaction.set_rollback(True)


# --- forms, headers, cookies, tokens


def test_a_form_without_the_token_against_forged_requests_is_refused(world):
    forms = {name: "ada" if name in ("adjudicate", "unsettle") else "ann" for name in FORMS}
    forms |= {name: "manager" for name in FORMS if name.startswith("manage-")}
    forms |= {"login": "nobody", "invite": "nobody"}
    takes_posts = {name for name, (_, posted) in PAGES.items() if set(posted[1:]) != {405}} - {"favicon.ico"}
    assert set(forms) == takes_posts
    for name, who in forms.items():
        answer = world.send(world.client(who, enforce_csrf_checks=True), "POST", name)
        assert answer.status_code == 403, name
    assert not Judgment.objects.filter(unit=world.waiting, kind="settle").exists()


def test_the_api_with_a_session_asks_for_that_token_too(world):
    client = world.client("ann", enforce_csrf_checks=True)
    for name, (_, posted) in API.items():
        if posted[2] != 405:
            assert world.send(client, "POST", name).status_code == 403, name


def policy(response):
    parts = (part.split() for part in response["Content-Security-Policy"].split(";"))
    return {name: set(sources) for name, *sources in parts}


def test_every_answer_forbids_scripts_of_others_and_scripts_in_the_page(world):
    for who in ("nobody", "ada", "manager"):
        client = world.client(who)
        for name in (*PAGES, *API, *ADMIN):
            rules = policy(world.send(client, "GET", name))
            assert rules["default-src"] == {"'self'"}, name
            assert rules.get("script-src", {"'self'"}) == {"'self'"}, name
            assert rules["form-action"] == rules.get("connect-src", {"'self'"}) == {"'self'"}, name
            assert (rules["object-src"], rules["frame-ancestors"]) == ({"'none'"}, {"'none'"}), name
            relaxed = {"'self'", "'unsafe-inline'"} if name == "api-docs" else {"'self'"}
            assert rules.get("style-src", {"'self'"}) == relaxed, name


def test_no_page_has_a_script_or_a_style_in_it(world):
    for name in (*PAGES, *API):
        page = world.send(world.client("ada"), "GET", name)
        if page["Content-Type"].startswith("text/html"):
            scripts = re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", page.text)
            assert scripts == [], name
            assert not re.search(r"<[^>]+\son[a-z]+=", page.text), name
            if name != "api-docs":
                assert not re.search(r"<style|<[^>]+\sstyle=", page.text), name


def test_the_session_cookie_is_for_the_server_alone(world, settings):
    answer = Client().post("/login/", {"username": "ann", "password": "a long password"})
    cookie = answer.cookies["sessionid"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert settings.SESSION_COOKIE_SECURE == settings.CSRF_COOKIE_SECURE == settings.HTTPS


def test_tokens_are_stored_as_hashes(world):
    stored, token = AuthToken.objects.create(world.who["ann"])
    assert token not in {str(value) for value in vars(stored).values()}
    assert stored.token_key == token[: len(stored.token_key)]
    assert len(stored.token_key) < len(token) / 2 < len(stored.digest)


def tasks_by(token):
    return Client().get("/api/v1/tasks/", headers={"Authorization": f"Token {token}"}).status_code


def test_a_token_that_was_revoked_is_refused(world):
    client = world.client("ann")
    page = client.post("/account/", {"make": "1"})
    token = re.search(r"<code>(\w{40,})</code>", page.text)[1]
    assert tasks_by(token) == 200
    assert token not in client.get("/account/").text
    client.post("/account/", {"revoke": AuthToken.objects.get(token_key=token[:15]).token_key})
    assert tasks_by(token) == 401


def test_nobody_revokes_the_token_of_somebody_else(world):
    stored, token = AuthToken.objects.create(world.who["ann"])
    world.client("bea").post("/account/", {"revoke": stored.token_key})
    assert tasks_by(token) == 200


def test_who_is_locked_out_is_out_at_once(world):
    client, (_, token) = world.client("ann"), AuthToken.objects.create(world.who["ann"])
    accounts.set_active(Annotator.objects.filter(user=world.who["ann"]), False)
    assert client.get("/").url == "/login/?next=/"
    assert world.send(client, "POST", "judge").url.startswith("/login/")
    assert world.send(client, "POST", "api-judge").status_code == 401
    assert tasks_by(token) == 401
    again = Client().post("/login/", {"username": "ann", "password": "a long password"})
    assert again.status_code == 200


# --- what annotators are not told


def keys(value):
    """Every key of a JSON value, as paths."""
    if isinstance(value, dict):
        return {f"{key}{rest}" for key, inner in value.items() for rest in keys(inner) | {""}}
    if isinstance(value, list):
        return {f".{rest}" for inner in value for rest in keys(inner)}
    return {""}


JUDGMENT = {"id", "kind", "label", "reason", "comment", "answered_at", "active_seconds"}
PROGRESS = {"answered_today", "skipped_today", "waiting"}
LEASE = {"id", "text", "language", "fields", "asked", "answers", "names", "autonyms", "expires_at"}
TASK = {"name", "title", "type", "labels", "languages", "guidelines", "version", "progress"}
STANDING = {"language", "state", "version", "guidelines", "tries_left"}
QUESTION = {"id", "number", "of", "fields", "answers"}
ANSWERED = {"accepted", "right", "label", "explanation", "result"}
RESULT = {"kind", "passed", "right", "asked", "needed", "missed"}
NEXT = {"lease": LEASE, "why": None}


def test_the_api_tells_exactly_this(world):
    client = world.client("ann")
    *_, task = client.get("/api/v1/tasks/").json()
    assert set(task) == TASK
    assert set(task["progress"]) == set(world.send(client, "GET", "api-progress").json()) == PROGRESS
    given = world.send(client, "POST", "api-next").json()
    assert {key: set(value) if isinstance(value, dict) else None for key, value in given.items()} == NEXT
    assert set(world.send(client, "POST", "api-judge").json()) == JUDGMENT
    reopened = world.send(client, "POST", "api-undo").json()
    assert {key: set(value) if isinstance(value, dict) else None for key, value in reopened.items()} == NEXT
    skipped = client.post(f"/api/v1/leases/{reopened['lease']['id']}/skip/", content_type="application/json")
    assert set(skipped.json()) == JUDGMENT
    refused = client.post("/api/v1/leases/0/skip/", content_type="application/json")
    assert set(refused.json()) == {"code", "detail"}
    (standing,) = world.send(client, "GET", "api-qualification").json()
    assert set(standing) == STANDING
    for name in ("api-practise", "api-test"):
        begun = world.send(client, "POST", name).json()
        assert (set(begun), set(begun["question"])) == ({"question", "result"}, QUESTION)
    said = world.send(client, "POST", "api-answer").json()
    assert (set(said), {name for name, value in said.items() if value is not None}) == (ANSWERED, {"accepted"})


def test_the_schema_names_nothing_else(world):
    text = Client().get("/api/v1/schema/?format=json").text
    schemas = json.loads(text)["components"]["schemas"]
    assert {name: set(schema["properties"]) for name, schema in schemas.items() if "properties" in schema} == {
        "Answer": {"label", "reason", "comment", "active_seconds"},
        "Answered": ANSWERED,
        "Judgment": JUDGMENT,
        "Lease": LEASE,
        "Missed": {"fields", "said", "label", "explanation"},
        "Next": {"lease", "why"},
        "Progress": PROGRESS,
        "Question": QUESTION,
        "Refusal": {"code", "detail"},
        "Result": RESULT,
        "Skip": {"active_seconds"},
        "Standing": STANDING,
        "Task": TASK,
        "Trial": {"question", "result"},
        "TrialAnswer": {"label"},
    }
    assert not re.search("votes|visited|candidate|pseudonym|stage|round|redundancy|detector", text)


def without_what_may_differ(html, lease):
    html = re.sub(r'(name="csrfmiddlewaretoken" value=")\w+', r"\1", html)
    return html.replace(f'name="lease" value="{lease}"', 'name="lease" value=""')


def all_an_annotator_sees(task, annotator, answer="fr"):
    """Every page and answer on the way of one unit, but for the form's token and the lease's number."""
    client = Client()
    client.force_login(annotator.user)
    path = f"/tasks/{task.name}"
    seen = [client.post(f"{path}/start/", headers={"HX-Request": "true"}).text]
    lease = re.search(r'name="lease" value="(\d+)"', seen[0])[1]
    seen.append(client.get(f"{path}/").text)
    given = client.post(f"/api/v1{path}/next/").json()
    assert str(given["lease"].pop("id")) == lease
    assert given["lease"].pop("expires_at")
    seen.append(json.dumps(given))
    seen.append(client.post(f"{path}/judge/", {"lease": lease, **sent(answer)}, headers={"HX-Request": "true"}).text)
    answers = client.get(f"{path}/answers/").text
    answers = re.sub(r'name="judgment" value="\d+"|\d\d:\d\d:\d\d', "", answers)
    seen += [answers, client.get("/").text, client.get(f"{path}/guidelines/").text]
    seen = [without_what_may_differ(html, lease).replace(f"/{task.name}/", "/task/") for html in seen]
    return [re.sub(rf"(<small>|· ){task.name}(</small>| ·)", r"\1task\2", html) for html in seen]


def test_nothing_that_an_annotator_sees_depends_on_votes_queue_round_stage_or_other_people(make_task, person):
    ann = person("ann", "de fr")
    others = [person("bea", "de", adjudicates=True), person("cem", "de")]
    plain = {"text": "the same text", "letters": 40}
    alike = [
        {"votes": ("de en", "en de", "de"), **plain},
        {"votes": ("fr en", "en fr he", "fr"), **plain},
        {"votes": ("he", "ar", "en"), "author": "a1b2", "url": "https://example.org/1", **plain},
    ]
    seen = []
    for number, entry in enumerate(alike):
        task = make_task([{"key": f"alike-{number}", **entry}], name=f"alike{number}", redundancy=2, skip_limit=3)
        if number == 2:
            task.units.update(language="fr", round=2, visited=["he", "fr"])
        if number == 0:
            judge(others[0], take(others[0], task).pk, Answer("en", comment="a comment of Bea's"))
            task.rounds = 4
            task.save()
        seen.append(all_an_annotator_sees(task, ann))
        Task.objects.filter(pk=task.pk).update(is_open=False)
    for page, *others_of_it in zip(*seen, strict=True):
        assert [page] * 2 == others_of_it


AUDITED = {"votes": ("de", "de", "de"), "text": "the same text", "letters": 40}
PLAIN = {"votes": DISPUTED, "text": "the same text", "letters": 40}


def seen_alone(make_task, annotator, entry, answer, **fields):
    """A task of one unit, and what the annotator sees of it: until the answer, when it is taken back, on a sheet."""
    name = f"task{Task.objects.count()}"
    task = make_task([{"key": name, **entry}], name=name, **fields)
    found = all_an_annotator_sees(task, annotator, answer)
    client = Client()
    client.force_login(annotator.user)
    for address in ("undo/", *(["sheet/start/"] if fields.get("asked") else [])):
        page = client.post(f"/tasks/{name}/{address}", headers={"HX-Request": "true"}).text
        lease = re.search(r'name="lease" value="(\d+)"', page)[1]
        page = without_what_may_differ(page, lease).replace(f'-{lease}"', '-"').replace(f"/{name}/", "/task/")
        found.append(page)
    Task.objects.filter(pk=task.pk).update(is_open=False)
    return task.units.get(), found


@pytest.mark.parametrize("answer", ["de", "fr", "und mixed"])
def test_an_audited_unit_is_like_any_other(make_task, person, answer):
    ann = person("ann", "de fr")
    kinds = [(PLAIN, {}), *((AUDITED, {"audit_least": 1, "audit_recheck": recheck}) for recheck in (0, 1))]
    (plain, first), *others = [seen_alone(make_task, ann, entry, answer, **fields) for entry, fields in kinds]
    assert [(plain.audited, plain.recheck)] + [(unit.audited, unit.recheck) for unit, _ in others] == [
        (False, False),
        (True, False),
        (True, True),
    ]
    for _, pages in others:
        assert pages == first


@pytest.mark.parametrize("answer", ["de", "not-de", "und mixed"])
def test_a_decoy_is_like_any_other_unit_one_by_one_and_on_a_sheet(make_task, person, answer):
    ann = person("ann", "de")
    (plain, first), (decoy, second) = [
        seen_alone(make_task, ann, entry, answer, asked="de", decoys=decoys)
        for entry, decoys in ((PLAIN, 0), (AUDITED, 1))
    ]
    assert (plain.known_answer, decoy.known_answer) == ("", "not-de")
    assert second == first


def test_whoever_verifies_sees_nothing_of_votes_others_or_known_answers(make_task, person):
    ann, bea = person("ann", "de"), person("bea", "de")
    task = make_task([DISPUTED] * 3, asked="de", decoys=1, redundancy=2)
    for _ in range(3):
        judge(bea, take(bea, task).pk, Answer("not-de", comment="a comment of Bea's"))
    told = "\n".join(all_an_annotator_sees(task, ann, "de"))
    client = Client()
    client.force_login(ann.user)
    told += client.post("/tasks/task/sheet/start/", headers={"HX-Request": "true"}).text
    assert told.count('class="posts"') == 1
    for word in (*stages.STAGES, "Bea", "langid", "cld2", "fasttext", "predictor", "decoy", "gold", "audit", "agreed"):
        assert word not in told, word
    assert all(annotator.pseudonym not in told for annotator in Annotator.objects.all())


def two_records(make_records_task, annotator, *, hidden):
    """A task that gives the annotator two records which say the same each time, the first of them a honeypot or not."""
    for number in range(40):
        name = f"{'hidden' if hidden else 'plain'}{number}"
        gold = {"queue": ["1"], "test": ["0"], "practice": ["1"]} if hidden else {}
        task = make_records_task("qa_match", 1 if hidden else 2, name=name, gold=gold, gold_share=0.5 if hidden else 0)
        lease = take(annotator, task)
        if lease.unit.honeypot == hidden:
            break
        # By the lot of its name, the honeypot would come second.
        Task.objects.filter(pk=task.pk).update(is_open=False)
    for unit, text in zip([lease.unit, *task.units.exclude(pk=lease.unit_id)], ("first", "second"), strict=True):
        unit.item.fields = {"question": f"the {text}?", "passage": f"the {text}."}
        unit.item.text = "\n".join(unit.item.fields.values())
        unit.item.save()
    return task


@pytest.mark.parametrize("answer", ["1", "0"])
def test_a_honeypot_is_like_any_other_record(make_records_task, person, answer):
    ann, bea, seen = person("ann", "en"), person("bea", "en"), []
    for hidden in (False, True):
        task = two_records(make_records_task, ann, hidden=hidden)
        judge(bea, take(bea, task).pk, Answer("0", comment="a comment of Bea's"))
        found = all_an_annotator_sees(task, ann, answer)
        client = Client()
        client.force_login(ann.user)
        # taken back, then skipped, then gone through to the end
        for address, fields in (("undo", {}), ("judge", {"skip": "1"}), ("judge", {"answer": "1"})):
            lease = ann.leases.filter(unit__task=task, closed_at=None).first()
            page = client.post(
                f"/tasks/{task.name}/{address}/", {"lease": lease.pk, **fields}, headers={"HX-Request": "true"}
            ).text
            found.append(without_what_may_differ(page, "").replace(f"/{task.name}/", "/task/"))
        found.append(json.dumps(client.get(f"/api/v1/tasks/{task.name}/progress/").json()))
        seen.append([re.sub(r'name="lease" value="\d+"', "", page) for page in found])
        Task.objects.filter(pk=task.pk).update(is_open=False)
    for first, second in zip(*seen, strict=True):
        assert first.splitlines() == second.splitlines()
    told = "\n".join(seen[1])
    assert told.count("the first?") > 3
    for word in (*stages.STAGES, "Bea", "Because of", "honeypot", "gold", "known", "explanation"):
        assert word not in told, word
    assert all(annotator.pseudonym not in told for annotator in Annotator.objects.all())


def test_no_page_of_an_annotator_names_others_or_anything_of_the_machine(world):
    client = world.client("ann")
    pages = [world.send(client, "GET", name).text for name in ("home", "queue", "answers", "guidelines", "account")]
    pages.append(client.post("/tasks/task/start/", headers={"HX-Request": "true"}).text)
    told = "\n".join(pages)
    assert "a comment of Ann&#x27;s" in told
    assert "Bea" not in told
    for annotator in Annotator.objects.all():
        assert annotator.pseudonym not in told
    for word in (*stages.STAGES, "langid", "cld2", "fasttext", "candidate"):
        assert word not in told, word


# --- the home page


def test_tasks_of_the_same_title_are_told_apart_by_their_names(make_task, person, client):
    for name in ("july", "august"):
        make_task([DISPUTED], name=name)
    client.force_login(person("ann", "de").user)
    home = client.get("/").text
    assert re.findall(r"<h2>(.*?)</h2>", home) == [
        f"Which language? <small>{name}</small>" for name in Task.objects.values_list("name", flat=True)
    ]
    assert "Which language? · july · " in client.get("/tasks/july/answers/").text
    assert {str(task) for task in Task.objects.all()} == {"Which language? (july)", "Which language? (august)"}


def test_where_nothing_waits_the_home_page_urges_nobody(make_task, person, client):
    task, both, ann = make_task([DISPUTED], rounds=1), person("both", "en", adjudicates=True), person("ann", "de")
    client.force_login(both.user)
    home = client.get("/").text
    assert "<button>Start</button>" in home
    assert 'class="button"' not in home
    assert '<a href="/tasks/task/adjudication/">Nothing to adjudicate</a>' in home
    skip(ann, take(ann, task).pk)
    home = client.get("/").text
    assert '<a class="primary" href="/tasks/task/adjudication/">Adjudicate 1</a>' in home
    assert "Nothing to adjudicate" not in home
    make_task([DISPUTED], name="more")
    client.force_login(ann.user)
    home = client.get("/").text
    assert home.count('<button class="primary">Start</button>') == 1
    assert "djudicat" not in home
