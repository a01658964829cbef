"""Assay for notebooks and scripts, which need only this import and no server.

    import assay

    assay.corpora()                                    # the list of corpora
    assay.corpus("july").posts().to_pandas()           # posts and votes, read from disk when they are needed
    assay.corpus("august", new=True).add(rows, licence="CC0-1.0")      # dicts, an Arrow table or a DataFrame
    assay.task("language-july").progress()
    assay.task("language-july").judgments()
    gold = assay.gold("gold/uniform")                  # a folder from export_gold or import_gold
    gold.labels, gold.manifest, gold.card, gold.to_pandas()
    gold.evaluate("predictions.tsv")                   # or a dict or DataFrame; returns a DataFrame of figures
    gold.report("predictions.tsv")                     # tables of the report, errors and confusions
    assay.run("export_gold", task="language-july", out="gold/uniform")     # any command, by its name

The environment variables ASSAY_DATA_DIR and DATABASE_URL select the installation, as they do for the command `assay`.
To use a different data folder, call `assay.use("/folder")` before any other function. Gold sets can be read, and used
for evaluation, without an installation. Only `run` and `add` write anything. Every error is an AssayError, which says
what is wrong, where, and what to do. If pandas is installed (pip install "assay[notebook]"), tables are DataFrames.
"""

from importlib import import_module
from typing import Any

from annotate.notebook.installation import AssayError, set_up_django, use

# Name -> module that defines it. The modules need Django, which is set up only when one of these names is first used.
# Before that, `use` can select the installation.
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
        raise AttributeError(f"assay has no attribute {name!r}. Available: {', '.join(__all__)}.")
    set_up_django()
    attribute = getattr(import_module(f"annotate.notebook.{_HOMES[name]}"), name)
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return __all__
