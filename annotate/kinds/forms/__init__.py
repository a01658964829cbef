"""Answer forms, which define what an answer contains, such as one label or a set of labels.

form.py contains the base class and the registry. The forms in kinds/concept_kind.py, kinds/preference_kind.py,
kinds/span_kind.py and kinds/text_kind.py are registered there, because they depend on the class Kind.
"""

from annotate.kinds.forms.choice import CHOICE, GRADES
from annotate.kinds.forms.form import FORMS, Form, load, register

__all__ = ["CHOICE", "FORMS", "GRADES", "Form", "load", "register"]
