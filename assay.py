"""Assay in a notebook or a script: one import, and no server.

    import assay

    assay.corpora()                                    # what there is
    assay.corpus("july").posts().to_pandas()           # posts, votes: read from disk as they are asked for
    assay.task("language-july").progress()
    gold = assay.gold("gold/uniform")                  # a folder that export_gold or import_gold has written
    gold.labels, gold.manifest, gold.card, gold.to_pandas()
    gold.evaluate("predictions.tsv")                   # or a dict, or a DataFrame: a DataFrame of figures
    gold.report("predictions.tsv")                     # the tables of the report, its errors and confusions
    assay.run("export_gold", task="language-july", out="gold/uniform")     # any command, by its name

The installation is the one of ASSAY_DATA_DIR (and DATABASE_URL), as for the command; `assay.use("/folder")` names its
data folder instead, before anything else is asked. Gold sets can be read and measured on without an installation.
Nothing here writes, but for what `run` does. Whatever is wrong is an AssayError that says in a sentence what, where,
and what to do. Tables become DataFrames where pandas is installed: pip install "assay[notebook]".
"""

from importlib import import_module
from typing import Any

from annotate.notebook.installation import AssayError, begin, use

# What is found where: the modules need Django, which is set up when the first of them is asked for and not before, so
# that `use` can still say for which installation.
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
