"""Staff with permissions only for annotators and tasks: what they may do to whom."""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.urls import reverse

from annotate.actions.registry import call_command
from annotate.core.refusals import NotFound
from annotate.models import Annotator, Qualification, Task
from annotate.work import accounts, interventions
from tests.annotate import acts
from tests.annotate.admin.desk import address
from tests.annotate.conftest import DISPUTED, make_person, records_task_maker, task_maker

pytestmark = pytest.mark.slow


# The targets: an annotator; the clerk; another staff member; a superuser; a superuser who is not staff; a locked-out
# staff member. Each is also an annotator.
WHOM = ("ann", "clerk", "colleague", "root", "rootless", "former")


def by_table(cells, columns="username,name,languages,adjudicates"):
    def send(desk, who):
        content = f"{columns}\n{who.user.username},{cells}\n".encode()
        return desk.post(reverse("manage-new-accounts"), {"file": SimpleUploadedFile("people.csv", content)})

    return send


def by_form(desk, who):
    sent = {"name": "Somebody Else", "language": "de", "level": "5", "adjudicates": "yes"}
    return desk.post(reverse("manage-account-change", args=[who.pk]), sent)


def without_a_test(desk, who):
    sent = {"annotator": who.pk, "task": Task.objects.get(name="crowd").pk, "language": "en"}
    return desk.post(address(Qualification, "add"), sent)


def by_page(page):
    return lambda desk, who: desk.post(reverse(page, args=["task", who.pk]), {"reason": "a reason"})


def by_button(act):
    return lambda desk, who: desk.post(reverse("manage-account-do", args=[who.pk]), {"do": act})


def lock(who):
    User.objects.filter(pk=who.user_id).exclude(username="clerk").update(is_active=False)


def halt(who):
    interventions.pause(who, Task.objects.get(name="task"), by=None, reason="asleep")


def nothing(who):
    pass


# action: the request, the preparation, and whether the clerk may do it to each of WHOM.
ONLY_ANN = (True, False, False, False, False, False)
ACTS = {
    "rename and requalify by a table": (by_table("New Name,en:5,"), nothing, ONLY_ANN),
    "make an adjudicator by a table": (by_table(",de:5,yes"), nothing, ONLY_ANN),
    "redirect mail by a table": (
        by_table(",de:5,me@example.org", "username,name,languages,email"),
        nothing,
        ONLY_ANN,
    ),
    "make an adjudicator by a form": (by_form, nothing, ONLY_ANN),
    "let in without a test": (without_a_test, nothing, ONLY_ANN),
    "make a link": (by_button("link"), nothing, ONLY_ANN),
    "withdraw a link": (by_button("withdraw"), nothing, ONLY_ANN),
    "lock out": (by_button("lock_out"), nothing, ONLY_ANN),
    "let in": (by_button("let_in"), lock, ONLY_ANN),
    "let go on": (by_page("manage-lift"), halt, ONLY_ANN),
    "pause": (by_page("manage-pause"), nothing, ONLY_ANN),
    "void": (by_page("manage-void"), nothing, ONLY_ANN),
}


@pytest.fixture
def people(db):
    task_maker()([DISPUTED] * 3)
    records_task_maker()(gold={"test": ["1", "0"]}, test_items=2)
    people = {name: make_person(name, "de") for name in WHOM}
    for person in people.values():
        accounts.invite(person)
    User.objects.exclude(username__in=["ann", "rootless"]).update(is_staff=True)
    User.objects.filter(username__startswith="root").update(is_superuser=True)
    User.objects.filter(username="former").update(is_active=False)
    grant("clerk", "annotate")
    return people


def grant(name, *apps):
    permissions = Permission.objects.filter(content_type__app_label__in=apps)
    User.objects.get(username=name).user_permissions.set(permissions)


def signed_in(name):
    return acts.signed_in(User.objects.get(username=name))


def state(person):
    """Return everything about a person that an act could change."""
    user = User.objects.get(pk=person.user_id)
    return (
        *(user.get_full_name(), user.email, user.is_active, user.is_staff, user.is_superuser, user.password),
        Annotator.objects.get(pk=person.pk).adjudicates,
        *map(str, person.languages.order_by("language")),
        *person.invites.order_by("pk").values_list("pk", "revoked_at"),
        *person.pauses.order_by("pk").values_list("pk", "reason", "lifted_at"),
        *person.qualifications.values_list("pk", flat=True),
    )


def done(by, act, people, name):
    """Return who was changed by the act, and the response. The database is rolled back."""
    how, before, _ = ACTS[act]
    with transaction.atomic():
        before(people[name])
        were = {username: state(people[username]) for username in WHOM}
        reply = how(signed_in(by), people[name])
        changed = {username for username in WHOM if state(people[username]) != were[username]}
        transaction.set_rollback(True)
    return changed, reply


@pytest.mark.parametrize("act", ACTS)
def test_who_may_do_what_to_whom(people, act):
    for name, may in zip(WHOM, ACTS[act][2], strict=True):
        changed, reply = done("clerk", act, people, name)
        if may:
            assert changed == {name}
        else:
            assert changed == set(), name
            assert reply.status_code == 403 or "Only superusers can change managers" in reply.text, name


def test_a_superuser_may_do_all_of_it_to_everybody(people):
    for act in ACTS:
        for name in ("ann", "colleague", "rootless"):
            changed, _ = done("root", act, people, name)
            assert name in changed, act


@pytest.mark.parametrize("name", ["clerk", "root", "rootless"])
def test_staff_with_some_rights_make_no_annotators_of_themselves_or_of_superusers(people, name):
    Annotator.objects.filter(user__username=name).delete()
    desk, sent = signed_in("clerk"), {"people": name, "language": "de", "level": "5"}
    assert "Only superusers can change managers" in desk.post(reverse("manage-new-accounts"), sent).text
    by_table("Me,de:5,")(desk, people[name])
    assert not Annotator.objects.filter(user__username=name).exists()


def account_form(desk, user, **changes):
    path = address(User, "change", user.pk)
    joined = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    return desk.post(path, {"username": user.username, "is_active": "on", **joined, **changes})


def test_staff_who_may_change_accounts_give_no_rights_and_change_no_manager(people):
    grant("clerk", "annotate", "auth")
    desk = signed_in("clerk")
    for name in WHOM[1:]:
        user = people[name].user
        assert account_form(desk, user, is_superuser="on", is_staff="on", first_name="Mine").status_code == 403, name
        sent = {"password1": "quite a long one", "password2": "quite a long one", "usable_password": "true"}
        assert desk.post(reverse("admin:auth_user_password_change", args=[user.pk]), sent).status_code == 403, name
        assert desk.post(address(User, "delete", user.pk), {"post": "yes"}).status_code == 403, name
    boss = User.objects.create_superuser("boss")  # not an annotator, so no answers refer to them
    chosen = {"action": "delete_selected", "_selected_action": [boss.pk], "post": "yes"}
    assert desk.post(address(User, "changelist"), chosen).status_code == 403
    ann = people["ann"].user
    assert account_form(desk, ann, is_superuser="on", is_staff="on", first_name="Anna").status_code == 302
    ann.refresh_from_db()
    assert (ann.first_name, ann.is_staff, ann.is_superuser) == ("Anna", False, False)
    group = Group.objects.create(name="all")
    assert desk.post(address(Group, "change", group.pk), {"name": "mine"}).status_code == 403
    assert desk.post(address(Group, "add"), {"name": "mine"}).status_code == 403
    assert desk.get(address(Group, "changelist")).status_code == 200


def raised_by_the_command(user):
    call_command("add_manager", user.username, "--yes")


def raised_by_the_admin(user):
    assert account_form(signed_in("root"), user, is_staff="on").status_code == 302


@pytest.mark.parametrize("raised", [raised_by_the_command, raised_by_the_admin])
def test_a_link_made_for_an_annotator_opens_no_managers_account(people, raised):
    token = accounts.invite(people["ann"])
    raised(people["ann"].user)
    assert User.objects.get(username="ann").is_staff
    with pytest.raises(NotFound):
        accounts.find_invite(token)


def test_the_page_of_a_person_offers_staff_only_what_they_may_do(people):
    desk = signed_in("clerk")
    for name, may in zip(WHOM, ONLY_ANN, strict=True):
        page = desk.get(reverse("manage-person", args=["task", people[name].pk])).text
        assert ("Reason for the pause" in page) is may, name
