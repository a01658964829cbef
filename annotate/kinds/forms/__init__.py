"""Answer forms, which define what an answer consists of, one module each. The base class and registry are in form.py.

The forms for concepts and preferences need the database; kinds/concept_kind.py and kinds/preference_kind.py register
them.
"""

from annotate.kinds.forms.choice import CHOICE
from annotate.kinds.forms.form import FORMS, Form, load, register
from annotate.kinds.forms.grades import GRADES

__all__ = ["CHOICE", "FORMS", "GRADES", "Form", "load", "register"]
