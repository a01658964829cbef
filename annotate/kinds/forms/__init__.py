"""Answer forms, which define the content of an answer: for example, one label or a set of labels.

form.py contains the base class and the registry. The forms for concepts and preferences need the database, so they are
registered in kinds/concept_kind.py and kinds/preference_kind.py.
"""

from annotate.kinds.forms.choice import CHOICE, GRADES
from annotate.kinds.forms.form import FORMS, Form, load, register

__all__ = ["CHOICE", "FORMS", "GRADES", "Form", "load", "register"]
