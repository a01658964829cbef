"""Functions that log in with right or wrong passwords, and that use the API with a token."""

from django.test import Client
from django.urls import reverse

OLD, NEW = "a long password", "quite another long one"
HERE, ELSEWHERE = "192.0.2.1", "198.51.100.7"
PAGES = ("login", "admin:login")


def log_in(name, password, client=None, address=HERE, page="login"):
    sent = {"username": name, "password": password}
    return (client or Client()).post(reverse(page), sent, REMOTE_ADDR=address)


def is_in(client):
    return "_auth_user_id" in client.session


def type_wrong_passwords(name, count=5, **where):
    return [log_in(name, f"wrong {number}", **where) for number in range(count)]


def tasks_by(token):
    return Client().get("/api/v1/tasks/", headers={"Authorization": f"Token {token}"}).status_code
