from django.apps import AppConfig


class CorporaConfig(AppConfig):
    name = "corpora"
    verbose_name = "Corpora"

    def ready(self) -> None:
        from corpora.core import voters

        voters.load()
