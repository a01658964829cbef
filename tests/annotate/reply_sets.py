"""Sets of message-reply pairs as export_pairs writes them, and predictions for them."""

from annotate.goldsets.set_folder import write_manifest
from corpora.storage.layout import digest_of


def reply_set(folder, tests, responses, drawn=None):
    """Write a set. tests: (message, reply) pairs by language. responses, drawn: the response set and the random replies
    of each language."""
    for language, pairs in tests.items():
        (folder / "test" / language).mkdir(parents=True)
        rows = [f"{message}\t{reply}\t{language}\t0.9731\n" for message, reply in pairs]
        (folder / "test" / language / "pairs.tsv").write_text("".join(rows), encoding="utf-8")
    for language, replies in responses.items():
        (folder / "rsp_set" / language).mkdir(parents=True)
        rows = [f"-{rank}.5\t{reply}\t{rank}\n" for rank, reply in enumerate(replies, 1)]
        (folder / "rsp_set" / language / "response_lm_cluster.txt").write_text("".join(rows), encoding="utf-8")
    for language, replies in (drawn or {}).items():
        (folder / "random_set" / language).mkdir(parents=True)
        (folder / "random_set" / language / "replies.txt").write_text("\n".join(replies) + "\n", encoding="utf-8")
    files = [path for path in folder.rglob("*") if path.is_file()]
    manifest = {
        "format": 2,
        "made_by": "export_pairs",
        "corpus": {"name": folder.name},
        "files": {path.relative_to(folder).as_posix(): digest_of(path) for path in sorted(files)},
    }
    write_manifest(folder, manifest)
    return folder


def responses_file(folder, language, rows):
    """Write predictions. rows: the message, the reference and the suggested replies of each line."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{language}_model_responses.txt"
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path
