"""What the API takes and gives. Nothing of votes, of the unit's queue or stage, or of other people's judgments."""

from rest_framework import serializers

from annotate.guidelines import current
from annotate.models import Judgment
from annotate.task_types import TASK_TYPES


class ProgressSerializer(serializers.Serializer):
    answered_today = serializers.IntegerField()
    skipped_today = serializers.IntegerField()
    waiting = serializers.IntegerField(help_text="in your languages, and not judged by you")


class TaskSerializer(serializers.Serializer):
    name = serializers.SlugField()
    title = serializers.CharField()
    type = serializers.CharField()
    labels = serializers.ListField(
        child=serializers.CharField(),
        help_text="the languages it is about; what may be answered is said with each unit",
    )
    guidelines = serializers.CharField(help_text="Markdown")
    progress = ProgressSerializer()

    @staticmethod
    def row(task, progress):
        return {
            "name": task.name,
            "title": task.title,
            "type": task.task_type,
            "labels": task.labels,
            "guidelines": found.text if (found := current(task)) else "",
            "progress": progress,
        }


class LeaseSerializer(serializers.Serializer):
    id = serializers.IntegerField(source="pk", help_text="name it when you judge, skip or release")
    text = serializers.CharField(source="unit.item.text")
    asked = serializers.CharField(
        source="unit.asked",
        allow_blank=True,
        help_text="the language that is asked about: is the text in it? Empty where the question is which one",
    )
    answers = serializers.SerializerMethodField(help_text="the labels that may be answered")
    expires_at = serializers.DateTimeField(help_text="afterwards others may be given the unit")

    def get_answers(self, lease) -> list[str]:
        unit = lease.unit
        return list(TASK_TYPES[unit.task.task_type].offered(unit))


class NextSerializer(serializers.Serializer):
    lease = LeaseSerializer(allow_null=True)
    why = serializers.CharField(allow_blank=True, help_text="why there is none")


class SkipSerializer(serializers.Serializer):
    active_seconds = serializers.FloatField(required=False, allow_null=True, default=None, min_value=0)


class AnswerSerializer(SkipSerializer):
    label = serializers.CharField(max_length=64, help_text="one of the unit's answers, such as de, not-de or und")
    reason = serializers.CharField(
        max_length=200,
        required=False,
        allow_blank=True,
        default="",
        help_text="with und: several, mixed, gibberish or, where the question is which language, unlisted",
    )
    comment = serializers.CharField(
        max_length=2000, required=False, allow_blank=True, default="", help_text="obligatory with unlisted"
    )


class JudgmentSerializer(serializers.ModelSerializer):
    class Meta:
        model = Judgment
        fields = ["id", "kind", "label", "reason", "comment", "answered_at", "active_seconds"]


class RefusalSerializer(serializers.Serializer):
    code = serializers.CharField()
    detail = serializers.CharField()
