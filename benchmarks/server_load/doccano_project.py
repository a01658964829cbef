"""A project of text classification in doccano: `PYTHON doccano_project.py UNITS NAME PASSWORD...`.

It is run by doccano's own Python. It prints the project's number.
"""

import os
import sys


def main(units: int, secrets: list[str]) -> None:
    import backend

    folder = backend.__path__[0]
    sys.path.insert(0, folder)
    os.chdir(folder)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.production")
    import django

    django.setup()
    from django.core.management import call_command

    for command in ("migrate", "create_roles"):
        call_command(command, verbosity=0)
    from django.contrib.auth import get_user_model
    from examples.models import Example
    from label_types.models import CategoryType
    from projects.models import Member, TextClassificationProject
    from roles.models import Role

    accounts = get_user_model().objects
    people = [accounts.create_user(name, "", word) for name, word in zip(secrets[::2], secrets[1::2], strict=True)]
    project = TextClassificationProject.objects.create(
        name="load",
        description="load",
        project_type="DocumentClassification",
        created_by=people[0],
        single_class_classification=True,
        collaborative_annotation=True,
    )
    for code in ("en", "de"):
        CategoryType.objects.create(project=project, text=code)
    for person in people:
        Member.objects.get_or_create(project=project, user=person, role=Role.objects.get(name="annotator"))
    Example.objects.bulk_create(
        [Example(project=project, text=f"This is text number {n}.") for n in range(units)], 1000
    )
    print(project.pk)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
