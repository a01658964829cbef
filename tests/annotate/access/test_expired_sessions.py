"""Where the log-in leads after a form was sent in a session that had ended."""

import re

import pytest

from tests.annotate.access.addresses import FORMS

pytestmark = pytest.mark.slow


def test_the_log_in_never_leads_to_an_address_that_only_takes_forms(world):
    for name in FORMS:
        for headers in (
            {},
            {"Referer": f"http://testserver{world.address(name)}"},
            {"Referer": "https://evil.example/"},
        ):
            told = world.client("nobody", headers=headers).post(world.address(name), {"a": "b"})
            assert told.status_code == 302, name
            [back] = re.findall(r"^/login/\?next=(.*)$", told["Location"])
            statuses = {world.client(who).get(back).status_code for who in ("ann", "ada", "manager")}
            assert statuses & {200, 302}, (name, back)
            assert 405 not in statuses, (name, back)
