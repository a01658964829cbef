"""The template loader for answer forms from plug-ins."""

from pathlib import Path

from django.template.loaders import filesystem

from annotate.kinds.forms import FORMS


class Loader(filesystem.Loader):
    def get_dirs(self) -> list[str | Path]:
        return [form.folder for form in FORMS.values() if form.folder]
