"""Tokens of the API: how long they work, and who renews them."""

from datetime import timedelta

from django.test import Client
from django.urls import reverse
from django.utils import timezone
from knox.models import AuthToken

from tests.annotate.accounts.acts import tasks_by


def test_a_token_works_for_ninety_days_and_its_owner_sees_until_when(ann):
    token, key = AuthToken.objects.create(ann)
    assert timedelta(days=89) < token.expiry - timezone.now() <= timedelta(days=90)
    client = Client()
    client.force_login(ann)
    page = client.get(reverse("account")).text
    assert f"{token.expiry:%Y-%m-%d}" in page
    assert "A token works for 90 days" in page
    AuthToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    page = client.get(reverse("account")).text
    assert "expired" in page
    assert 'name="renew"' not in page
    assert tasks_by(key) == 401


def test_its_owner_renews_a_token_and_nobody_else_does(ann, person):
    token, key = AuthToken.objects.create(ann)
    soon = timezone.now() + timedelta(days=1)
    for who, renewed in ((person("bea", "de").user, False), (ann, True)):
        AuthToken.objects.update(expiry=soon)
        client = Client()
        client.force_login(who)
        client.post(reverse("account"), {"renew": token.token_key})
        token.refresh_from_db()
        assert (token.expiry > soon) is renewed
        assert tasks_by(key) == 200


def test_an_expired_token_is_not_renewed(ann):
    token, key = AuthToken.objects.create(ann)
    AuthToken.objects.update(expiry=timezone.now() - timedelta(days=1))
    client = Client()
    client.force_login(ann)
    client.post(reverse("account"), {"renew": token.token_key})
    assert tasks_by(key) == 401
