"""Create all tables of the app `corpora`."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Broader",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ],
        ),
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
            name="Concept",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=200, verbose_name="id")),
                (
                    "is_deprecated",
                    models.BooleanField(default=False, help_text="existing documents keep it, but it is not offered"),
                ),
                (
                    "replaced_by",
                    models.TextField(blank=True, help_text="ids of the replacement concepts, separated by spaces"),
                ),
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
                            ("triggers", "triggers"),
                            ("records", "records"),
                            ("balanced", "balanced"),
                            ("systems", "systems"),
                            ("filtered", "filtered"),
                            ("compare", "compare"),
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
                    models.JSONField(
                        default=dict, help_text="the design's other options, and counts that the draw recorded"
                    ),
                ),
                ("seed", models.CharField(max_length=64)),
                ("asked", models.PositiveBigIntegerField(default=0, help_text="number of posts requested")),
                (
                    "size",
                    models.PositiveBigIntegerField(
                        help_text="number of posts drawn; lower than requested if the frame is smaller"
                    ),
                ),
                (
                    "parts",
                    models.PositiveIntegerField(
                        help_text="number of parts in the frame, from the first part of the corpus"
                    ),
                ),
                ("frame_size", models.PositiveBigIntegerField(help_text="number of posts in the frame")),
                (
                    "frame_digest",
                    models.CharField(help_text="SHA-256 of the digests of the frame's parts", max_length=64),
                ),
                (
                    "detectors",
                    models.JSONField(default=list, help_text="the versions of the voters that voted on the items"),
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
            },
        ),
        migrations.CreateModel(
            name="Item",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(help_text="the post's id in its source", max_length=200, verbose_name="id")),
                ("text", models.TextField(help_text="the text that annotators see, with mentions replaced by @xzy")),
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
                (
                    "declared",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="the labels that a record has in its source; annotators never see them",
                    ),
                ),
                ("votes", models.JSONField()),
                (
                    "letters",
                    models.PositiveIntegerField(help_text="number of letters that the detectors read; 0 for a record"),
                ),
                (
                    "corpus",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="items",
                        to="corpora.corpus",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Label",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "language",
                    models.CharField(blank=True, help_text="empty if the source does not specify it", max_length=16),
                ),
                ("text", models.CharField(max_length=500)),
                ("is_preferred", models.BooleanField()),
                ("plain", models.BinaryField(help_text="the words from `words_of`, separated by spaces, in UTF-8")),
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
                ("source", models.CharField(help_text="the names of the imported files", max_length=200)),
                (
                    "sha256",
                    models.CharField(
                        help_text="SHA-256 of the content, independent of format and order", max_length=64
                    ),
                ),
                ("languages", models.JSONField(default=list, help_text="the languages of the labels")),
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
                (
                    "word",
                    models.BinaryField(help_text="a word from `words_of` in UTF-8; stored as bytes like Label.plain"),
                ),
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
            model_name="draw",
            constraint=models.CheckConstraint(
                condition=models.Q(("size__lte", models.F("frame_size"))), name="draw_within_frame"
            ),
        ),
        migrations.AddIndex(
            model_name="item",
            index=models.Index(models.Func("text", 1, 32, function="SUBSTR"), name="item_begins"),
        ),
        migrations.AddConstraint(
            model_name="item",
            constraint=models.UniqueConstraint(fields=("corpus", "key"), name="item_once_in_corpus"),
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
