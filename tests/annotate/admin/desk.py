"""The pages of the admin as managers see them."""

from html.parser import HTMLParser

from django.urls import reverse


class Page(HTMLParser):
    """A parser that collects the text of a page and the parts that its content security policy forbids."""

    def __init__(self, response):
        super().__init__()
        self.forbidden, self.words = [], []
        self.feed(response.content.decode())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "script" and "src" not in values and values.get("type") != "application/json":
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
