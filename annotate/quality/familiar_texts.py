"""Texts that a person has seen before: hidden units with such a text are kept from them.

Else they would know a decoy, a gold answer or an audited post, and could find it among their own answers.
"""

from typing import Any

from django.db.models import BooleanField, Func

# Texts are looked up by how they begin: the index item_begins of corpora.
BEGINS = 32  # characters
_SEEN = """
({unit}.known_answer <> '' OR {unit}.audited OR EXISTS (
    SELECT 1 FROM annotate_unit AS copy WHERE copy.copy_of_id = {unit}.id AND copy.audited
)) AND EXISTS (
    SELECT 1
    FROM corpora_item AS shown
    CROSS JOIN corpora_item AS same
    CROSS JOIN annotate_unit AS seen
    CROSS JOIN annotate_lease AS own
    WHERE shown.id = {unit}.item_id
      AND SUBSTR(same.text, 1, 32) = SUBSTR(shown.text, 1, 32)
      AND same.text = shown.text
      AND seen.item_id = same.id
      AND seen.id <> {unit}.id
      AND own.unit_id = seen.id
      AND own.annotator_id = {person}
)
"""


def seen_sql(unit: str, person: str) -> str:
    """Whether a hidden unit has a text that the person was shown as another unit, in whatever task or corpus.

    unit: its table; person: the key of the annotator, or a place for it.
    """
    return f"({_SEEN.format(unit=unit, person=person)})"


class Seen(Func):
    """The same as a condition on units, of the unit's key and the person's."""

    output_field = BooleanField()

    def as_sql(self, compiler: Any, connection: Any, **context: Any) -> tuple[str, list[Any]]:
        (unit, _), (person, values) = map(compiler.compile, self.get_source_expressions())
        return seen_sql(unit.rpartition(".")[0], person), list(values)
