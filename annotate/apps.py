from django.apps import AppConfig


class AnnotateConfig(AppConfig):
    name = "annotate"
    verbose_name = "Annotation"

    def ready(self) -> None:
        from annotate import controls
        from annotate.goldsets import formats
        from annotate.kinds import forms

        controls.load()
        forms.load()
        formats.load()
        from annotate.actions import database  # noqa: F401 - registers its check
