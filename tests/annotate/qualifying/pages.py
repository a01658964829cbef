"""The pages before the work, as a person and a client without a browser use them."""

import re

from tests.annotate.acts import begin
from tests.annotate.qualifying.trials import go_through

HTMX = {"HX-Request": "true"}
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
PATH = "/tasks/crowd/qualification/en/"


def practised(annotator, task, language="en"):
    go_through(annotator, task, "practice", language=language)
    return begin(annotator, task, language, "test")


def words(html):
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", html))


def says(client, question, label, **headers):
    return client.post(f"{PATH}answer/", {"question": question.pk, "answer": label}, headers=headers)
