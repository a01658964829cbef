"""Published formats of exported sets, one module each. A kind of question names those of its sets (`Kind.formats`).

A format is a module with

    needs(export)                 the columns of a row that it reads, those of them that the row has
    write(folder, rows, export)   writes its files from the rows in the set, and returns what is told of them: `format`,
                                  a name; `files`, the name of each with its rows; and what else its readers need

export: of export.py, with the task, its kind, and what the kind tells the format.
"""

from types import ModuleType

from annotate.goldsets.formats import twitter2015, xglue

FORMATS: dict[str, ModuleType] = {"twitter2015": twitter2015, "xglue": xglue}
