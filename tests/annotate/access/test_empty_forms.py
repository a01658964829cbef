"""A form without fields changes nothing, unless its address alone says what is to be done."""

import pytest
from django.apps import apps
from django.db import transaction

from tests.annotate.access.addresses import API, PAGES, WHO

pytestmark = pytest.mark.slow


# Buttons without fields: the address names the act and what it is done to.
BUTTONS = {
    *("logout", "start", "pause", "undo", "sheet-start", "qualification-practice", "qualification-test"),
    *("reply-read", "note-read", "unsettle", "manage-lift", "manage-route-remove"),
    *("manage-job-cancel", "manage-job-again", "manage-job-remove"),
    *("api-next", "api-undo", "api-skip", "api-release", "api-practise", "api-test", "api-unsettle"),
}
OF_THE_SERVER = ("sessions.session", "axes.accessattempt", "axes.accesslog", "axes.accessfailurelog")


def rows():
    models = [model for model in apps.get_models() if model._meta.label_lower not in OF_THE_SERVER]
    return {model._meta.label: sorted(model.objects.values_list(), key=repr) for model in models}


@pytest.mark.parametrize("who", [*WHO[1:], "clerk"])
def test_a_form_without_fields_changes_nothing(world, who):
    client, changed = world.client(who), {}
    before = rows()
    for name in sorted({*PAGES, *API} - BUTTONS):
        json = {"content_type": "application/json"} if name.startswith("api-") else {}
        with transaction.atomic():
            answer = client.post(world.address(name), {}, **json)
            if answer.status_code not in (403, 404, 405):
                after = rows()
                told = [label for label in before if before[label] != after[label]]
                if told:
                    changed[name] = (answer.status_code, told)
            transaction.set_rollback(True)
    assert changed == {}
