from importlib.util import find_spec

from django.apps import AppConfig

# The modules that the voters in optional_voters.py need.
OPTIONAL = ("py3langid", "gcld3", "heliport")


class CorporaConfig(AppConfig):
    name = "corpora"
    verbose_name = "Corpora"

    def ready(self) -> None:
        from corpora.core import voters

        voters.load()
        if installed := [module for module in OPTIONAL if find_spec(module)]:
            from corpora.core import optional_voters

            optional_voters.load(installed)
