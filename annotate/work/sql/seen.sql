-- Whether a person was ever shown the text of a unit as another unit, in whatever task or corpus, when that must not be:
-- the unit is a decoy, a gold answer or of the audit. Else they would know it, and could find it among their answers.
-- Texts are looked up by how they begin (the index item_begins). {unit} is the unit's table, {person} the annotator.
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
