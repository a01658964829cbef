"""What the API takes and gives. Nothing of votes, of the unit's queue or stage, or of other people's judgments."""

from rest_framework import serializers

from annotate.kinds import Kind
from annotate.models import Judgment, Trial
from annotate.quality import qualification
from annotate.quality.guidelines import current
from corpora.core.languages import LANGUAGES


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
        help_text="the languages it is about, or a record's labels; what may be answered is said with each unit",
    )
    languages = serializers.ListField(
        child=serializers.CharField(), help_text="of its records; none where it is languages that are asked about"
    )
    guidelines = serializers.CharField(help_text="Markdown; of records in English, see qualification for the others")
    version = serializers.CharField(allow_blank=True, help_text="of the guidelines: MAJOR.MINOR")
    progress = ProgressSerializer()

    @staticmethod
    def row(task, progress):
        found = current(task)
        return {
            "name": task.name,
            "title": task.title,
            "type": task.kind_slug,
            "labels": task.labels,
            "languages": task.languages,
            "guidelines": found.text if found else "",
            "version": found.version if found else "",
            "progress": progress,
        }


# More answers than these are never sent with a unit: they are looked up by name.
MOST_ANSWERS = 200


def fields_of(item, kind: Kind) -> dict[str, str]:
    """A record's fields in the order of its kind; none of a post."""
    return {name: item.fields[name] for name in kind.fields}


class LeaseSerializer(serializers.Serializer):
    id = serializers.IntegerField(source="pk", help_text="name it when you judge, skip or release")
    text = serializers.CharField(source="unit.item.text", help_text="of a record its fields, one after another")
    language = serializers.CharField(source="unit.item.language", allow_blank=True, help_text="that a record is in")
    fields = serializers.SerializerMethodField("get_record", help_text="of a record, each under its name")
    asked = serializers.CharField(
        source="unit.asked",
        allow_blank=True,
        help_text="the language that is asked about: is the text in it? Empty where the question is which one",
    )
    answers = serializers.SerializerMethodField(
        help_text=f"the labels that may be answered; none where there are over {MOST_ANSWERS}"
    )
    names = serializers.SerializerMethodField(
        help_text="what the pages call them, of records in their language where there are names in it: label -> name"
    )
    autonyms = serializers.SerializerMethodField(
        help_text="of labels that are languages, what these call themselves: label -> name; else none"
    )
    expires_at = serializers.DateTimeField(help_text="afterwards others may be given the unit")

    def get_record(self, lease) -> dict[str, str]:
        return fields_of(lease.unit.item, lease.unit.task.kind)

    def get_answers(self, lease) -> list[str]:
        unit = lease.unit
        codes = list(unit.task.kind.offered(unit))
        return codes if len(codes) <= MOST_ANSWERS else []

    def get_names(self, lease) -> dict[str, str]:
        kind, language = lease.unit.task.kind, lease.unit.item.language
        return {code: kind.called_in(language, code) for code in self.get_answers(lease)}

    def get_autonyms(self, lease) -> dict[str, str]:
        kind = lease.unit.task.kind
        codes = [] if kind.answers else self.get_answers(lease)
        return {code: LANGUAGES[code].autonym for code in codes if code in LANGUAGES}


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


class StandingSerializer(serializers.Serializer):
    language = serializers.CharField()
    state = serializers.ChoiceField(list(qualification.STEPS), source="step", help_text="what comes next for you")
    version = serializers.CharField(source="guidelines.version", default="", help_text="of the guidelines")
    guidelines = serializers.CharField(source="guidelines.text", default="", help_text="Markdown")
    tries_left = serializers.IntegerField()


class QuestionSerializer(serializers.Serializer):
    id = serializers.IntegerField(source="pk", help_text="name it when you answer")
    number = serializers.IntegerField(source="position")
    of = serializers.SerializerMethodField()
    fields = serializers.SerializerMethodField("get_record", help_text="of the record, each under its name")
    answers = serializers.SerializerMethodField(help_text="the labels that may be answered")

    def get_of(self, question) -> int:
        return question.trial.answers.count()

    def get_record(self, question) -> dict[str, str]:
        return fields_of(question.gold_answer.item, question.trial.task.kind)

    def get_answers(self, question) -> list[str]:
        return list(question.trial.task.labels)


class MissedSerializer(serializers.Serializer):
    fields = serializers.DictField(child=serializers.CharField())
    said = serializers.CharField()
    label = serializers.CharField(help_text="what is right")
    explanation = serializers.CharField(allow_blank=True)


class ResultSerializer(serializers.Serializer):
    """What came of a practice or a test; made when it is over, and not before."""

    kind = serializers.CharField(help_text="practice or test")
    passed = serializers.BooleanField()
    right = serializers.IntegerField()
    asked = serializers.IntegerField()
    needed = serializers.IntegerField(help_text="right answers that pass")
    missed = MissedSerializer(many=True)

    @staticmethod
    def row(trial):
        if trial is None or trial.finished_at is None:
            return None
        return {
            "kind": trial.kind,
            "passed": trial.passed,
            "right": trial.right,
            "asked": trial.answers.count(),
            "needed": qualification.needed(trial) if trial.kind == Trial.TEST else 0,
            "missed": [
                {
                    "fields": fields_of(each.gold_answer.item, trial.task.kind),
                    "said": each.label,
                    "label": each.gold_answer.label,
                    "explanation": each.gold_answer.explanation,
                }
                for each in qualification.missed(trial)
            ],
        }


class TrialSerializer(serializers.Serializer):
    question = QuestionSerializer(allow_null=True, help_text="the next one; null where it is over")
    result = ResultSerializer(allow_null=True, help_text="null until it is over, and where a manager let you in")


class TrialAnswerSerializer(serializers.Serializer):
    label = serializers.CharField(max_length=64, help_text="one of the question's answers")


class AnsweredSerializer(serializers.Serializer):
    """right, label and explanation are told in practice only."""

    accepted = serializers.BooleanField()
    right = serializers.BooleanField(allow_null=True)
    label = serializers.CharField(allow_null=True, help_text="what is right")
    explanation = serializers.CharField(allow_null=True)
    result = ResultSerializer(allow_null=True, help_text="after the last question")

    @staticmethod
    def row(question):
        gold, told = question.gold_answer, question.trial.kind == Trial.PRACTICE
        return {
            "accepted": True,
            "right": qualification.is_right(question) if told else None,
            "label": gold.label if told else None,
            "explanation": gold.explanation if told else None,
            "result": ResultSerializer.row(question.trial),
        }


class RefusalSerializer(serializers.Serializer):
    code = serializers.CharField()
    detail = serializers.CharField()
