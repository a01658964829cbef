"""import_gold and evaluate."""

import json
import shutil

from tests.inputs.conftest import FIXTURES

GOLD = "".join(f"{label}\t{n}\n" for n, label in enumerate(["de", "en", "fr"] * 20, 1))
PUBLISHED = (FIXTURES / "twitter_langid" / "uniformly_sampled.tsv").read_text(encoding="utf-8")
IDS = list(dict.fromkeys(line.split("\t")[1] for line in PUBLISHED.splitlines() if not line.endswith("\t0")))


def gold(*options):
    return " ".join(["import_gold FILE.tsv --out new --design uniform --name x", *options])


def predicted(label, more=""):
    return ("".join(f"{key}\t{label}\n" for key in IDS) + more).encode()


def edited(path):
    """Write a gold set with a changed label."""
    shutil.copytree("published", path)
    lines = (path / "gold.jsonl").read_text().splitlines(keepends=True)
    (path / "gold.jsonl").write_text("".join([lines[0].replace('"label": "', '"label": "x'), *lines[1:]]))


def without(name):
    def make(path):
        shutil.copytree("published", path)
        (path / name).unlink()

    return make


def manifest(change):
    def make(path):
        shutil.copytree("published", path)
        contents = json.loads((path / "manifest.json").read_text())
        change(contents)
        (path / "manifest.json").write_text(json.dumps(contents))

    return make


def foreign(path):
    path.mkdir()
    (path / "thesis.tex").write_text("years of work")


IMPORT_GOLD = [
    (gold(), GOLD.encode(), 0, "60 of 60 rows written"),
    (gold(), ("\ufeff" + GOLD).encode(), 0, "60 of 60 rows written"),
    (gold(), GOLD.replace("\n", "\r\n").encode(), 0, "60 of 60 rows written"),
    (gold(), (GOLD + "de\t1e3\nde\t1.0\nde\tNaN\n").encode(), 0, "3  an id that another program has rewritten"),
    (gold("--max-rejects 0"), (GOLD + "german\tx\n").encode(), 3, "more than --max-rejects 0 allows"),
    (gold(), (GOLD + GOLD).encode(), 0, "60 of 120 rows written"),
    (gold(), lambda path: path.symlink_to("/proc/self/mem"), 1, "cannot be read: Input/output error"),
    (gold().replace("uniform", "other"), GOLD.encode(), 1, "--design is 'other'"),
    (gold().replace("--out new", "--out unfinished"), GOLD.encode(), 1, "is not empty and does not contain the"),
    ("import_gold FILE.tsv", GOLD.encode(), 2, "Required arguments are missing: --out, --design, --name"),
]


def evaluate(*options, to="published"):
    return " ".join([f"evaluate FILE.tsv --gold {to}", *options])


EVALUATE = [
    (evaluate(), predicted("en"), 0, "FILE.tsv"),
    (evaluate(), predicted("en", "outside\tklingon\n1e3\ten\n"), 1, "1e3 is a number"),
    (evaluate(), predicted("en", "outside\tklingon\nother\ten\n"), 0, "ignored 2 rows for posts outside"),
    (evaluate(), predicted("en", "outside\tde\noutside\ten\n"), 0, "ignored 2 rows for posts outside"),
    (evaluate(), predicted("en-GB"), 0, "en-GB as en"),
    (evaluate(), predicted("en", f"{IDS[0]}\tde\n"), 1, "repeats 1 id"),
    (evaluate(), "".join(predicted("en").decode().splitlines(True)[9:]).encode(), 1, "has no label for 9 of"),
    (evaluate(), b"x\ten\n", 1, "has no label for"),
    (evaluate("--out FILE.out"), predicted("en"), 1, "FILE.out is a file"),
    (evaluate("--vanished nowhere.txt"), predicted("en"), 1, "nowhere.txt cannot be read"),
    (evaluate("--measure beauty"), predicted("en"), 1, "--measure is 'beauty'"),
    (evaluate("--measure precision recall"), predicted("en"), 1, "The file recall does not exist"),
    (evaluate(to="unfinished"), predicted("en"), 1, "unfinished"),
    ("evaluate langid --gold FILE.set", manifest(lambda contents: contents.update(format=99)), 1, "has format 99"),
    ("evaluate langid --gold FILE.set", manifest(lambda contents: contents.clear()), 1, "has no key 'format'"),
    ("evaluate klingon --gold published --corpus demo", None, 1, "no predictor 'klingon'"),
    ("evaluate nowhere --gold published", None, 1, "nowhere|records"),
]


VERIFY_LOTS = [
    ("baseline published", None, 1, "The files of the set have no texts"),
    ("baseline nowhere", None, 1, "There is no folder and no task named nowhere."),
    ("hydrate nowhere --out new", None, 1, "folder nowhere does not exist"),
    ("hydrate published --out new --texts nowhere.jsonl", None, 1, "nowhere.jsonl does not exist"),
    ("verify_lots unfinished", None, 1, "unfinished does not contain the secret of its random draws yet"),
    ("verify_lots published", None, 1, "has no random draws to verify, because the set was imported"),
    ("verify_lots nowhere", None, 1, "folder nowhere does not exist"),
    ("publish nowhere --archive new.zip", None, 1, "folder nowhere does not exist"),
    ("publish published --archive new.rar", None, 1, "name a file that ends in .zip or .tar.gz"),
    ("publish published", None, 1, "Set --repo OWNER/NAME, or --archive FILE"),
]


def predictions(name="de-en", content=b"sports\n" * 10):
    """Write a folder with a file of predictions for the balanced set, which has test sets of ten documents."""

    def make(path):
        path.mkdir()
        (path / f"{name}.prediction").write_bytes(content)

    return make


def of_folder(path):
    path.mkdir()
    (path / "de-en.prediction").mkdir()


DOCUMENTS = "evaluate FILE.pairs --gold topics"
NO_PAIR = "is not named after a language pair. The name must be .* such as de-en.prediction"
OF_DOCUMENTS = [
    (DOCUMENTS, predictions(), 0, "transfer 50.0%"),
    (DOCUMENTS, predictions("joint-en"), 0, r"mean accuracy \(joint\) 50.0%"),
    (DOCUMENTS, predictions(content="\ufeffsports\r\n".encode() * 1 + b" sports \r\n" * 9), 0, "50.0%"),
    (DOCUMENTS, predictions(content=b"sports\n" * 9 + b"sports"), 0, "50.0%"),
    (DOCUMENTS, predictions("english"), 1, NO_PAIR),
    (DOCUMENTS, predictions("de_en"), 1, NO_PAIR),
    (DOCUMENTS, predictions("german-english"), 1, NO_PAIR),
    (DOCUMENTS, predictions("de-joint"), 1, NO_PAIR),
    (DOCUMENTS, predictions("DE-EN"), 1, NO_PAIR),
    (DOCUMENTS, predictions(".de-en"), 1, NO_PAIR),
    (DOCUMENTS, predictions("fr-en"), 1, "for the training language fr, which is not in the set. .* de, en and joint"),
    (DOCUMENTS, predictions("de-zh-CN"), 1, "for the test language zh-CN, .* no test documents. .* in de, en"),
    (DOCUMENTS, predictions(content=b"sports\n" * 9), 1, "has 9 lines, but mldoc-indices/english.test has 10 rows"),
    (DOCUMENTS, predictions(content=b"sports\n" * 9 + b"politics\n"), 1, "line 10: 'politics' is not .* labels are"),
    (DOCUMENTS, predictions(content=("sports\n" * 10).encode("utf-16")), 1, "is not UTF-8"),
    (DOCUMENTS, of_folder, 1, "Cannot read .*de-en.prediction: Is a directory"),
    (DOCUMENTS, lambda path: path.mkdir(), 1, "contains no prediction files. Add a file for each language pair"),
    (DOCUMENTS, b"sports\n", 1, "The file name FILE.pairs does not show the format"),
    (DOCUMENTS.replace("topics", "untested"), predictions(), 1, "has no test split to predict. Open a task with"),
    (DOCUMENTS + " --measure recall", predictions(), 1, "--measure cannot be used with .* only with sets of posts"),
    ("evaluate langid --gold topics", None, 1, "Some posts in corpus topics have no votes"),
]

RANKED = "evaluate FILE.run --gold acts"
LINE = "a Q0 cat 1 0.9 mine\n"


def run(*lines):
    return "".join((LINE, *lines)).encode()


OF_RANKED = [
    (RANKED, run(), 0, r"RP@K \(K 5\) 25.0%"),
    (RANKED, run("a Q0 elk 2 0.9 mine\n", "b Q0 elk 1 0.9 mine\n"), 0, r"RP@K \(K 5\) 100.0%"),
    (RANKED, run("x Q0 elk 1 0.9 mine\n"), 0, "ignored 1 document outside the set"),
    (RANKED, b"\xef\xbb\xbf" + run().replace(b"\n", b"\r\n"), 0, "1 measured document has no ranking"),
    (RANKED, run("a Q0 Elk 2 0.5 mine\n"), 1, "line 2: 'Elk' is not one of the 3 labels"),
    (RANKED, run("a elk 0.5\n"), 1, "line 2: The row has 3 fields, but a run has 6: document, Q0, label"),
    (RANKED, lambda path: path.mkdir(), 1, "FILE.run is a folder. Specify a file: a TREC ru"),
    ("evaluate nowhere.run --gold acts", None, 1, "The file nowhere.run does not exist, and the gold set does not"),
    (RANKED + " --split train", b"t Q0 cat 1 0.9 mine\n", 0, "1 document of the split train"),
    (RANKED + " --split validation", run(), 1, "--split is 'validation'. It must be one of train, dev, test"),
    (RANKED.replace("acts", "testless"), run(), 1, "has no documents in the split test. Its splits are: train"),
    (RANKED.replace("acts", "waiting") + " --unfinished", run(), 0, "!! The gold set .* is unfinished"),
    (RANKED + " --gold topics", run(), 1, "acts and topics are sets of different kinds"),
    (RANKED + " --first 1", run(), 0, r"ranked\s+among\s+the\s+first\s+1"),
    (RANKED + " --first 0", run(), 1, "--first is 0. It must be 1 or more"),
    (RANKED + " --threshold -0.5", run(), 0, r"score\s+of\s+at\s+least\s+-0.5"),
    (RANKED + " --threshold nan", run(), 1, "--threshold: 'nan' is not a finite number"),
    (RANKED + " --frequent-over 0", run(), 1, "--frequent-over is 0. It must be 1 or more"),
    (RANKED + " --against nowhere.run", run(), 1, "The file nowhere.run does not exist, and the gold set"),
    (evaluate("--frequent-over 5"), predicted("en"), 1, "--frequent-over cannot be used with .* only with ranked"),
    ("evaluate langid --gold acts", None, 1, "The file langid does not exist, and the gold set"),
]
TABLE = [*IMPORT_GOLD, *EVALUATE, *VERIFY_LOTS, *OF_DOCUMENTS, *OF_RANKED]
