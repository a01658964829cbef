"""The admin's pages: languages and routing, people, tasks, and what people have said."""

from annotate.pages.admin import qualification, tasks  # noqa: F401
