"""The documents that conferences and journals require with a data set.

- croissant.json: Croissant 1.1 (MLCommons 2026) with the Responsible-AI vocabulary 1.0
- DATA_STATEMENT.md: the data statement of Bender and Friedman (TACL 2018)
- METHODS.tex: a paragraph and a table for the paper

All figures come from the manifest. Facts that Assay cannot know (PERSONAL) are read from project.toml in the data
folder, which the `project` command writes. Without them, the documents have placeholders.
"""

import json
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import tomlkit
from django.conf import settings
from django.template.loader import render_to_string

from annotate.kinds.interface_language import label_name
from annotate.reports.tables import many
from corpora.core.arrow import pq
from corpora.core.voters import VOTERS
from corpora.system import VERSION

# Key in project.toml -> question, which only the authors of the set can answer.
PERSONAL: Mapping[str, str] = {
    "creators": "the people or institutions that publish the set, separated by semicolons",
    "url": "the address at which the set is published",
    "uses": "what the set is intended for, and what it must not be used for",
    "biases": "known biases, and the effects on society that the set may have",
    "maintenance": "who maintains the set, for how long, and where errors can be reported",
}
PROJECT = "project.toml"
ROWS = 30  # maximum number of rows in the table for a paper
MISSING = "[To be written by the authors: {}.]"
CROISSANT, STATEMENT, METHODS = STATEMENTS = ("croissant.json", "DATA_STATEMENT.md", "METHODS.tex")

Manifest = Mapping[str, Any]

_TYPES = {pa.string(): "sc:Text", pa.int64(): "sc:Integer", pa.int32(): "sc:Integer", pa.bool_(): "sc:Boolean"}
_CROISSANT_TERMS = """
    arrayShape citeAs column containedIn equivalentProperty extract field fileProperty fileObject fileSet format
    includes isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace
    samplingRate separator source subField transform
"""
# The context that every Croissant file must contain (Croissant 1.1, section "Namespaces").
_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{"sc": "https://schema.org/", "cr": "http://mlcommons.org/croissant/", "dct": "http://purl.org/dc/terms/"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    **{"conformsTo": "dct:conformsTo", "data": {"@id": "cr:data", "@type": "@json"}},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{name: {"@container": "@language"} for name in ("name", "description")},
    **{name: f"cr:{name}" for name in _CROISSANT_TERMS.split()},
}


def read_project() -> dict[str, str]:
    """Return the values in project.toml for the keys of PERSONAL. Missing keys are left out."""
    path = Path(settings.DATA_DIR) / PROJECT
    project = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {key: str(project[key]) for key in PERSONAL if project.get(key)}


def write_project(project: Mapping[str, str]) -> None:
    (Path(settings.DATA_DIR) / PROJECT).write_text(tomlkit.dumps(dict(project)), encoding="utf-8")


@dataclass(frozen=True)
class Facts:
    """Facts about a set, mostly as sentences. A fact is empty if the manifest does not contain it."""

    title: str
    languages: list[str]
    sampling: str
    protocol: str
    annotators: str
    answers_each: str
    analysis: str
    machines: str
    preparation: str
    personal_data: str
    limits: str
    days: list[str]


def facts_of(manifest: Manifest, noun: str) -> Facts:
    """Return the facts about a set.

    manifest: the set's manifest
    noun: what a row of the set is called, such as `post`
    """
    task, counts = manifest["task"], manifest["counts"]
    people = manifest.get("people") or {}
    answers = people.get("answers_each") or {}
    languages = list(task["languages"]) or [label for label in counts["by_label"] if label in task["labels"]]
    of_posts = counts.get("masked") is not None
    authors = "Authors are stored as keyed hashes, and annotators under pseudonyms."
    least, most = answers.get("least"), answers.get("most")
    number = f"{least}" if least == most else f"{least} to {most}"
    return Facts(
        title=task["title"] or task["name"],
        languages=languages,
        sampling=_sampling(manifest, noun),
        protocol=_protocol(manifest, noun),
        annotators=_annotators(people, languages),
        answers_each=f"{number} ({answers['mean']:.2f} on average)" if answers.get("mean") is not None else "",
        analysis=_analysis(manifest),
        machines="; ".join(_version(*voter) for panel in manifest["detectors"] for voter in panel.items()),
        preparation=(
            "Mentions of users in the texts were masked before annotators saw them."
            if of_posts
            else "The texts are unchanged."
        ),
        personal_data=(
            f"{authors if of_posts else 'Annotators are stored under pseudonyms.'} The texts may contain personal data."
        ),
        limits=_limits(manifest, noun),
        days=people.get("answered") or [],
    )


def _version(name: str, version: str) -> str:
    """Return the name and version of a voter. Digests are shortened, because the manifest has them in full."""
    title = VOTERS[name].title if name in VOTERS else name
    return f"{title} ({re.sub('[0-9a-f]{64}', lambda digest: digest[0][:12], version)})"


def _sampling(manifest: Manifest, noun: str) -> str:
    corpus, draws = manifest["corpus"], manifest["draws"]
    drawn, frame = sum(draw["size"] for draw in draws), sum(draw["frame_size"] for draw in draws)
    origin = f"the corpus {corpus['name']} ({corpus['source'] or 'source not stated'})"
    seed = f"{manifest['design']} design, seed {draws[0]['seed']}"
    sample = (
        f"All {many(frame, noun)} of {origin} were to be labelled."
        if drawn == frame
        else f"{many(drawn, noun)} of {frame:,} were drawn at random from {origin} ({seed})."
    )
    return f"{sample} {manifest['counts']['labelled']:,} of them have a label."


def _protocol(manifest: Manifest, noun: str) -> str:
    task, people = manifest["task"], manifest.get("people") or {}
    rules = {"majority": "the majority answer", "median": "the median of the grades"}
    label = rules.get(str(task.get("aggregation")), "the annotators’ answer")
    conflict = "left out" if task.get("on_conflict") == "DISCARDED" else "decided by an adjudicator"
    number = task.get("redundancy") or 1
    early = " (fewer if the first agreed)" if task.get("stop_early") else ""
    question = task["title"] or task["type"]
    annotators = "one annotator" if number == 1 else f"{number} annotators{early}"
    sentences = [
        _auto_labelled(manifest, noun),
        f"Each manually annotated {noun} was shown to {annotators} with the question “{question}”.",
        "" if people.get("imported") else "Annotators did not see each other’s answers.",
        f"The label is {label}; conflicts are {conflict}.",
        _suggested(manifest),
    ]
    if people.get("imported"):
        sentences.append(
            f"The answers of {many(people['imported'], 'annotator')} were imported from another tool; how these "
            "annotators worked is not known."
        )
    if task.get("test_items"):
        sentences.append(
            f"Annotators first had to pass a test of {many(task['test_items'], 'item')}, with at least "
            f"{task['pass_mark']:.0%} of the answers correct."
        )
    return " ".join(filter(None, sentences))


def _auto_labelled(manifest: Manifest, noun: str) -> str:
    """Describe the rows on which machine voters agreed, and how many of these were audited; "" without voters."""
    strata = manifest["counts"].get("by_stratum") or {}
    if not strata.get("agreed") or not manifest["detectors"]:
        return ""
    voters = len(manifest["detectors"][0])
    rule = f"{manifest['task'].get('agree') or voters} of {voters}"
    audited = strata.get("audited", 0)
    return (
        f"Where {rule} machine voters agreed ({many(strata['agreed'] + audited, noun)}), their label was accepted. "
        f"Annotators labelled a random sample of {audited:,} of these, and all others."
    )


def _suggested(manifest: Manifest) -> str:
    systems = ", ".join((manifest.get("suggestions") or {}).get("systems") or ())
    hidden = manifest["task"].get("blind_share")
    blind = f", which was hidden at random from {hidden:.0%} of the answers" if hidden else ""
    return f"Annotators saw a suggestion by {systems}{blind}." if systems else ""


def _annotators(people: Mapping[str, Any], languages: Collection[str]) -> str:
    if not people:
        return ""
    levels = "; ".join(
        f"{label_name(language)}: {', '.join(f'{number} of level {level}' for level, number in by_level.items())}"
        for language, by_level in people["levels"].items()
        if language in languages
    )
    answers = f"{many(people['annotators'], 'annotator')} gave {many(people['answers'], 'valid answer')}."
    skills = f"Their languages, from level 1 to 5 (native): {levels or 'not stated'}."
    return f"{answers} {skills}{_qualification(people)}"


def _qualification(people: Mapping[str, Any]) -> str:
    """Describe how annotators qualified for a task with a test; "" if nobody took a test."""
    tests, qualified = people["tests"], people["qualified"]
    if not tests["taken"]:
        return ""
    let_in = f"; {many(qualified['let_in'], 'annotator')} qualified without a test" if qualified["let_in"] else ""
    passed = f"Tests taken: {tests['taken']:,}, passed: {tests['passed']:,}, by "
    return f" {passed}{many(qualified['by_test'], 'annotator')}{let_in}."


def _analysis(manifest: Manifest) -> str:
    """Describe inter-annotator agreement, the error rate of machine labels, and accuracy on hidden gold answers."""
    sentences = []
    whole = (manifest.get("agreement") or {}).get("all") or {}
    for key, name in (("nominal", "Krippendorff’s alpha"), ("ordinal", "Krippendorff’s alpha (ordinal)")):
        if (figure := whole.get(key)) and figure["value"] is not None:
            sentences.append(f"{name} is {_interval(figure)}.")
    audit = (manifest.get("audit") or {}).get("overall")
    if audit and audit["value"] is not None:
        sentences.append(f"The error rate of the machine labels is {_interval(audit, percent=True)}.")
    honeypots = (manifest.get("honeypots") or {}).get("accuracy")
    if honeypots and honeypots["value"] is not None:
        sentences.append(f"Accuracy on hidden gold answers is {_interval(honeypots, percent=True)}.")
    return " ".join(sentences)


def _interval(figure: Mapping[str, Any], *, percent: bool = False) -> str:
    values = (figure["value"], figure["low"], figure["high"])
    value, low, high = (f"{number:.1%}" if percent else f"{number:.3f}" for number in values)
    return f"{value} (95% interval {low} to {high})"


def _limits(manifest: Manifest, noun: str) -> str:
    left_out = manifest["counts"]["left_out"]
    reasons = ", ".join(f"{number:,} {reason.replace('_', ' ')}" for reason, number in left_out.items())
    unfinished = "" if manifest["finished"] else f"The set is unfinished: some {noun}s are not fully annotated yet. "
    number = sum(left_out.values())
    are = "is" if number == 1 else "are"
    return unfinished + (f"{many(number, noun)} {are} left out ({reasons})." if number else "Nothing is left out.")


def or_missing(project: Mapping[str, str], key: str) -> str:
    return project.get(key) or MISSING.format(PERSONAL[key])


# --- The documents


def documents(manifest: Manifest, folder: Path, card: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each document, by file name.

    folder: folder with the set's Parquet files
    card: template context of the set's card (card.py)
    """
    noun, about = card["one"], card["sentence"]
    facts, project = facts_of(manifest, noun), read_project()
    personal = {key: or_missing(project, key) for key in PERSONAL}
    context = {"manifest": manifest, "facts": facts, "personal": personal, "about": about, "version": VERSION}
    context["labels"] = _label_rows(manifest["counts"]["by_label"])
    return {
        CROISSANT: _croissant(manifest, folder, card, facts, project),
        STATEMENT: render_to_string(f"annotate/{STATEMENT}", context),
        METHODS: render_to_string(f"annotate/{METHODS}", context),
    }


def _label_rows(by_label: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the rows of the label table. If it would not fit on a page, rare labels share the last row."""
    if len(by_label) <= ROWS:
        return list(by_label.items())
    first = sorted(by_label.items(), key=lambda item: (-item[1], item[0]))[: ROWS - 1]
    others = sum(by_label.values()) - sum(number for _, number in first)
    return [*first, (f"{len(by_label) - len(first):,} other labels", others)]


def _croissant(
    manifest: Manifest, folder: Path, card: Mapping[str, Any], facts: Facts, project: Mapping[str, str]
) -> str:
    splits: Mapping[str, str] = card["names"]["splits"]
    creators = [name.strip() for name in project.get("creators", "").split(";") if name.strip()]
    by_machine = (manifest["counts"].get("by_stratum") or {}).get("agreed")
    responsible = {
        "dataCollection": facts.sampling,
        "dataCollectionType": ["Manual Human Curator", *(["Software Collection"] if by_machine else [])],
        # Imported answers are dated by their import, not by when annotators gave them.
        "dataCollectionTimeFrame": [] if (manifest.get("people") or {}).get("imported") else facts.days,
        "dataPreprocessingProtocol": facts.preparation,
        "dataAnnotationProtocol": facts.protocol,
        "dataAnnotationPlatform": f"Assay {VERSION}",
        "dataAnnotationAnalysis": facts.analysis,
        "annotationsPerItem": facts.answers_each,
        "annotatorDemographics": facts.annotators,
        "machineAnnotationTools": facts.machines,
        "dataLimitations": facts.limits,
        "personalSensitiveInformation": facts.personal_data,
        "dataUseCases": or_missing(project, "uses"),
        "dataBiases": or_missing(project, "biases"),
        "dataReleaseMaintenancePlan": or_missing(project, "maintenance"),
    }
    content = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": manifest["task"]["name"],
        "description": f"{facts.title} {card['sentence']}",
        "license": _licence(manifest["corpus"]["licence"], is_known=bool(card["licence"])),
        "url": project.get("url"),
        "version": card["version"],
        "datePublished": facts.days[-1] if facts.days else None,
        "inLanguage": facts.languages,
        "creator": [{"@type": "sc:Organization", "name": name} for name in creators],
        "citeAs": f"{'; '.join(creators)}: {facts.title}" if creators else facts.title,
        **{f"rai:{name}": value for name, value in responsible.items() if value},
        "distribution": [_file(name, manifest["files"][name]) for name in splits.values()],
        "recordSet": [_records(split, name, pq.read_schema(folder / name)) for split, name in splits.items()],
    }
    fields = {key: value for key, value in content.items() if value not in (None, [], "")}
    return json.dumps(fields, ensure_ascii=False, indent=2) + "\n"


def _licence(code: str, *, is_known: bool) -> str:
    """Return the SPDX address of a licence, or the licence as stated if the Hub has no identifier for it."""
    return f"https://spdx.org/licenses/{code}.html" if is_known and re.fullmatch(r"[A-Za-z0-9.+-]+", code) else code


def _file(name: str, digest: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        **{"@id": name, "name": name, "contentUrl": name, "encodingFormat": "application/x-parquet", "sha256": digest},
    }


def _records(split: str, file: str, schema: pa.Schema) -> dict[str, Any]:
    """Describe a Parquet file's columns. Columns with nested values, such as judgments, are left out."""
    fields = [
        {
            "@type": "cr:Field",
            **{"@id": f"{split}/{column.name}", "name": column.name, "dataType": _type(column.type)},
            "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
        }
        for column in schema
        if not pa.types.is_nested(column.type)
    ]
    return {"@type": "cr:RecordSet", "@id": split, "name": split, "field": fields}


def _type(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "sc:DateTime"
    return "sc:Float" if pa.types.is_floating(kind) else _TYPES.get(kind, "sc:Text")
