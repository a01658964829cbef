"""The kinds of questions: one module each, and this registry."""

from annotate.task_types import language, verify

TASK_TYPES = {task_type.slug: task_type for task_type in (language.TASK_TYPE, verify.TASK_TYPE)}
