"""The routing that the article's label list asks for where it is finer than the detectors, or unknown to them."""

from django.db import migrations

# language, queue, tried after it, never agree
ROUTES = [
    ("zh-CN", "zh", [], False),
    ("zh-TW", "zh", [], False),
    # The detectors tell these apart by spelling alone; people who read one read all three.
    ("bs", "hr", [], True),
    ("hr", "hr", [], True),
    ("sr", "hr", [], True),
    # No detector names Hindi in Latin script.
    ("hi", "hi", ["hi-Latn"], False),
    # Posts in which no detector sees a language: emoticons, links, names.
    ("und", "en", [], False),
]


def add(apps, schema_editor):
    route = apps.get_model("annotate", "LanguageRoute")
    route.objects.bulk_create(
        route(language=language, queue=queue, extra_candidates=extra, never_agree=never)
        for language, queue, extra, never in ROUTES
    )


class Migration(migrations.Migration):
    dependencies = [("annotate", "0001_annotation")]
    operations = [migrations.RunPython(add, migrations.RunPython.noop)]
