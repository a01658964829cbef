from datetime import timedelta

from django.db import migrations
from django.utils import timezone


def let_expire(apps, schema_editor):
    """Tokens of before would never expire; they last as long from now on as one that is made now."""
    tokens = apps.get_model("knox", "AuthToken")
    tokens.objects.filter(expiry=None).update(expiry=timezone.now() + timedelta(days=90))


class Migration(migrations.Migration):
    dependencies = [
        ("annotate", "0006_consent"),
        ("knox", "0009_extend_authtoken_field"),
    ]

    operations = [migrations.RunPython(let_expire, migrations.RunPython.noop)]
