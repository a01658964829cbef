"""Judgments that were made elsewhere (import_judgments), to be aggregated and compared; nobody is asked anything."""

from annotate.kinds.records import record_type

TASK_TYPE = record_type(slug="imported", title="Judgments made elsewhere", fields=(), answers={}, template="")
