from django.apps import AppConfig


class AnnotateConfig(AppConfig):
    name = "annotate"
    verbose_name = "Annotation"

    def ready(self):
        from annotate import controls

        controls.load()
        from annotate.actions import database  # noqa: F401 - registers its check
