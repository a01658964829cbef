import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("corpora", "0005_filtered_draws"),
    ]

    operations = [
        migrations.AlterField(
            model_name="item",
            name="corpus",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name="items", to="corpora.corpus"
            ),
        ),
    ]
