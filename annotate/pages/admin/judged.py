"""Units and judgments: what people have said can be read here, never changed."""

from django.contrib import admin

from annotate.kinds import KINDS
from annotate.kinds.labels import negative
from annotate.models import Annotator, Judgment, Task, Transition, Unit
from annotate.pages.admin.base import ReadOnly


class OfUnit(admin.TabularInline):
    """What happened to a unit, with its labels by name."""

    extra = 0
    can_delete = False
    readonly_fields = ["called"]

    @admin.display(description="label")
    def called(self, row):
        return row.unit.task.kind.pages.short(row.label)


class JudgmentInline(OfUnit):
    model = Judgment
    fields = ["annotator", "kind", "called", "reason", "comment", "answered_at", "active_seconds", "voided_at"]


class TransitionInline(OfUnit):
    model = Transition
    fk_name = "unit"
    fields = ["at", "event", "from_stage", "to_stage", "round", "language", "called", "by"]


class DecoyFilter(admin.SimpleListFilter):
    title, parameter_name = "decoy", "decoy"

    def lookups(self, request, model_admin):
        return [("yes", "Yes"), ("no", "No")]

    def queryset(self, request, queryset):
        if self.value() is None:
            return queryset
        return queryset.exclude(known_answer="") if self.value() == "yes" else queryset.filter(known_answer="")


class Named(admin.AllValuesFieldListFilter):
    """Codes with their names; the same code may have several in the tasks of several kinds. Those are offered that may
    stand in a row, by the tasks: to read which do takes seconds where there are a million.
    """

    def __init__(self, field, request, params, model, model_admin, field_path):
        super().__init__(field, request, params, model, model_admin, field_path)
        self.lookup_choices = sorted(
            {code for task in Task.objects.prefetch_related("draws") for code in self.codes(task)}
        )

    def codes(self, task):
        return task.read_in

    def has_output(self):
        return len(self.lookup_choices) > 1

    def choices(self, changelist):
        for choice in super().choices(changelist):
            names = dict.fromkeys(kind.pages.called(choice["display"]) for kind in KINDS.values())
            words = ", ".join(name for name in names if name != choice["display"])
            told = f"{choice['display']} ({words})" if words else choice["display"] or "none"
            yield {**choice, "display": told}


class LabelFilter(Named):
    """By label, but for sets of concepts, of which nearly every one is another."""

    def codes(self, task):
        if task.vocabulary_id is not None:
            return []
        negatives = [negative(code) for code in task.labels] if any(each.language for each in task.draws.all()) else []
        return [*task.labels, *negatives, *filter(None, [task.kind.undefined.label])]


class People(admin.RelatedFieldListFilter):
    def field_choices(self, field, request, model_admin):
        return [(person.pk, str(person)) for person in Annotator.objects.select_related("user")]


class When(admin.DateFieldListFilter):
    """By the index of each person's own judgments, as everybody.py counts them: there is none by time alone."""

    def queryset(self, request, queryset):
        found = super().queryset(request, queryset)
        return found.filter(annotator__in=Annotator.objects.order_by().values("pk")) if self.used_parameters else found


@admin.register(Unit)
class UnitAdmin(ReadOnly):
    list_display = [
        "position",
        "task",
        "text",
        "asked",
        "stage",
        "round",
        "language",
        "called",
        "agreed_label",
        "decoy",
    ]
    list_filter = [
        "task",
        "stage",
        ("asked", Named),
        "audited",
        DecoyFilter,
        ("language", Named),
        ("label", LabelFilter),
    ]
    search_fields = ["item__key", "item__text"]
    ordering = ["-pk"]
    list_select_related = ["task", "item"]
    inlines = [JudgmentInline, TransitionInline]

    @admin.display
    def text(self, unit):
        return unit.in_a_line[:80]

    @admin.display(description="label", ordering="label")
    def called(self, unit):
        return unit.task.kind.pages.short(unit.label)

    @admin.display(boolean=True, ordering="known_answer")
    def decoy(self, unit):
        return bool(unit.known_answer)


@admin.register(Judgment)
class JudgmentAdmin(ReadOnly):
    list_display = ["answered_at", "text", "annotator", "kind", "called", "reason", "comment"]
    list_display += ["active_seconds", "voided_at"]
    list_filter = ["unit__task", ("answered_at", When), "kind", ("annotator", People), ("label", LabelFilter)]
    search_fields = ["unit__item__key", "unit__item__text", "comment"]
    ordering = ["-pk"]
    list_select_related = ["annotator__user", "unit__item", "unit__task"]

    @admin.display
    def text(self, judgment):
        return judgment.unit.in_a_line[:80]

    @admin.display(description="label", ordering="label")
    def called(self, judgment):
        return judgment.unit.task.kind.pages.short(judgment.label)
