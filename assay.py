"""Assay in a notebook or a script: one import, no server.

    import assay

    assay.corpora()                                    # what there is
    assay.corpus("july").posts().to_pandas()           # posts and votes, read from disk on demand
    assay.task("language-july").progress()
    gold = assay.gold("gold/uniform")                  # a folder from export_gold or import_gold
    gold.labels, gold.manifest, gold.card, gold.to_pandas()
    gold.evaluate("predictions.tsv")                   # or a dict or DataFrame; returns a DataFrame of figures
    gold.report("predictions.tsv")                     # tables of the report, errors and confusions
    assay.run("export_gold", task="language-july", out="gold/uniform")     # any command, by its name

As for the command, ASSAY_DATA_DIR and DATABASE_URL name the installation; `assay.use("/folder")` selects another data
folder if called first. Gold sets can be read and used for evaluation without an installation. Only `run` writes. Every
error is an AssayError that says what is wrong, where, and what to do. Tables are DataFrames if pandas is installed: pip
install "assay[notebook]".
"""

from importlib import import_module
from typing import Any

from annotate.notebook.installation import AssayError, begin, use

# Name -> its module. The modules need Django, which is set up when one of them is first used, so that `use` can select
# the installation before.
_HOMES = {
    "corpora": "campaign_data",
    "corpus": "campaign_data",
    "tasks": "campaign_data",
    "task": "campaign_data",
    "run": "campaign_data",
    "gold": "set_reports",
    "evaluate": "set_reports",
    "report": "set_reports",
}
__all__ = ["AssayError", "use", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"assay has no {name}; it has: {', '.join(__all__)}.")
    begin()
    found = getattr(import_module(f"annotate.notebook.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
