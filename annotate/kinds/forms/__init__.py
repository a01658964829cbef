"""Forms of answers: what an answer is, one pure module each. form.py has their base class and the registry.

Concepts and preferences need the database; kinds/concept_kind.py and kinds/preference_kind.py register them.
"""

from annotate.kinds.forms.choice import CHOICE
from annotate.kinds.forms.form import FORMS, Form, load, register
from annotate.kinds.forms.grades import GRADES

__all__ = ["CHOICE", "FORMS", "GRADES", "Form", "load", "register"]
