"""Accessibility of every page and main state: axe-core finds no faults in light, dark and forced colours, at a width of
320 pixels and a zoom of 200%. Nothing is wider than the window, and no text is covered.
"""

from collections.abc import Callable

import pytest
from django.contrib.auth.tokens import default_token_generator
from django.core.cache import cache
from django.urls import reverse
from django.utils.http import urlsafe_base64_encode
from knox.models import AuthToken

from annotate.work import accounts
from tests.annotate.access.addresses import ADMIN, PAGES
from tests.annotate.access.world import World
from tests.looks import MOST_COVERED, covered, faults, set_look, sticks_out, under

# A live server empties the database after each test, so the rows of the migrations are restored for the next one.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

DESK, PHONE, ZOOMED = (1280, 800), (320, 568), (640, 400)
LOOKS = [(DESK, "light", "none"), (PHONE, "dark", "none"), (ZOOMED, "light", "active")]
# Faults of Django's own templates, which we cannot mend: their headings begin at level 2, and the content around them
# is in no region.
OF_DJANGO = ("heading-order", "region", "landmark-unique", "empty-table-header", "page-has-heading-one")


def opened(selector: str) -> Callable:
    """Return an action on a page that clicks an element."""

    def act(page):
        page.locator(selector).first.click()
        page.wait_for_load_state()

    return act


def asked_for(address: str) -> Callable:
    def act(page):
        page.goto(address)

    return act


# Fragments of pages, and files that a browser saves instead of showing them.
NO_PAGES = (
    "manage-now",
    "manage-foreseen",
    "manage-new-task-voters",
    "manage-hours",
    "manage-rejects",
    "manage-job-packed",
    "manage-job-file",
)
# The pages of the access matrix that each person opens, and further states: name -> the page, unless the action opens
# one itself, and the action that leads there.
GETS = {
    "nobody": ["docs", "docs-page"],
    "guest": ["home", "preferences"],
    "ann": [
        *("home", "languages", "queue", "sheet", "answers"),
        *("history", "change", "consent", "guidelines", "qualification"),
    ],
    "ada": ["home", "adjudication", "adjudicate"],
    "manager": [
        name
        for name, (got, _) in PAGES.items()
        if name.startswith("manage") and got[-1] == 200 and name not in NO_PAGES
    ],
}
STATES: dict[str, dict[str, tuple[str, Callable]]] = {
    "ann": {
        "reasons": ("queue", opened("#undefined summary")),
        "languages": ("queue", opened("#picker summary")),
        "flags": ("queue", opened("#flag summary")),
        "keys": ("queue", opened("#keys summary")),
        "guidelines beside the post": ("queue", opened("#guidelines summary")),
        "a marked sheet": ("sheet", opened(".marks .no")),
        "concepts": ("", asked_for("/tasks/acts/")),
        "a practice question about concepts": ("", asked_for("/tasks/tested-acts/qualification/en/")),
        "nothing waits": ("", asked_for("/tasks/crowd/")),
        "a page that is not there": ("", asked_for("/nothing/")),
        "a page that is not for her": ("", asked_for("/manage/")),
    },
    "ada": {
        "languages": ("adjudicate", opened("#picker summary")),
        "a reason chosen": ("adjudicate", opened(".reasons button")),
        "concepts": ("", lambda page: click_through(page, "/tasks/acts/adjudication/", "table.rows a")),
        "no language of the task": ("queue", lambda page: None),
    },
    "manager": {
        "agreement": ("manage-agreement", opened("text=Compute agreement")),
        "links to send": ("manage-new-accounts", lambda page: submit(page, people="eve", language="de", level="5")),
        "a person who is refused": (
            "manage-new-accounts",
            lambda page: submit(page, people="zoe", language="xx", level="5"),
        ),
        "nobody found": ("", asked_for("/manage/people/?find-everybody=nobody")),
        "a manager made": ("manage-new-manager", lambda page: submit(page, name="mia")),
        "a manager to be made of an account": ("manage-new-manager", lambda page: submit(page, name="bea")),
        "guidelines that are refused": ("manage-guidelines", lambda page: submit(page, text=" ")),
        "a setting that is refused": ("manage-settings", lambda page: submit(page, rounds="0")),
        "a route that is refused": ("manage-new-route", lambda page: submit(page, language="xx", queue="de")),
        "a question with its reply": ("", asked_for("/manage/questions/?all=1")),
    },
}


def click_through(page, address, selector):
    page.goto(address)
    opened(selector)(page)


def submit(page, **fields):
    for name, value in fields.items():
        field = page.locator(f"[name={name}]").first
        if field.evaluate("field => field.localName") == "select":
            field.select_option(value)
        else:
            field.fill(value)
    page.click("main button.primary")
    page.wait_for_load_state()


@pytest.fixture
def world(data_dir, db, live_server):
    return World()


def wrong(page, *, but=(), in_forced=()):
    """Return the problems of a page in each look, one per line. but, in_forced: rules of axe-core to ignore, always or
    in forced colours
    """
    page.wait_for_load_state()
    page.locator(".guarded").wait_for(state="detached")
    problems = [] if page.locator("h1").count() == 1 else [f"{page.locator('h1').count()} headings of the first level"]
    # The next page is checked in reverse order, and begins with the look with which this one ends.
    for look in LOOKS if page.viewport_size["width"] == DESK[0] else reversed(LOOKS):
        set_look(page, look)
        left_out = {*but, *(in_forced if look[2] == "active" else ())}
        problems += [f"{look}: {fault}" for fault in faults(page, but=left_out)]
        if sticks_out(page):
            problems.append(f"{look}: wider than the window")
        # Elements that a person has opened may cover the text.
        if page.locator("details[open]:not(.finder)").count():
            continue
        if (share := covered(page)) > MOST_COVERED:
            problems.append(f"{look}: {share:.0%} of the window's height is covered")
        if look[0] == DESK and (words := under(page, "#keys summary")):
            problems.append(f"{look}: the button for the keys lies on {words}")
    return problems


@pytest.mark.parametrize("people", [("nobody", "guest", "ada"), ("ann",), ("manager",)], ids=" ".join)
def test_every_page_is_for_everybody(world, new_page, console_errors, people):
    problems = {}
    for who in people:
        page = new_page(user=world.who[who])
        for name in GETS[who]:
            page.goto(world.address(name))
            problems[who, name] = wrong(page)
        for name, (at, act) in STATES.get(who, {}).items():
            if at:
                page.goto(world.address(at))
            act(page)
            problems[who, name] = wrong(page)
    assert {name: faults for name, faults in problems.items() if faults} == {}
    # Refusals are pages too.
    assert all(" 40" in error for error in console_errors), console_errors
    console_errors.clear()


def test_the_admin_is_as_far_as_its_styles_are_ours(world, new_page):
    page, problems = new_page(user=world.who["manager"]), {}
    for name, answers in ADMIN.items():
        if answers[-1] == 200:
            page.goto(world.address(name))
            # In forced colours, axe-core mistakes Django's header for one without contrast.
            problems[name] = wrong(page, but=OF_DJANGO, in_forced=["color-contrast"])
    assert {name: faults for name, faults in problems.items() if faults} == {}


# --- the log-in


OLD, NEW = "a long password", "quite another long one"


def log_in(page, name, password):
    page.goto("/login/")
    page.fill("[name=username]", name)
    page.fill("[name=password]", password)
    page.click("button:has-text('Log in')")


def set_password(page, password=NEW, again=None):
    page.fill("[name=new_password1]", password)
    page.fill("[name=new_password2]", again or password)
    page.click("button.primary")


def lock(page, console_errors, name="ann"):
    for _ in range(5):
        log_in(page, name, "wrong")
    # The browser logs every response that is not a success.
    assert [error for error in console_errors if "429" not in error] == []
    assert len(console_errors) == 1
    console_errors.clear()


def test_the_pages_of_the_log_in_are_for_everybody(new_page, person, console_errors, settings):
    settings.MAIL = True
    cache.clear()
    ann, bea = person("ann", "de"), person("bea", "de")
    AuthToken.objects.create(bea.user)
    page, signed_in, problems = new_page(), new_page(user=bea.user), {}

    def look_at(page, text):
        assert text in page.inner_text("main")
        problems[text] = wrong(page)

    page.goto("/login/")
    look_at(page, "Log in")
    log_in(page, "ann", "wrong")
    look_at(page, "Forgot your password?")
    lock(page, console_errors, "nobody")
    look_at(page, "Too many wrong passwords")
    page.goto("/forgotten/")
    look_at(page, "Username or mail address")
    page.fill("[name=email]", "nobody")
    page.click("text=Send the link")
    look_at(page, "a link is on its way")
    settings.MAIL = False
    page.goto("/forgotten/")
    look_at(page, "Ask your manager")
    page.goto(reverse("invite", args=[accounts.invite(ann)]))
    set_password(page, "83920174", "something else")
    look_at(page, "Welcome")
    uid = urlsafe_base64_encode(b"%d" % ann.user.pk)
    page.goto(reverse("reset", args=[uid, default_token_generator.make_token(ann.user)]))
    set_password(page, "83920174")
    look_at(page, "too short")
    page.goto(reverse("reset", args=[uid, "x-y"]))
    assert "404" in console_errors.pop()
    look_at(page, "This link has been used")
    signed_in.goto("/account/password/")
    signed_in.fill("[name=old_password]", "wrong")
    set_password(signed_in, "83920174")
    look_at(signed_in, "entered incorrectly")
    signed_in.goto("/account/")
    look_at(signed_in, "A token is valid for 90 days")
    assert {name: faults for name, faults in problems.items() if faults} == {}
