"""The module `assay` in a real kernel and in scripts, with a real installation. test_notebook_tables.py tests its
results.
"""

import json
import re
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from tests import running
from tests.running import ROOT

pytestmark = pytest.mark.slow


NOTEBOOK = ROOT / "annotate" / "docs" / "notebook.ipynb"


def environment(folder):
    return running.environment(folder) | {
        "DJANGO_SETTINGS_MODULE": "deploy.settings",
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder.parent),
    }


@pytest.fixture(scope="module")
def installation(tmp_path_factory, migrated):
    """The data folder of a separate installation on SQLite, whose task `demo` is finished."""
    folder = tmp_path_factory.mktemp("installation") / "var"
    running.install(folder, migrated)
    subprocess.run([sys.executable, "-m", "tests.installation", "300"], env=environment(folder), cwd=ROOT, check=True)
    return folder


@pytest.fixture
def in_a_kernel(installation, tmp_path, monkeypatch):
    """in_a_kernel(notebook) runs its cells in a kernel of this interpreter, in tmp_path."""
    spec = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "this one", "language": "python"}))
    for name, value in (environment(installation) | {"HOME": str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    # The second is this worker's, once it has a browser (tests/conftest.py); it would lift the guard of the kernel.
    for name in ("DATABASE_URL", "DJANGO_ALLOW_ASYNC_UNSAFE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))

    def run(notebook):
        # No limit except against hanging.
        NotebookClient(notebook, timeout=3600, resources={"metadata": {"path": str(tmp_path)}}).execute()
        return [cell for cell in notebook.cells if cell.cell_type == "code"]

    return run


def printed(cell):
    return "".join(output.get("text", "") for output in cell.outputs)


def html(cell):
    return "".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)


def test_the_notebook_of_the_documentation_goes_from_a_corpus_to_a_measured_classifier(in_a_kernel, tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert [cell.outputs for cell in notebook.cells if cell.cell_type == "code" and cell.outputs] == []
    cells = in_a_kernel(notebook)
    by_start = {cell.source.split("\n")[0]: cell for cell in cells}
    assert ">demo</td>" in html(cells[0])
    assert "posts of demo: 1,525 rows, first 10 shown" in html(cells[1])
    assert re.search(r"written to gold/demo, in \d+ labels\.", printed(by_start[EXPORTS]))
    assert (tmp_path / "gold" / "demo" / "gold.parquet").exists()
    measured = next(cell for cell in cells if cell.source.startswith("coarse = "))
    assert "<h3>trigrams, measured on " in html(measured)
    assert "naive recall" in html(measured)
    assert re.search(r"\d\d\.\d% \[\d\d\.\d, \d\d\.\d\]", html(measured))
    apart = r"Trigrams less bigrams: [+-]\d+\.\d points of accuracy, between [+-]\d+\.\d and [+-]\d+\.\d\.\n"
    assert re.fullmatch(apart, printed(cells[-1]))


EXPORTS = 'outcome = assay.run("export_gold", task="demo", out="gold/demo")'
GUARDED = """
from django.core.exceptions import SynchronousOnlyOperation
import assay
tasks = assay.tasks()
from annotate.models import Task
try:
    Task.objects.count()
except SynchronousOnlyOperation:
    print("guarded", [task["name"] for task in tasks], len(assay.task("demo").judgments()) > 0)
"""
REFUSED = 'assay.corpus("july")'
INTERRUPTED = """
import os, signal, threading
from annotate.actions.action import Action
from annotate.notebook import campaign_data

begun, ended = threading.Event(), threading.Event()


def go_on(values, progress):
    try:
        while True:
            begun.set()
            progress.advance(1)
    finally:
        ended.set()


def interrupt():
    begun.wait()
    os.kill(os.getpid(), signal.SIGINT)


campaign_data.find_action = lambda name: Action("go_on", "Goes on.", (), go_on)
threading.Thread(target=interrupt).start()
try:
    assay.run("go_on")
except KeyboardInterrupt:
    print("interrupted", ended.is_set())
"""


def test_in_a_kernel_the_database_is_asked_outside_its_event_loop_and_refusals_are_a_sentence(in_a_kernel):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(text) for text in (GUARDED, REFUSED, INTERRUPTED)]
    )
    notebook.cells[1].metadata["tags"] = ["raises-exception"]
    guarded, refused, interrupted = in_a_kernel(notebook)
    assert printed(guarded) == "guarded ['demo'] True\n"
    (error,) = refused.outputs
    assert (error.ename, error.evalue) == (
        "AssayError",
        "The corpus 'july' does not exist. Create it with `assay import_corpus july FILE --licence LICENCE`, or with "
        "import_threads for pairs of a message and a reply.",
    )
    assert "During handling" not in "".join(error.traceback)
    assert printed(interrupted) == "interrupted True\n"


def script(text, folder, **changes):
    """Return the output of a separate Python process."""
    env = {name: value for name, value in (environment(folder) | changes).items() if value is not None}
    done = subprocess.run([sys.executable, "-c", text], env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


WITHOUT = """
import assay
gold = assay.gold({gold!r})
truth = {{row["id"]: row["label"] for row in gold.rows()}}
print(len(gold.to_arrow()), gold.evaluate(truth).value[0])
for ask in (assay.tasks, lambda: assay.task("demo"), lambda: assay.run("prelabel", corpus="demo")):
    try:
        ask()
    except assay.AssayError as error:
        print(error)
print(len(assay.corpora()))
set_of_two = assay.run("import_gold", file={published!r}, out={out!r}, name="two", design="uniform")
print(set_of_two.data["counts"]["labelled"])
"""


def test_without_an_installation_gold_sets_are_read_and_nothing_is_written(installation, tmp_path):
    exported = tmp_path / "gold"
    out = script(
        f'import assay; print(assay.run("export_gold", task="demo", out={str(exported)!r}).data["finished"])',
        installation,
    )
    assert out == "True\n"
    nowhere = tmp_path / "nowhere"
    (published := tmp_path / "published.tsv").write_text("de\t1\nen\t2\n", encoding="utf-8")
    paths = {"gold": exported, "published": published, "out": tmp_path / "imported"}
    text = WITHOUT.format(**{name: str(path) for name, path in paths.items()})
    first, *refused, corpora, imported = script(text, nowhere).splitlines()
    posts = len((exported / "gold.jsonl").read_text(encoding="utf-8").splitlines())
    assert first == f"{posts} 1.0"
    nothing = f"{nowhere} contains no installation. Select another folder with assay.use(folder) or ASSAY_DATA_DIR"
    assert refused == [f"{nothing}, or create an installation with `assay serve`."] * 3
    assert (corpora, imported) == ("0", "2")
    assert not nowhere.exists()


PRELABEL = """
import assay
print("begun")
print(assay.run("prelabel", corpus="c", processes=2).data["posts"])
"""


def test_a_script_prelabels_on_several_processes_and_none_of_them_runs_it_again(tmp_path, migrated):
    running.install(tmp_path / running.DATA, migrated)
    posts = tmp_path / "posts.jsonl"
    posts.write_text("".join(f'{{"id": {n}, "text": "Das ist der Text Nummer {n}."}}\n' for n in range(1200)))
    assert running.assay(tmp_path, "import_corpus", "c", posts, "--licence", "CC0-1.0").returncode == 0
    file = tmp_path / "my_script.py"
    file.write_text(PRELABEL, encoding="utf-8")
    # A worker imports nothing from the folder in which the script is started.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "corpora.py").write_text("raise SystemExit('not this one')", encoding="utf-8")
    env = environment(tmp_path / running.DATA)
    done = subprocess.run([sys.executable, file], env=env, cwd=elsewhere, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("begun\n1200\n", "", 0)


USE = """
import assay
for folder in ({there!r}, {there!r}, {other!r}, {missing!r}):
    try:
        assay.use(folder)
        print(len(assay.tasks()))
    except assay.AssayError as error:
        print(error)
"""


def test_another_installation_is_used_if_that_is_said_first(installation, tmp_path):
    missing = tmp_path / "missing"
    output = script(USE.format(there=str(installation), other=str(tmp_path), missing=str(missing)), tmp_path)
    assert output.splitlines() == [
        "1",
        "1",
        f"{installation} is already in use. Restart the kernel and call assay.use before any other function.",
        f"The folder {missing} does not exist. Specify the data folder of an installation.",
    ]


def test_wrong_settings_are_a_sentence(installation):
    output = script(
        "import assay\ntry:\n    assay.tasks\nexcept assay.AssayError as error:\n    print(error)",
        installation,
        ASSAY_TIME_ZONE="Berlin",
    )
    assert output.startswith("The settings are not valid: ASSAY_TIME_ZONE is 'Berlin'")
