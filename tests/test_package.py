"""The package as pip installs it: built, installed in a separate environment, and run in an empty folder."""

import http.cookiejar
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from annotate.management.reference import PARTS
from benchmarks.place import free_port
from corpora.system import VERSION

pytestmark = pytest.mark.slow


ROOT = Path(__file__).resolve().parents[1]
# Records what a process of the environment opens or lists of the checkout, besides the packages that are needed.
WATCH = """
import os, sys

def watch(event, args):
    if event in ("open", "os.listdir", "os.scandir") and args and isinstance(args[0], (str, bytes, os.PathLike)):
        path = os.path.realpath(os.fsdecode(args[0]))
        if path.startswith({checkout!r}) and not path.startswith({packages!r}):
            log = os.open({log!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(log, f"{{path}}\\n".encode())
            os.close(log)

sys.addaudithook(watch)
"""


class Installed:
    """The command in its environment, with an empty folder to run in and a home folder."""

    def __init__(self, venv: Path, place: Path) -> None:
        self.venv, self.folder, self.home = venv, place / "empty", place / "home"
        [self.packages] = venv.glob("lib/python*/site-packages")
        self.read_of_checkout = read_of_checkout(venv)
        self.read_of_checkout.unlink(missing_ok=True)
        for path in (self.folder, self.home):
            path.mkdir()

    @property
    def env(self) -> dict[str, str]:
        prefixes = ("PYTHON", "ASSAY_", "DATABASE_URL", "DJANGO_", "XDG_", "GUNICORN_", "VIRTUAL_ENV")
        return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)} | {
            "HOME": str(self.home),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self, program: str, *words: str, **env: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.venv / "bin" / program, *words],
            cwd=self.folder,
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    def says(self, code: str, **env: str) -> str:
        done = self.run("python", "-c", code, **env)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @contextmanager
    def serving(self, *words: str):
        """Run `assay serve` on a free port, and yield the process, its address and its output once it answers."""
        port = free_port()
        command = [self.venv / "bin" / "assay", "serve", "--port", str(port), *words]
        with subprocess.Popen(
            command, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as server:
            try:
                lines = []
                for line in server.stdout:
                    lines.append(line)
                    if line.startswith("Serving "):
                        break
                address = f"http://localhost:{port}"
                while server.poll() is None and not answers(address):
                    time.sleep(0.05)
                assert server.poll() is None, "".join(lines) + server.stdout.read()
                yield server, address, "".join(lines)
            finally:
                server.kill()


def read_of_checkout(venv: Path) -> Path:
    return venv / "read"


def python(*words: str) -> None:
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address).close()
    except urllib.error.URLError as error:
        return not isinstance(error.reason, ConnectionRefusedError)
    return True


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    quiet = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation")
    python("-m", "pip", "wheel", *quiet, "--wheel-dir", str(folder), str(ROOT))
    [built] = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def venv(wheel, tmp_path_factory):
    venv = tmp_path_factory.mktemp("installed") / "venv"
    python("-m", "venv", "--without-pip", str(venv))
    python("-m", "pip", "--python", str(venv), "install", "--no-index", "--no-deps", str(wheel))
    [packages] = venv.glob("lib/python*/site-packages")
    # The required packages are there already, so nothing is downloaded.
    needed = sysconfig.get_path("purelib")
    (packages / "needed.pth").write_text(f"{needed}\n")
    watch = WATCH.format(checkout=f"{ROOT}/", packages=os.path.realpath(needed), log=str(read_of_checkout(venv)))
    (packages / "assay_watch.py").write_text(watch)
    (packages / "watch.pth").write_text("import assay_watch\n")
    return venv


@pytest.fixture
def installed(venv, tmp_path):
    return Installed(venv, tmp_path)


def in_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def committed(*folders):
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", *folders], cwd=ROOT, capture_output=True, check=True, text=True
    )
    return {name for name in listing.stdout.splitlines() if (ROOT / name).is_file()}


# The parts of deploy/ that only a checkout has.
FOR_THE_SOURCE = {"Containerfile", "Containerfile.dockerignore", "compose.yaml", "README.md", ".gitignore"}


def test_the_wheel_holds_every_file_of_the_program_and_what_the_demo_needs(wheel):
    left_out = {f"deploy/{name}" for name in FOR_THE_SOURCE}
    wanted = committed("annotate", "corpora", "deploy", "assay.py") - left_out
    needed = re.findall(r'"\./(\S+?)"', (ROOT / "fixtures/demo.toml").read_text(encoding="utf-8"))
    packed = in_wheel(wheel)
    assert wanted - packed == set()
    assert {f"annotate/demo/{name}" for name in ("demo.toml", "README.md", *needed)} - packed == set()


def test_the_wheel_puts_nothing_of_a_name_that_is_not_its_own_among_the_packages(wheel):
    assert wheel.name == f"assay-{VERSION}-py3-none-any.whl"
    tops = {name.partition("/")[0] for name in in_wheel(wheel)} - {"assay.py"}
    assert tops == {"annotate", "corpora", "deploy", f"assay-{VERSION}.dist-info"}
    assert not {f"deploy/{name}" for name in (*FOR_THE_SOURCE, "env")} & in_wheel(wheel)


def test_what_is_installed_is_run_and_not_the_checkout(installed):
    process = installed.run("assay", "--version")
    assert (process.stdout, process.stderr, process.returncode) == (f"Assay {VERSION}\n", "", 0)
    assert installed.says("from importlib.metadata import version; print(version('assay'))") == VERSION
    for package in ("annotate", "corpora", "deploy"):
        assert installed.says(f"import {package}; print({package}.__file__)") == str(
            installed.packages / package / "__init__.py"
        )
    listed = installed.run("assay", "--help").stdout
    assert listed.startswith(f"Assay {VERSION} ")
    assert "For developers" not in listed


DATA = "from deploy import settings; print(settings.DATA_DIR)"


def test_data_lie_where_a_users_programs_keep_theirs_unless_another_folder_is_named(installed, tmp_path):
    share = tmp_path / "share"
    assert installed.says(DATA) == str(installed.home / ".local/share/assay")
    assert installed.says(DATA, XDG_DATA_HOME=str(share)) == str(share / "assay")
    assert installed.says(DATA, XDG_DATA_HOME=str(share), ASSAY_DATA_DIR="here") == str(installed.folder / "here")


def test_an_empty_installation_says_how_to_make_a_manager_who_can_then_log_in(installed):
    with installed.serving() as (server, address, output):
        link = re.search(r"There is no manager yet\. Open (\S+/welcome/\S+/) to create", output)[1]
        assert link.startswith(address)
        assert "Welcome to Assay" in urllib.request.urlopen(link).read().decode()
        assert f"with the data in {installed.home}/.local/share/assay. Press Ctrl-C to stop.\n" in output
        server.send_signal(signal.SIGINT)
        assert server.wait() == 0
    made = installed.run("assay", "add_manager", "meg")
    assert f"Log in at {address}/ (" in made.stdout
    password = re.search(r"the password  (\S+)  \(", made.stdout)[1]
    with installed.serving() as (server, address, output):
        assert "manager" not in output
        browser = log_in(address, "meg", password)
        assert f"Assay {VERSION}" in browser.open(f"{address}/manage/").read().decode()
        server.terminate()
        assert server.wait() == 0


def test_the_demo_is_served_by_what_is_installed_and_nothing_of_the_checkout_is_read(installed):
    # Files in the current folder are not part of the program.
    for name in ("deploy.py", "corpora.py", "gunicorn.conf.py"):
        (installed.folder / name).write_text("raise Exception('This is not the program.')\n")
    before = listing(installed.packages), listing(installed.folder)
    with installed.serving("--demo") as (server, address, output):
        password = re.search(r"the password  (\S+)  as", output)[1]
        browser = log_in(address, "anna", password)
        while "Which language is this post in?" not in (home := browser.open(f"{address}/").read().decode()):
            time.sleep(0.2)
        for path in re.findall(r'href="(/static/[^"]+)"', home):
            assert browser.open(f"{address}{path}").status == 200
        assert browser.open(f"{address}/tasks/demo/").status == 200
        server.terminate()
        assert server.wait() == 0
        assert "Traceback" not in output + server.stdout.read()
    assert (listing(installed.packages), listing(installed.folder)) == before
    assert not installed.read_of_checkout.exists(), installed.read_of_checkout.read_text()
    assert (installed.home / ".local/share/assay/corpora/demo/manifest.json").is_file()


def test_the_watch_sees_what_is_read_of_the_checkout(installed):
    installed.says(f"open({str(ROOT / 'pyproject.toml')!r}).close()")
    assert installed.read_of_checkout.read_text() == f"{ROOT / 'pyproject.toml'}\n"


def listing(folder):
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def log_in(address, username, password):
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    page = browser.open(f"{address}/").read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[1]
    form = {"username": username, "password": password, "csrfmiddlewaretoken": token}
    browser.open(f"{address}/login/", urllib.parse.urlencode(form).encode())
    return browser


def test_the_table_of_dependencies_has_each_that_an_installation_may_have():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {("", name) for name in project["dependencies"]}
    needed |= {(f"`{extra}`", name) for extra, names in project["optional-dependencies"].items() for name in names}
    rows = [line.split(" | ") for line in PARTS["dependencies"]().splitlines()[2:]]
    assert sorted((extra.strip(), name.removeprefix("| ")) for name, extra, *_ in rows) == sorted(
        (extra, re.match(r"[\w.-]+", name)[0]) for extra, name in needed
    )
