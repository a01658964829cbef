"""Creates a small real installation in ASSAY_DATA_DIR, in a separate process:

    python -m tests.installation 400

creates the demo corpus with its votes, and the completed task `demo` with 400 posts.
"""

import sys

import django


def main(size: int) -> None:
    django.setup()

    from django.contrib.auth.models import User

    import assay
    from annotate.actions.registry import call_command
    from annotate.kinds import Answer
    from annotate.models import Annotator, AnnotatorLanguage, Task
    from annotate.work.adjudication import discard, to_adjudicate
    from annotate.work.judgments import judge, skip
    from annotate.work.queue import take
    from tests.annotate.corpus import LICENCE, NAME, POSTS, SOURCE

    call_command("migrate", verbosity=0)
    assay.run("import_corpus", corpus=NAME, files=POSTS, licence=LICENCE, source=SOURCE, text_may_leave=True)
    assay.run("prelabel", corpus=NAME, processes=1)
    assay.run("open_task", name=NAME, corpus=NAME, size=size, seed="2014", audit_least=2, audit_limit=1.0)
    task = Task.objects.get()
    people = [Annotator.objects.create(user=User.objects.create_user(name)) for name in ("ann", "bea")]
    for annotator in people:
        AnnotatorLanguage.objects.bulk_create(
            AnnotatorLanguage(annotator=annotator, language=code, level=5) for code in task.labels
        )
    lines = (POSTS.parent / "demo_truth.tsv").read_text(encoding="utf-8").splitlines()
    truth = dict(line.split("\t") for line in lines)
    for annotator in people:
        while lease := take(annotator, task):
            label = truth[lease.unit.item.key]
            if label in task.labels:
                judge(annotator, lease.pk, Answer(label))
            else:
                skip(annotator, lease.pk)
    ada = Annotator.objects.create(user=User.objects.create_user("ada"), adjudicates=True)
    for unit in to_adjudicate(task, ada):
        discard(ada, unit.pk, "the truth is on no list")


if __name__ == "__main__":
    main(int(sys.argv[1]))
