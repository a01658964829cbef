"""The manager's desk, by its real pages."""

from html.parser import HTMLParser

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from annotate.core.intervals import jeffreys
from annotate.kinds import Answer
from annotate.models import Annotator, Invite, Judgment, LanguageRoute, Task, Transition, Unit
from annotate.work import accounts
from annotate.work.accounts import add_annotators
from annotate.work.adjudication import settle
from annotate.work.judging import judge, skip
from annotate.work.languages import HOW
from annotate.work.people_file import Row
from annotate.work.queue import take
from corpora.models import Corpus, Draw
from tests.annotate.conftest import AGREED, DISPUTED

MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
RECORDS = [Unit, Judgment, Corpus, Draw, LogEntry]
HEADER = "username,name,languages\n"


class Page(HTMLParser):
    """What of a page its content security policy forbids, and its text."""

    def __init__(self, response):
        super().__init__()
        self.forbidden, self.words = [], []
        self.feed(response.content.decode())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.forbidden.append("inline script")
        if tag == "style":
            self.forbidden.append("inline style sheet")
        for name, value in attributes:
            if name.startswith("on") or name == "style" or (value or "").strip().lower().startswith("javascript:"):
                self.forbidden.append(f"<{tag} {name}={value!r}>")

    def handle_data(self, data):
        self.words += data.split()

    @property
    def text(self):
        return " ".join(self.words)


def address(model, view, *arguments):
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{view}", args=arguments)


@pytest.fixture
def desk(client, manager):
    """The client, signed in as a superuser."""
    client.force_login(manager)
    return client


def page(desk, path, **data):
    response = desk.get(path, data)
    assert response.status_code == 200, path
    return Page(response)


@pytest.fixture
def world(make_task, person):
    """A task with something of everything in it: answered, skipped, settled, open, agreed, copied."""
    task = make_task(
        [DISPUTED, DISPUTED, AGREED, ("fr", "fr", "he"), *[{"votes": DISPUTED, "text": "<b>same</b>"}] * 2]
    )
    ann, ada = person("ann", "de:5 en:4"), person("ada", adjudicates=True)
    judge(ann, take(ann, task).pk, Answer("und", "several", "<script>alert(1)</script>"), 3)
    passed = skip(ann, take(ann, task).pk)
    settle(ada, passed.unit_id, Answer("en", "looked it up"))
    take(ann, task)
    accounts.invite(ann)
    return task


def form_of(desk, path):
    """What the browser would send of the form on an admin page, unchanged."""
    context = desk.get(path).context
    forms = [context["adminform"].form]
    for inline in context["inline_admin_formsets"]:
        forms += [inline.formset.management_form, *inline.formset.forms]
    sent = {}
    for form in forms:
        for field in form:
            value = field.field.prepare_value(field.value())
            if value is not None and value is not False:
                sent[field.html_name] = value
    return sent


def errors(response):
    assert response.status_code == 200
    context = response.context
    forms = [context["adminform"].form, *(f for i in context["inline_admin_formsets"] for f in i.formset.forms)]
    return [error for form in forms for fault in form.errors.values() for error in fault]


# --- every page


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_list_and_every_record_can_be_opened_and_runs_no_inline_script(desk, world, model):
    assert page(desk, address(model, "changelist")).forbidden == []
    for key in model._default_manager.values_list("pk", flat=True):
        assert page(desk, address(model, "change", key)).forbidden == []
    if admin.site._registry[model].has_add_permission(desk.get(reverse("admin:index")).wsgi_request):
        assert page(desk, address(model, "add")).forbidden == []


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_list_can_be_searched_and_opened_while_there_is_nothing_in_it(desk, db, model):
    LanguageRoute.objects.all().delete()
    page(desk, address(model, "changelist"))
    if admin.site._registry[model].search_fields:
        page(desk, address(model, "changelist"), q="nothing")


def test_the_other_pages_of_the_admin_run_no_inline_script_either(desk, world):
    annotator = Annotator.objects.first()
    for path in (
        reverse("admin:index"),
        reverse("admin:app_list", args=["annotate"]),
        reverse("admin:password_change"),
        reverse("admin:annotate_annotator_import"),
        address(Annotator, "history", annotator.pk),
        address(LanguageRoute, "delete", LanguageRoute.objects.first().pk),
    ):
        assert page(desk, path).forbidden == [], path
    desk.logout()
    assert page(desk, reverse("admin:login")).forbidden == []


def test_what_people_wrote_is_shown_as_text(desk, world):
    judgment = Judgment.objects.exclude(comment="").get()
    assert "<script>alert(1)</script>" in page(desk, address(Judgment, "change", judgment.pk)).text


def test_lists_can_be_searched_for_what_managers_look_for(desk, world):
    assert "1 result" in page(desk, address(Annotator, "changelist"), q="ann").text
    assert "1 result" in page(desk, address(Annotator, "changelist"), q="de").text
    assert "2 results" in page(desk, address(Unit, "changelist"), q="same").text


# --- who may


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_staff_without_permissions_see_no_list(client, world, model):
    client.force_login(User.objects.create_user("staff", is_staff=True))
    assert client.get(address(model, "changelist")).status_code == 403


def test_staff_without_permissions_cannot_import_reroute_or_open_a_task(client, world):
    client.force_login(User.objects.create_user("staff", is_staff=True))
    table = SimpleUploadedFile("people.csv", (HEADER + "eve,Eve,de\n").encode())
    assert client.post(reverse("admin:annotate_annotator_import"), {"table": table}).status_code == 403
    assert client.post(reverse("admin:annotate_task_reroute", args=[world.pk])).status_code == 403
    assert client.get(address(Task, "change", world.pk)).status_code == 403
    assert not User.objects.filter(username="eve").exists()


def test_annotators_and_strangers_are_sent_to_the_login(client, person, world):
    for user in (None, person("bob", "de").user):
        if user:
            client.force_login(user)
        for path in (reverse("admin:index"), reverse("admin:annotate_annotator_import")):
            reply = client.get(path)
            assert reply.status_code == 302
            assert "/login/" in reply.url


def test_staff_who_may_only_look_at_annotators_cannot_make_links_or_lock_out(client, world):
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_annotator"))
    client.force_login(staff)
    before = list(Invite.objects.values())
    for action in ("send_invites", "revoke_invites", "lock_out", "let_in"):
        run(client, action, Annotator.objects.all())
    assert list(Invite.objects.values()) == before
    assert not User.objects.filter(is_active=False).exists()


def test_a_manager_who_is_no_superuser_cannot_take_over_one_by_an_invite(client, manager):
    [(boss, _)] = add_annotators([Row("manager", "The Boss", {"de": 5})])
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(*Permission.objects.filter(codename__in=["view_annotator", "change_annotator"]))
    client.force_login(staff)
    for action in ("send_invites", "lock_out"):
        text = Page(run(client, action, [boss])).text
        assert "Only a superuser can do this to the account of a manager." in text
    assert not Invite.objects.exists()
    manager.refresh_from_db()
    assert manager.is_active


# --- records


@pytest.mark.parametrize("model", RECORDS, ids=lambda model: model.__name__)
def test_records_can_be_looked_at_and_not_changed(desk, world, model):
    LogEntry.objects.log_actions(User.objects.get(username="manager").pk, LanguageRoute.objects.all()[:1], 2)
    before = list(model.objects.order_by("pk").values())
    record = model.objects.first()
    assert desk.get(address(model, "add")).status_code == 403
    assert desk.post(address(model, "add"), {"label": "en"}).status_code == 403
    assert desk.post(address(model, "change", record.pk), {"label": "en", "name": "x"}).status_code == 403
    assert desk.post(address(model, "delete", record.pk), {"post": "yes"}).status_code == 403
    everything = model.objects.values_list("pk", flat=True)
    desk.post(
        address(model, "changelist"), {"action": "delete_selected", "_selected_action": everything, "post": "yes"}
    )
    assert list(model.objects.order_by("pk").values()) == before


def test_judgments_and_transitions_cannot_be_changed_on_the_page_of_their_unit(desk, world):
    unit = Unit.objects.filter(judgments__kind="answer").first()
    text = page(desk, address(Unit, "change", unit.pk)).text
    assert "several" in text
    assert "disputed" in text
    before = list(Judgment.objects.values()), list(Transition.objects.values())
    sent = {"judgments-TOTAL_FORMS": 1, "judgments-INITIAL_FORMS": 1, "judgments-0-id": unit.judgments.get().pk}
    desk.post(address(Unit, "change", unit.pk), {**sent, "judgments-0-label": "en", "judgments-0-DELETE": "on"})
    assert (list(Judgment.objects.values()), list(Transition.objects.values())) == before


@pytest.mark.parametrize("model", [Task, Annotator])
def test_tasks_and_people_cannot_be_deleted(desk, world, model):
    record = model.objects.first()
    assert desk.post(address(model, "delete", record.pk), {"post": "yes"}).status_code == 403
    assert model.objects.filter(pk=record.pk).exists()


def test_the_account_of_somebody_who_has_judged_cannot_be_deleted(desk, world):
    ann = User.objects.get(username="ann")
    desk.post(address(User, "delete", ann.pk), {"post": "yes"})
    assert User.objects.filter(pk=ann.pk).exists()


def test_who_changed_which_setting_is_kept(desk, db):
    route = LanguageRoute.objects.get(language="hi")
    path = address(LanguageRoute, "change", route.pk)
    desk.post(path, form_of(desk, path) | {"queue": "ur"})
    text = page(desk, address(LogEntry, "changelist")).text
    assert "manager" in text
    assert "hi → ur" in text
    assert LogEntry.objects.get().get_change_message() == "Changed Queue."


# --- languages and routing


def test_routes_show_what_waits_beside_who_reads_it(desk, make_task, person):
    make_task([("hi", "hi en", "en")] * 3 + [("zh", "zh", "zh")])
    make_task([("hi", "hi en", "en")], name="other")
    make_task([("fr", "fr en", "en")], name="closed", is_open=False)
    person("priya", "hi")
    person("asha", "hi")
    shown = page(desk, address(LanguageRoute, "changelist")).text
    assert "hi Hindi hi hi-Latn" in shown
    assert "und no language seen en" in shown
    assert "hi hi 3 0 asha, priya" in shown
    assert "hi hi 1 0 asha, priya" in shown
    assert "fr fr" not in shown


def test_routes_warn_where_something_waits_and_nobody_reads(desk, make_task):
    make_task([("zh", "zh", "zh")])
    shown = page(desk, address(LanguageRoute, "changelist")).text
    assert "zh zh-CN zh-TW 1 0 nobody 1 lack readers: add some, or send it on" in shown


def test_a_route_can_be_added_and_its_codes_are_kept_as_a_list(desk, db):
    sent = {"language": "pt", "queue": "es", "extra_candidates": "gl, ca", "never_agree": "on"}
    assert desk.post(address(LanguageRoute, "add"), sent).status_code == 302
    route = LanguageRoute.objects.get(language="pt")
    assert (route.queue, route.extra_candidates, route.never_agree) == ("es", ["gl", "ca"], True)
    path = address(LanguageRoute, "change", route.pk)
    assert form_of(desk, path)["extra_candidates"] == "gl ca"
    assert desk.post(path, form_of(desk, path)).status_code == 302
    route.refresh_from_db()
    assert route.extra_candidates == ["gl", "ca"]
    assert LogEntry.objects.latest("pk").get_change_message() == "No fields changed."


@pytest.mark.parametrize("field", ["language", "queue", "extra_candidates"])
def test_an_unknown_code_is_refused_wherever_one_is_typed(desk, db, field):
    sent = {"language": "pt", "queue": "pt", "extra_candidates": "gl"} | {field: "xx"}
    assert errors(desk.post(address(LanguageRoute, "add"), sent)) == [f"'xx' {HOW}."]
    assert not LanguageRoute.objects.filter(language="pt").exists()


def test_there_is_no_second_route_of_a_language(desk, db):
    told = errors(desk.post(address(LanguageRoute, "add"), {"language": "hi", "queue": "en"}))
    assert told == ["Language route with this Language already exists."]


# --- people


def annotator_form(desk, annotator, **changes):
    path = address(Annotator, "change", annotator.pk)
    return desk.post(path, form_of(desk, path) | changes)


def test_languages_are_added_on_the_page_of_an_annotator(desk, person):
    ann = person("ann", "de:5")
    reply = annotator_form(desk, ann, **{"languages-1-language": "en", "languages-1-level": 4})
    assert reply.status_code == 302
    assert sorted(map(str, ann.languages.all())) == ["de:5", "en:4"]


@pytest.mark.parametrize(
    ("language", "level", "told"),
    [
        (
            "xx",
            5,
            f"'xx' {HOW}.",
        ),
        ("en", 6, "Ensure this value is less than or equal to 5."),
        ("en", -1, "Ensure this value is greater than or equal to 0."),
    ],
)
def test_a_wrong_language_of_an_annotator_is_refused(desk, person, language, level, told):
    ann = person("ann", "de:5")
    reply = annotator_form(desk, ann, **{"languages-1-language": language, "languages-1-level": level})
    assert errors(reply) == [told]
    assert list(map(str, ann.languages.all())) == ["de:5"]


def test_an_annotator_is_made_of_an_account_and_stays_with_it(desk, person):
    eve = User.objects.create_user("eve")
    path = address(Annotator, "add")
    assert desk.post(path, form_of(desk, path) | {"user": eve.pk, "languages-0-language": "de"}).status_code == 302
    annotator = Annotator.objects.get(user=eve)
    assert list(map(str, annotator.languages.all())) == ["de:5"]
    annotator_form(desk, annotator, user=User.objects.create_user("ann").pk)
    annotator.refresh_from_db()
    assert annotator.user == eve


def upload(desk, content):
    table = SimpleUploadedFile("people.csv", content if isinstance(content, bytes) else content.encode())
    return desk.post(reverse("admin:annotate_annotator_import"), {"table": table})


def test_a_table_of_annotators_is_imported_and_the_links_are_shown_once(desk, person, client):
    person("old", "de")
    reply = upload(desk, "\ufeff" + HEADER + "ann,Ann Lee,de:5\nold,Old One,en\n")
    shown = Page(reply)
    assert shown.forbidden == []
    [link] = [word for word in shown.words if word.startswith("http://testserver/invite/")]
    assert "updated; has an account already" in shown.text
    assert link.split("/")[-2] not in desk.get(reverse("admin:annotate_annotator_import")).content.decode()
    assert list(map(str, Annotator.objects.get(user__username="old").languages.all())) == ["en:5"]
    desk.logout()
    assert "Welcome, Ann Lee" in client.get(link.removeprefix("http://testserver")).content.decode()


def test_a_bad_table_says_all_its_faults_and_changes_nothing(desk, person):
    old = person("old", "de")
    shown = Page(upload(desk, HEADER + "old,Old,en\nb b,Bob,de\ncleo,Cleo,xx\ndora,Dora,de:9\n")).text
    for line in ("Line 3:", "Line 4:", "Line 5:", "Nothing was changed."):
        assert line in shown
    assert list(map(str, old.languages.all())) == ["de:5"]
    assert Annotator.objects.count() == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ((HEADER + "zoe,Zoé,fr\n").encode("latin-1"), "The file is not UTF-8. Save it as “CSV UTF-8”."),
        ((HEADER + "zoe,Zoé,fr\n").encode("utf-16"), "The file is not UTF-8. Save it as “CSV UTF-8”."),
        (b"", "The submitted file is empty."),
        (HEADER, "The table has no rows."),
        ("name\nAnn\n", "The first line must name the columns"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(desk, db, content, told):
    assert told in Page(upload(desk, content)).text
    assert not Annotator.objects.exists()


def test_an_upload_without_a_file_is_refused(desk, db):
    assert (
        "This field is required."
        in Page(desk.post(reverse("admin:annotate_annotator_import"), {"csrfmiddlewaretoken": "x"})).text
    )


def run(desk, action, annotators):
    sent = {"action": action, "_selected_action": [annotator.pk for annotator in annotators]}
    return desk.post(address(Annotator, "changelist"), sent, follow=True)


def test_links_are_made_for_the_selected_and_earlier_ones_stop_working(desk, person):
    ann, bob = person("ann", "de"), person("bob", "en")
    before = accounts.invite(ann)
    kept = accounts.invite(bob)
    shown = Page(run(desk, "send_invites", [ann]))
    assert shown.forbidden == []
    [link] = [word for word in shown.words if word.startswith("http://testserver/invite/")]
    assert accounts.find_invite(link.split("/")[-2]).annotator == ann
    assert accounts.find_invite(kept).annotator == bob
    assert desk.get(reverse("invite", args=[before])).status_code == 404


def test_links_are_revoked_and_counted(desk, person):
    ann, bob = person("ann", "de"), person("bob", "en")
    token = accounts.invite(ann)
    assert "1 link revoked." in Page(run(desk, "revoke_invites", [ann, bob])).text
    assert desk.get(reverse("invite", args=[token])).status_code == 404
    assert "revoked" in page(desk, address(Annotator, "changelist")).text


def test_people_are_locked_out_and_let_in_again(desk, person):
    ann = person("ann", "de")
    assert "Locked out." in Page(run(desk, "lock_out", [ann])).text
    ann.user.refresh_from_db()
    assert not ann.user.is_active
    run(desk, "let_in", [ann])
    ann.user.refresh_from_db()
    assert ann.user.is_active


def test_the_list_says_what_somebody_reads_has_judged_and_how_their_invite_stands(desk, world):
    ann = Annotator.objects.get(user__username="ann")
    shown = page(desk, address(Annotator, "changelist")).text
    assert "de:5 en:4" in shown
    assert f"open until {ann.invites.get().expires_at:%Y-%m-%d}" in shown
    found = admin.site._registry[Annotator].get_queryset(None).get(pk=ann.pk)
    assert found.live_judgments == 2
    ann.invites.update(expires_at=ann.invites.get().created_at)
    assert "expired" in page(desk, address(Annotator, "changelist")).text


# --- tasks


def test_a_tasks_page_shows_its_stages_and_queues(desk, world):
    shown = page(desk, address(Task, "change", world.pk)).text
    assert "2 queued" in shown
    assert "de de 1 1 ann" in shown  # queue, labels, waiting, open now, readers
    assert "fr fr 1 0 nobody 1 lack readers: add some, or send it on" in shown
    assert "Send on units that lack readers" in shown
    assert "fr (1)" in page(desk, address(Task, "changelist")).text


@pytest.fixture
def failed(make_task, person):
    """A task of two languages whose audit is done; German was wrong each time, and the limit let it pass."""
    task = make_task([AGREED] * 12 + [("fr",) * 3] * 8, name="audited", audit_least=4, audit_recheck=0, audit_limit=1)
    ann, ada = person("ann", "de fr"), person("ada", adjudicates=True)
    while lease := take(ann, task):
        judge(ann, lease.pk, Answer("fr"))
    for unit in task.units.filter(stage="ADJUDICATION"):
        settle(ada, unit.pk, Answer("en", "I read it"))
    return task


def test_a_tasks_page_shows_what_its_audit_found(desk, failed):
    shown = page(desk, address(Task, "change", failed.pk))
    assert shown.forbidden == []
    assert "The detectors agree on 20 posts. 8 of these were chosen by lot" in shown.text
    low, high = (100 * end for end in jeffreys(4, 4))
    assert f"de German 12 4 of 4 100.0% [{low:.1f}, {high:.1f}]" in shown.text
    assert "fr French 8 4 of 4 0.0% [0.0, " in shown.text
    assert "Where the detectors agree and are wrong" in shown.text  # the plot
    assert "over the limit" not in shown.text


def test_a_lower_limit_shows_what_is_over_it_and_the_button_has_people_label_that(desk, failed, manager):
    assert task_form(desk, failed, audit_limit=0.6, audit_share=0.9, audit_least=1, audit_recheck=1).status_code == 302
    failed.refresh_from_db()
    assert (failed.audit_limit, failed.audit_share, failed.audit_least, failed.audit_recheck) == (0.6, 0, 4, 0)
    shown = page(desk, address(Task, "change", failed.pk))
    assert shown.forbidden == []
    assert "Over the task’s limit: de. Have people label the languages over the limit" in shown.text
    assert "more than 60% may be wrong" in shown.text
    path = reverse("admin:annotate_task_contest", args=[failed.pk])
    assert desk.get(path).status_code == 403
    assert failed.units.filter(stage="AGREED").count() == 12
    reply = desk.post(path, follow=True)
    assert "Sent to people: 8 of de." in Page(reply).text
    assert "contested: people label all of it" in Page(reply).text
    moves = Transition.objects.filter(event="contested")
    assert set(moves.values_list("unit__agreed_label", "by__username")) == {("de", "manager")}
    assert "whose audit is done, is over the limit, so nothing was sent" in Page(desk.post(path, follow=True)).text
    assert desk.post(reverse("admin:annotate_task_contest", args=[0])).status_code == 404


def test_a_page_says_where_the_audit_is_not_done_and_where_there_is_none(desk, make_task):
    waiting = make_task([AGREED] * 3, audit_least=1)
    shown = page(desk, address(Task, "change", waiting.pk)).text
    assert "de German 3 0 of 1 – [0.0, 100.0] not done yet" in shown
    without = make_task([AGREED] * 3, name="without")
    assert "no post was chosen for it when the task was opened" in page(desk, address(Task, "change", without.pk)).text
    assert "Over the task’s limit" not in page(desk, address(Task, "change", without.pk)).text


def test_queues_with_nothing_waiting_are_folded_and_come_after_the_checks(desk, make_task, person):
    task = make_task([DISPUTED, AGREED], audit_least=1)
    person("ann", "de en fr")
    shown = page(desk, address(Task, "change", task.pk)).text
    words = ("The audit of agreement", "de de 2 0 ann", "2 queues with nothing waiting", "fr fr 0 0 ann")
    places = [shown.index(word) for word in words]
    assert places == sorted(places)
    assert desk.get(address(Task, "change", task.pk)).content.count(b"<details><summary>2 queues") == 1
    assert "2 queues with nothing waiting" in page(desk, address(LanguageRoute, "changelist")).text


def test_a_page_says_what_no_adjudicator_may_decide(desk, make_task, person):
    task, both = make_task([DISPUTED], rounds=1), person("both", "de", adjudicates=True)
    skip(both, take(both, task).pk)
    told = "1 post waits for an adjudicator who has not read it; make another person an adjudicator."
    assert told in page(desk, address(Task, "change", task.pk)).text
    person("ada", adjudicates=True)
    assert "who has not read it" not in page(desk, address(Task, "change", task.pk)).text


def test_the_page_of_a_verification_shows_the_decoys(desk, make_task, person):
    task = make_task([DISPUTED] * 6, asked="de", decoys=4)
    shown = page(desk, address(Task, "change", task.pk)).text
    assert "de German 4 – –" in shown
    ann = person("ann", "de")
    while lease := take(ann, task):
        judge(ann, lease.pk, Answer("de"))
    shown = page(desk, address(Task, "change", task.pk))
    assert shown.forbidden == []
    assert "In 4 answers to them readers said Yes 4 times." in shown.text
    low, _ = jeffreys(4, 4)
    assert f"de German 4 4 of 4: 100.0% [{100 * low:.1f}, 100.0] –" in shown.text
    assert "precision draw of 6 for de from corpus, seed 1" in shown.text
    assert "Audit limit" not in shown.text


def test_what_a_verification_asks_about_cannot_be_changed(desk, make_task):
    task = make_task([DISPUTED], asked="de")
    assert task_form(desk, task, labels="fr", title="New").status_code == 302
    task.refresh_from_db()
    assert (task.labels, task.title) == (["de"], "New")


def test_units_can_be_listed_by_what_they_are_to_people_who_manage(desk, make_task):
    make_task([AGREED] * 3, audit_least=1)
    make_task([DISPUTED] * 3, name="verify", asked="de", decoys=1)
    for query, count in (
        ({"audited__exact": "1"}, 1),
        ({"asked": "de"}, 3),
        ({"decoy": "yes"}, 1),
        ({"decoy": "no"}, 5),
    ):
        noun = "units" if count != 1 else "unit"
        assert f" {count} {noun}" in page(desk, address(Unit, "changelist"), **query).text, query


def test_draws_show_for_what_and_by_whom_they_were_made(desk, make_task):
    make_task([DISPUTED], asked="de")
    assert "corpus precision de cld2 1 1 1 2" in page(desk, address(Draw, "changelist")).text


def test_annotators_see_none_of_it(client, failed):
    client.force_login(User.objects.get(username="ann"))
    for path in (
        address(Task, "change", failed.pk),
        address(Unit, "changelist"),
        address(Draw, "changelist"),
        reverse("admin:annotate_task_contest", args=[failed.pk]),
    ):
        reply = client.post(path) if "contest" in path else client.get(path)
        assert (reply.status_code, "/login/" in reply.url) == (302, True), path
    assert failed.units.filter(stage="AGREED").count() == 12


def test_staff_who_may_only_look_at_tasks_see_the_audit_and_cannot_contest(client, failed):
    failed.audit_limit = 0.6
    failed.save()
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_task"))
    client.force_login(staff)
    shown = page(client, address(Task, "change", failed.pk)).text
    assert "Over the task’s limit: de." in shown
    assert "Have people label" not in shown
    assert "Send on units" not in shown
    assert client.post(reverse("admin:annotate_task_contest", args=[failed.pk])).status_code == 403
    assert failed.units.filter(stage="AGREED").count() == 12


def test_units_are_sent_on_by_the_button_and_by_nothing_else(desk, world, person):
    person("dov", "he")
    path = reverse("admin:annotate_task_reroute", args=[world.pk])
    unit = Unit.objects.get(language="fr")
    assert desk.get(path).status_code == 403
    unit.refresh_from_db()
    assert unit.language == "fr"
    reply = desk.post(path, follow=True)
    assert reply.redirect_chain == [(address(Task, "change", world.pk), 302)]
    assert "Sent on: 1 to readers of their next language, 0 to adjudication." in Page(reply).text
    unit.refresh_from_db()
    assert unit.language == "he"
    assert unit.transitions.last().by.username == "manager"
    assert desk.post(reverse("admin:annotate_task_reroute", args=[0])).status_code == 404


def task_form(desk, task, **changes):
    path = address(Task, "change", task.pk)
    return desk.post(path, form_of(desk, path) | changes)


def test_a_tasks_knobs_can_be_changed_and_what_was_fixed_at_its_opening_cannot(desk, world):
    reply = task_form(
        desk, world, title="New", rounds=3, labels="fr de, en de", redundancy=9, least_letters=1, name="x"
    )
    assert reply.status_code == 302
    task = Task.objects.get()
    assert (task.title, task.rounds, task.labels) == ("New", 3, ["de", "en", "fr"])
    assert (task.redundancy, task.least_letters, task.name) == (1, 20, "task")
    assert LogEntry.objects.get().get_change_message() == "Changed Title, Labels and Rounds."


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"labels": "de xx"},
            f"'xx' {HOW}.",
        ),
        ({"labels": " "}, "Name at least one label."),
        ({"rounds": 0}, "Ensure this value is greater than or equal to 1."),
        ({"skip_limit": 0}, "Ensure this value is greater than or equal to 1."),
        ({"lease_minutes": 0}, "Ensure this value is greater than or equal to 1."),
        ({"least_level": 6}, "Ensure this value is less than or equal to 5."),
        ({"on_conflict": "QUEUED"}, "Select a valid choice. QUEUED is not one of the available choices."),
    ],
)
def test_a_wrong_knob_is_refused(desk, make_task, changes, told):
    task = make_task([AGREED])
    before = Task.objects.values().get()
    assert errors(task_form(desk, task, **changes)) == [told]
    assert Task.objects.values().get() == before


def test_a_task_that_is_not_there_is_not_found(desk, db):
    assert desk.get(address(Task, "change", 99)).status_code in (302, 404)
