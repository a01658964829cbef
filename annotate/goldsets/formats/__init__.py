"""Published formats of exported sets, one module each. A kind of question names the formats of its sets
(`Publication.formats`).

A format is a module with

    write(folder, written, export)   writes its files from the rows in the set, and returns what the manifest says of
                                     them: a name as `format`, the files with their rows as `files`, and whatever
                                     else readers need

written: the rows, as written.py reads them. export: one of export.py, with the task, its kind, and what the kind
tells the format.
"""

from types import ModuleType

from annotate.goldsets.formats import eurlex57k, mldoc, twitter2015, xglue

FORMATS: dict[str, ModuleType] = {
    "twitter2015": twitter2015,
    "xglue": xglue,
    "mldoc": mldoc,
    "eurlex57k": eurlex57k,
}
