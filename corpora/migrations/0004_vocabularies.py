"""Vocabularies: concepts with their labels, links and schemes."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("corpora", "0003_balanced_draws"),
    ]

    operations = [
        migrations.CreateModel(
            name="Broader",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ],
        ),
        migrations.CreateModel(
            name="Concept",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=200, verbose_name="id")),
                (
                    "broader",
                    models.ManyToManyField(related_name="narrower", through="corpora.Broader", to="corpora.concept"),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.AddField(
            model_name="broader",
            name="broader",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="corpora.concept"
            ),
        ),
        migrations.AddField(
            model_name="broader",
            name="concept",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="corpora.concept"
            ),
        ),
        migrations.CreateModel(
            name="Label",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "language",
                    models.CharField(blank=True, help_text="empty where the source does not say", max_length=16),
                ),
                ("text", models.CharField(max_length=500)),
                ("is_preferred", models.BooleanField()),
                ("plain", models.BinaryField(help_text="its words as core/words.py has them, a space between, UTF-8")),
                (
                    "concept",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="labels", to="corpora.concept"
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Related",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "concept",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="corpora.concept"
                    ),
                ),
                (
                    "related",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="corpora.concept"
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="concept",
            name="related",
            field=models.ManyToManyField(related_name="+", through="corpora.Related", to="corpora.concept"),
        ),
        migrations.CreateModel(
            name="Scheme",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=200, verbose_name="id")),
                ("labels", models.JSONField(default=dict, help_text="language -> label")),
                (
                    "domain",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="corpora.scheme",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.AddField(
            model_name="concept",
            name="schemes",
            field=models.ManyToManyField(related_name="concepts", to="corpora.scheme"),
        ),
        migrations.CreateModel(
            name="Vocabulary",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField(max_length=64)),
                ("version", models.PositiveIntegerField(help_text="1, 2, ... in the order of import")),
                ("source", models.CharField(help_text="the names of its files", max_length=200)),
                (
                    "sha256",
                    models.CharField(help_text="of all that it says, in whatever format and order", max_length=64),
                ),
                ("languages", models.JSONField(default=list, help_text="those of its labels")),
                ("imported_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name_plural": "vocabularies",
                "ordering": ["name", "version"],
                "constraints": [
                    models.UniqueConstraint(fields=("name", "version"), name="vocabulary_version_once"),
                    models.UniqueConstraint(fields=("name", "sha256"), name="vocabulary_content_once"),
                ],
            },
        ),
        migrations.AddField(
            model_name="scheme",
            name="vocabulary",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="schemes", to="corpora.vocabulary"
            ),
        ),
        migrations.CreateModel(
            name="LabelWord",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("word", models.BinaryField(help_text="as core/words.py has it, UTF-8; bytes, as Label.plain")),
                (
                    "label",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="words",
                        to="corpora.label",
                    ),
                ),
                (
                    "vocabulary",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="corpora.vocabulary",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="concept",
            name="vocabulary",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="concepts", to="corpora.vocabulary"
            ),
        ),
        migrations.AddConstraint(
            model_name="broader",
            constraint=models.UniqueConstraint(fields=("concept", "broader"), name="broader_once"),
        ),
        migrations.AddConstraint(
            model_name="broader",
            constraint=models.CheckConstraint(
                condition=models.Q(("concept", models.F("broader")), _negated=True), name="broader_is_another"
            ),
        ),
        migrations.AddConstraint(
            model_name="label",
            constraint=models.UniqueConstraint(fields=("concept", "language", "text"), name="label_once"),
        ),
        migrations.AddConstraint(
            model_name="label",
            constraint=models.UniqueConstraint(
                condition=models.Q(("is_preferred", True)), fields=("concept", "language"), name="preferred_label_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="related",
            constraint=models.UniqueConstraint(fields=("concept", "related"), name="related_once"),
        ),
        migrations.AddConstraint(
            model_name="related",
            constraint=models.CheckConstraint(
                condition=models.Q(("concept", models.F("related")), _negated=True), name="related_is_another"
            ),
        ),
        migrations.AddConstraint(
            model_name="scheme",
            constraint=models.UniqueConstraint(fields=("vocabulary", "key"), name="scheme_once_in_vocabulary"),
        ),
        migrations.AddConstraint(
            model_name="scheme",
            constraint=models.CheckConstraint(
                condition=models.Q(("domain", models.F("pk")), _negated=True), name="scheme_not_its_own_domain"
            ),
        ),
        migrations.AddIndex(
            model_name="labelword",
            index=models.Index(fields=["vocabulary", "word", "label"], name="label_word_beginnings"),
        ),
        migrations.AddIndex(
            model_name="labelword",
            index=models.Index(fields=["label", "word"], name="label_word_of_label"),
        ),
        migrations.AddConstraint(
            model_name="concept",
            constraint=models.UniqueConstraint(fields=("vocabulary", "key"), name="concept_once_in_vocabulary"),
        ),
    ]
