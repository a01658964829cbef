"""All of corpora's tables."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Corpus",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name_plural": "corpora",
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Draw",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "design",
                    models.CharField(
                        choices=[
                            ("uniform", "uniform"),
                            ("recall", "recall"),
                            ("precision", "precision"),
                            ("records", "records"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "language",
                    models.CharField(
                        blank=True, default="", help_text="the draw's language; empty in uniform draws", max_length=16
                    ),
                ),
                (
                    "predictor",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="the predictor that the draw used: a name, or name@version",
                        max_length=200,
                    ),
                ),
                (
                    "parameters",
                    models.JSONField(default=dict, help_text="the design's other options, and what it found"),
                ),
                ("seed", models.CharField(max_length=64)),
                ("asked", models.PositiveBigIntegerField(default=0, help_text="posts asked for")),
                (
                    "size",
                    models.PositiveBigIntegerField(
                        help_text="posts drawn; fewer than asked for if the frame is smaller"
                    ),
                ),
                ("parts", models.PositiveIntegerField(help_text="the frame is the corpus's first parts, this many")),
                ("frame_size", models.PositiveBigIntegerField(help_text="posts in the frame")),
                (
                    "frame_digest",
                    models.CharField(help_text="SHA-256 over the digests of the frame's parts", max_length=64),
                ),
                (
                    "detectors",
                    models.JSONField(
                        default=list, help_text="the versions of the detectors whose votes were drawn with the posts"
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "corpus",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="draws", to="corpora.corpus"
                    ),
                ),
                (
                    "extends",
                    models.OneToOneField(
                        blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to="corpora.draw"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("size__lte", models.F("frame_size"))), name="draw_within_frame"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Item",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(help_text="the post's id in its source", max_length=200, verbose_name="id")),
                ("text", models.TextField(help_text="the text as people see it, with mentions as @xzy")),
                ("author", models.CharField(blank=True, help_text="hashed with the installation's key", max_length=64)),
                ("posted_at", models.DateTimeField(blank=True, null=True)),
                ("url", models.CharField(blank=True, max_length=2000)),
                (
                    "language",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="the language declared for a record; empty for a post",
                        max_length=16,
                    ),
                ),
                (
                    "fields",
                    models.JSONField(blank=True, default=dict, help_text="a record's fields by name; empty for a post"),
                ),
                ("votes", models.JSONField()),
                (
                    "letters",
                    models.PositiveIntegerField(
                        help_text="letters in the text as the detectors read it; 0 for a record"
                    ),
                ),
                (
                    "corpus",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="items", to="corpora.corpus"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [models.UniqueConstraint(fields=("corpus", "key"), name="item_once_in_corpus")],
            },
        ),
    ]
