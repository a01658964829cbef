"""The pages of the admin, as a manager gets and sends them."""

from html.parser import HTMLParser

from django.urls import reverse

from annotate.models import Annotator

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


def page(desk, path, **data):
    response = desk.get(path, data)
    assert response.status_code == 200, path
    return Page(response)


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


def run(desk, action, annotators):
    sent = {"action": action, "_selected_action": [annotator.pk for annotator in annotators]}
    return desk.post(address(Annotator, "changelist"), sent, follow=True)
