"""Decoys: posts known not to be in the language asked about, hidden among the posts of a verification."""

from annotate.kinds.control import QualityControl, register


class Decoys(QualityControl):
    name = "decoys"
    look_at = "audit"


register(Decoys())
