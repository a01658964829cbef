import json
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from annotate.evaluation.evaluate import MEASURES, evaluate, write_report
from annotate.evaluation.matching import EvaluationError, corpus_of, of_corpus, of_file, read_sets
from annotate.evaluation.xglue_grading import grade
from annotate.evaluation.xglue_predictions import read_record_sets
from annotate.goldsets.reading import GoldSetError, read_ids
from annotate.reports import writing
from corpora.core.predictions import FIELDS, read_map
from corpora.core.records import RecordError
from corpora.errors import CorpusError
from corpora.readers import FORMATS, named_columns

# What says how posts are measured.
OF_POSTS = (
    *("predictor", "corpus", "file", "against", "against_file", "map", "column", "format", "vanished", "allow_erased"),
    *("measure", "balanced_precision"),
)


class Command(BaseCommand):
    help = (
        "Measure a predictor on exported or imported gold sets: accuracy on a uniform set, recall by language on "
        "recall-oriented sets, precision by language on precision-oriented ones, the uniform set joined in where it "
        "is given, each with its 95% interval. What the sets cannot tell is refused, or said in the report. Of "
        "records: what a folder of XGLUE's prediction files is worth, by language."
    )

    def add_arguments(self, parser):
        parser.add_argument(
            "predictor", nargs="?", help="langid, cld2, fasttext, majority, or an imported one such as mine@2"
        )
        parser.add_argument(
            "--gold", type=Path, action="append", required=True, metavar="FOLDER", help="a gold set; may be repeated"
        )
        parser.add_argument(
            "--predictions",
            type=Path,
            metavar="FOLDER",
            help="for sets of records: TASK/LANGUAGE.prediction, such as QADSM/en.prediction, a line for each test row",
        )
        parser.add_argument("--corpus", default="", help="whose predictor it is, where the gold sets were imported")
        parser.add_argument("--file", type=Path, help="measure this file of predictions (id, label), joined by id")
        parser.add_argument("--against", metavar="PREDICTOR", help="compare with this one, post by post")
        parser.add_argument("--against-file", type=Path, metavar="FILE", help="compare with this file of predictions")
        parser.add_argument(
            "--map",
            action="append",
            default=[],
            metavar="LABEL=LABELS",
            help="what a label of the files means: nb=no renames it, zh=zh-CN,zh-TW is a class of several",
        )
        parser.add_argument(
            "--column",
            action="append",
            default=[],
            metavar="FIELD=COLUMN",
            help=f"which column of the files is which field ({', '.join(FIELDS)}), for example label=lang",
        )
        parser.add_argument("--format", choices=FORMATS, help="of the files, where their names do not tell it")
        parser.add_argument("--vanished", type=Path, metavar="FILE", help="ids of posts that are gone, one a line")
        parser.add_argument("--allow-erased", action="store_true", help="go on where rows were erased from a set")
        parser.add_argument("--unfinished", action="store_true", help="measure on a set that is not done")
        parser.add_argument(
            "--measure",
            action="append",
            choices=MEASURES,
            default=[],
            help="this, and what else is named so, and nothing else; by default all that the sets allow",
        )
        parser.add_argument(
            "--balanced-precision",
            action="store_true",
            help="also precision on the recall-oriented sets, as if all languages were equally common",
        )
        parser.add_argument("--out", type=Path, metavar="FOLDER", help="write report.json, .md and .html there")
        parser.add_argument("--json", action="store_true", help="print the report as JSON, not as tables")

    def handle(self, *, predictions, out, **options):
        try:
            report = _of_records(predictions, options) if predictions else _of_posts(**options)
            if out:
                write_report(report, out)
        except (EvaluationError, GoldSetError, CorpusError, RecordError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(report, ensure_ascii=False, indent=2))
        else:
            self.stdout.write(writing.as_text(report), ending="")
        if out:
            self.stderr.write(f"Report written to {out}.")


def _of_posts(*, gold, corpus, vanished, measure, balanced_precision, **options):
    _check_files(options)
    sets = read_sets(gold, allow_erased=options["allow_erased"], unfinished=options["unfinished"])
    return evaluate(
        _subject(sets, corpus, options["predictor"], options["file"], options),
        sets,
        against=_against(sets, corpus, options),
        vanished=read_ids(vanished) if vanished else frozenset(),
        measures=measure,
        balanced=balanced_precision,
    )


def _of_records(predictions, options):
    if given := [name for name in OF_POSTS if options[name]]:
        raise EvaluationError(
            f"{given[0] if given[0] == 'predictor' else '--' + given[0].replace('_', '-')} is for sets of posts; with "
            "--predictions give the sets of records with --gold, and nothing else."
        )
    return grade(predictions, read_record_sets(options["gold"], unfinished=options["unfinished"]))


def _check_files(options):
    given = [f"--{option}" for option in ("map", "column", "format") if options[option]]
    if given and not (options["file"] or options["against_file"]):
        raise EvaluationError(
            f"{' and '.join(given)}: for files of predictions, and none is given; what an imported predictor's labels "
            "mean was said with import_predictions."
        )


def _against(sets, corpus, options):
    if not (options["against"] or options["against_file"]):
        return None
    return _subject(sets, corpus, options["against"], options["against_file"], options)


def _subject(sets, corpus, spelled, file, options):
    if bool(spelled) == bool(file):
        raise EvaluationError(
            "Name one predictor, or give its labels with --file (or --against and --against-file); not both, and not "
            "neither."
        )
    if spelled:
        return of_corpus(corpus_of(sets, corpus), spelled)
    columns = named_columns(options["column"], FIELDS)
    return of_file(file, read_map(options["map"]), columns, options["format"], sets)
