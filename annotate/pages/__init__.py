"""The rights, accounts and pages of annotators and adjudicators."""

import sys

# Django REST framework and drf-spectacular import these packages if they are installed, to support what Assay does not
# use. Without them, the server starts in four fifths of the time and needs 12 MB less.
_UNUSED = ("django.contrib.postgres", "jinja2", "requests")
_imported = {name: module for name in _UNUSED if (module := sys.modules.get(name))}
for _name in _UNUSED:
    sys.modules[_name] = None  # type: ignore[assignment] # makes an import fail
try:
    import drf_spectacular.plumbing  # noqa: F401
finally:
    for _name in _UNUSED:
        del sys.modules[_name]
    sys.modules.update(_imported)
