"""The log-in's pages in a real browser: what people do there, and whether everybody can."""

import pytest
from django.contrib.auth.tokens import default_token_generator
from django.core.cache import cache
from django.urls import reverse
from django.utils.http import urlsafe_base64_encode
from knox.models import AuthToken

from annotate.work import accounts
from tests.annotate.test_for_everybody import wrong

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
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
    # The browser notes an answer that is no success.
    assert [error for error in console_errors if "429" not in error] == []
    assert len(console_errors) == 1
    console_errors.clear()


def test_whoever_typed_too_many_wrong_passwords_gets_in_by_a_new_link(page, person, console_errors):
    ann = person("ann", "de")
    lock(page, console_errors)
    assert page.inner_text("h1") == "Too many wrong passwords"
    assert "In 30 minutes you can try again." in page.inner_text("main")
    page.goto(reverse("invite", args=[accounts.invite(ann)]))
    set_password(page)
    page.wait_for_selector("text=Log out")
    page.click("button:has-text('Log out')")
    log_in(page, "ann", NEW)
    page.wait_for_selector("text=Log out")


def test_the_pages_of_the_log_in_are_for_everybody(new_page, person, console_errors, settings):
    settings.MAIL = True
    cache.clear()
    ann, bea = person("ann", "de"), person("bea", "de")
    AuthToken.objects.create(bea.user)
    page, signed_in, found = new_page(), new_page(user=bea.user), {}

    def look_at(page, told):
        assert told in page.inner_text("main")
        found[told] = wrong(page)

    page.goto("/login/")
    look_at(page, "Log in")
    log_in(page, "ann", "wrong")
    look_at(page, "Forgotten your password?")
    lock(page, console_errors, "nobody")
    look_at(page, "Too many wrong passwords")
    page.goto("/forgotten/")
    look_at(page, "User name or mail address")
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
    look_at(signed_in, "A token works for 90 days")
    assert {name: faults for name, faults in found.items() if faults} == {}
