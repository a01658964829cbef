"""What the API takes and gives. Nothing of votes, of the unit's queue or stage, or of other people's judgments."""

from rest_framework import serializers

from annotate.models import Judgment


class ProgressSerializer(serializers.Serializer):
    answered_today = serializers.IntegerField()
    skipped_today = serializers.IntegerField()
    waiting = serializers.IntegerField(help_text="in your languages, and not judged by you")


class TaskSerializer(serializers.Serializer):
    name = serializers.SlugField()
    title = serializers.CharField()
    type = serializers.CharField()
    labels = serializers.ListField(child=serializers.CharField(), help_text="what may be answered, besides und")
    guidelines = serializers.CharField(help_text="Markdown")
    progress = ProgressSerializer()

    @staticmethod
    def row(task, progress):
        return {
            "name": task.name,
            "title": task.title,
            "type": task.task_type,
            "labels": task.labels,
            "guidelines": task.guidelines,
            "progress": progress,
        }


class LeaseSerializer(serializers.Serializer):
    id = serializers.IntegerField(source="pk", help_text="name it when you judge, skip or release")
    text = serializers.CharField(source="unit.item.text")
    expires_at = serializers.DateTimeField(help_text="afterwards others may be given the unit")


class NextSerializer(serializers.Serializer):
    lease = LeaseSerializer(allow_null=True)
    why = serializers.CharField(allow_blank=True, help_text="why there is none")


class SkipSerializer(serializers.Serializer):
    active_seconds = serializers.FloatField(required=False, allow_null=True, default=None, min_value=0)


class AnswerSerializer(SkipSerializer):
    label = serializers.CharField(max_length=64, help_text="a label of the task, or und")
    reason = serializers.CharField(
        max_length=200,
        required=False,
        allow_blank=True,
        default="",
        help_text="with und: several, mixed, gibberish or unlisted",
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
