import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor


def migrate(name):
    executor = MigrationExecutor(connection)
    executor.migrate([("annotate", name)])
    return MigrationExecutor(connection).loader.project_state([("annotate", name)]).apps


@pytest.fixture
def latest():
    yield
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_the_guidelines_of_earlier_tasks_become_their_first_version(latest):
    earlier = migrate("0005_several_draws_only").get_model("annotate", "Task")
    earlier.objects.create(name="old", title="Old", task_type="language", guidelines="# As it was", labels=["de"])
    now = migrate("0008_guidelines_only").get_model("annotate", "Guidelines")
    versions = now.objects.values_list("task__name", "language", "major", "minor", "text")
    assert list(versions) == [("old", "en", 1, 0, "# As it was")]
