"""A project of text classification in Label Studio: `PYTHON label_studio_project.py UNITS NAME PASSWORD...`.

It is run by Label Studio's own Python. It prints the project's number.
"""

import sys
from pathlib import Path

CONFIG = """<View>
  <Text name="text" value="$text"/>
  <Choices name="language" toName="text" choice="single"><Choice value="en"/><Choice value="de"/></Choices>
</View>"""


def main(units: int, secrets: list[str]) -> None:
    import label_studio

    sys.path.insert(0, str(Path(label_studio.__file__).parent))
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from organizations.models import Organization
    from projects.models import Project
    from tasks.models import Task
    from users.models import User

    people = [User.objects.create_user(name, word) for name, word in zip(secrets[::2], secrets[1::2], strict=True)]
    organization = Organization.create_organization(created_by=people[0], title="load")
    for person in people:
        organization.add_user(person)
        person.active_organization = organization
        person.save(update_fields=["active_organization"])
    project = Project.objects.create(
        title="load", created_by=people[0], organization=organization, label_config=CONFIG, maximum_annotations=1
    )
    Task.objects.bulk_create(
        [Task(project=project, data={"text": f"This is text number {n}."}, overlap=1) for n in range(units)], 1000
    )
    print(project.pk)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
