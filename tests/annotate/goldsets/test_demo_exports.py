"""The exported files of all tasks of the demo, compared with those that an earlier version wrote.

Digests of the demo's files are in tests/inputs/demo_exports.json. After an intended change to exported files, delete
that file. The test then fails, but it writes the new digests.
"""

import json
import re
from hashlib import sha256
from itertools import count
from pathlib import Path

import pytest

from annotate.goldsets.exporter import export
from annotate.management import demo
from annotate.models import Task

pytestmark = [pytest.mark.slow, pytest.mark.on_sqlite]

EXPECTED = Path(__file__).resolve().parents[2] / "inputs" / "demo_exports.json"
# Times, dates, keys, digests, and the versions of Assay and of libraries differ between runs.
VARYING = rb"\d{4}-\d\d-\d\d(?:T[\d:.]+Z)?|\b[0-9a-f]{16,}\b|\b\d+\.\d+\.\d+\b"


def digest_of(path):
    return sha256(re.sub(VARYING, b"*", path.read_bytes())).hexdigest()


def test_exports_of_the_demo_are_the_same_as_before(data_dir, db, tmp_path, monkeypatch):
    numbers = count(1)
    monkeypatch.setattr("secrets.token_hex", lambda size: f"{next(numbers):0{2 * size}x}")
    demo.accounts("a password")
    for task in demo.contents()[1]:
        demo.create(task)
    for task in Task.objects.order_by("name"):
        export(task, tmp_path / task.name)
    # Parquet files and the digests of lines are made from the same rows. Times cannot be masked in them.
    files = [path for path in tmp_path.rglob("*") if path.suffix not in (".parquet", "") and path.is_file()]
    digests = {
        path.relative_to(tmp_path).as_posix(): digest_of(path)
        for path in sorted(files)
        if not path.name.endswith(".digests.txt")
    }
    if not EXPECTED.exists():
        EXPECTED.write_text(json.dumps(digests, indent=1) + "\n")
        pytest.fail(f"{EXPECTED} was missing. Compare the new file with the committed one.")
    assert digests == json.loads(EXPECTED.read_text())
