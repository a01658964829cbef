"""Fixtures: a finished qualification test in the database."""

import pytest
from django.utils import timezone

from annotate.models import Qualification, Trial, TrialAnswer
from annotate.quality.guideline_versions import current


@pytest.fixture
def tried(db):
    """Return a function: tried(annotator, task, right=4) stores a finished test with 4 of 5 correct answers."""

    def make(annotator, task, language="en", *, right=5, passed=True, number=1, finished=True):
        trial = Trial.objects.create(
            annotator=annotator,
            task=task,
            language=language,
            kind="test",
            guidelines=current(task, language),
            number=number,
            started_at=timezone.now(),
            **({"finished_at": timezone.now(), "right": right, "passed": passed} if finished else {}),
        )
        pool = task.gold_answers.filter(purpose="test", item__language=language)[:5]
        for position, gold in enumerate(pool, 1):
            label = gold.label if position <= right else "0" if gold.label == "1" else "1"
            answer = {"label": label, "answered_at": timezone.now()} if finished else {}
            TrialAnswer.objects.create(trial=trial, gold_answer=gold, position=position, **answer)
        if passed and finished:
            Qualification.objects.create(
                annotator=annotator, task=task, language=language, major=1, trial=trial, at=timezone.now()
            )
        return trial

    return make
