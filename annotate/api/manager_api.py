"""The API for managers: start actions as jobs, follow the jobs, download their files, and list corpora and tasks.

Options, rights and errors are the same as on the pages. Two generic views start all actions that have a form on the
pages (action_forms.JOB_FORMS). The schema describes each action separately.
"""

# Django REST framework has no types.
# mypy: disallow-subclassing-any=False

from collections.abc import Mapping
from contextlib import closing
from functools import cache
from typing import Any

from django.conf import settings
from django.http import FileResponse
from django.http.response import HttpResponseBase
from django.urls import path
from django.utils.datastructures import MultiValueDict
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.parsers import JSONParser, MultiPartParser
from rest_framework.request import Request

from annotate.actions import job_worker
from annotate.actions.action import Action, ActionError, task_named
from annotate.actions.registry import by_name
from annotate.api.serializers import boolean, integer, resource, string, strings, validate_data
from annotate.core.option import LARGEST, Option, flag, format_value, whole_number
from annotate.core.refusals import InvalidAnswer, NotFound
from annotate.figures import task_statistics
from annotate.manager_pages import action_forms, inbox, job_pages
from annotate.models import Job, Task
from annotate.pages.access import IN_OWN_TASK, check_right
from annotate.work import job_store
from corpora.storage.inventory import corpus_rows

CHUNK = 1 << 20  # bytes of an upload read at once
LAST_PAGE = 1_000_000
LISTED = 20  # maximum number of files or names listed in an error message
SURE = "sure"
CONFIRMS = "true to confirm the action's consequences. Otherwise, an action with consequences is refused and lists them"
ACTION = "{action}"  # placeholder in paths
IN_A_TASK = "/manage/tasks/"

# --- Serializers


class CorpusSerializer(serializers.Serializer):
    name = string(source="corpus")
    holds = string("posts, records or judged items")
    rows = integer("number of posts or records")
    fields = strings("the fields of records")
    licence = string()
    text_may_leave = boolean("whether exports contain the texts")
    voted = integer("number of posts on which the detectors have voted")
    predictors = strings()
    fault = string(allow_blank=True, help_text="what is wrong with the corpus; empty if it can be used")


class TaskStateSerializer(serializers.Serializer):
    name = string()
    title = string()
    kind = string()
    is_open = boolean()
    units = integer()
    done = integer("number of units that have a label or were discarded")
    queued = integer("number of units waiting for annotators")
    adjudication = integer("number of units waiting for an adjudicator")
    answers_today = integer("number of answers in the last 24 hours")
    paused = integer("number of paused annotators")


class JobProgressSerializer(serializers.Serializer):
    done = integer("amount of work done")
    total = integer(allow_null=True, help_text="total amount of work; null if it is unknown")
    unit = string(allow_blank=True, help_text="the unit of these amounts; B for bytes")
    said = strings("messages about completed parts")


class OutputSerializer(serializers.Serializer):
    path = string("the file's path, for the download URL")
    size = integer("size in bytes")


class JobSerializer(serializers.Serializer):
    id = integer(source="pk")
    action = string()
    options = serializers.DictField(help_text="the job's options")
    corpus = string(allow_blank=True)
    task = string(allow_blank=True)
    state = serializers.ChoiceField(list(Job.STATES))
    asked_at = serializers.DateTimeField()
    began_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    progress = JobProgressSerializer(allow_null=True, help_text="null unless the job is running")
    said = strings("the results, as sentences or as tables in text form")
    warned = strings("warnings, or the reason why the job failed")
    data = serializers.DictField(help_text="the results, as in the command's JSON output")
    files = OutputSerializer(many=True, help_text="the files that the job wrote")

    @staticmethod
    def row(job: Job) -> dict[str, Any]:
        options = job_worker.by_name()[job.action].options
        names = ("pk", "action", "corpus", "state", "asked_at", "began_at", "ended_at", "data")
        return {name: getattr(job, name) for name in names} | {
            "options": {name: _shorten_paths(value) for name, value in job.given.items()},
            "task": job.task_name,
            "progress": job_store.progress(job) if job.state == Job.RUNNING else None,
            "said": [action_forms.with_form_labels(sentence, options, _api_name) for sentence in job.said if sentence],
            "warned": [action_forms.with_form_labels(sentence, options, _api_name) for sentence in job.warned],
            "files": [{"path": name, "size": file.stat().st_size} for name, file in job_pages.files_of(job).items()],
        }


def _shorten_paths(value: Any) -> Any:
    """Return an option's value, with file paths in the short form that `_resolve_choice` accepts."""
    if isinstance(value, list):
        return [_shorten_paths(item) for item in value]
    return action_forms.relative_paths(value) if isinstance(value, str) else value


class JobsOfSerializer(serializers.Serializer):
    task = string(required=False, default="", help_text="only jobs about this task")
    page = integer(
        required=False,
        default=1,
        min_value=1,
        max_value=LAST_PAGE,
        help_text=f"the page; it has {job_pages.SHOWN} jobs",
    )


class UploadedSerializer(serializers.Serializer):
    name = string("the name to use in options of actions; differs from yours if that name was taken")
    size = integer("size in bytes")


# --- Corpora and tasks


@resource("GET", "manage", "List the corpora", CorpusSerializer, many=True, operation_id="manage_corpora")
def corpora(request: Request) -> list[dict[str, Any]]:
    return corpus_rows()


@resource(
    "GET", "manage", "List the tasks with their progress", TaskStateSerializer, many=True, operation_id="manage_tasks"
)
def tasks(request: Request) -> list[dict[str, Any]]:
    return task_statistics.overview()


@resource("GET", "manage", "Get the progress of a task", TaskStateSerializer, operation_id="manage_task")
def task(request: Request, task: Task) -> dict[str, Any]:
    return next(row for row in task_statistics.overview() if row["name"] == task.name)


# --- Files


@resource(
    "POST",
    "decide",
    "Upload a file to the inbox",
    UploadedSerializer,
    {"application/octet-stream": OpenApiTypes.BINARY},
    status=201,
    operation_id="manage_upload",
)
def upload(request: Request, name: str) -> dict[str, Any]:
    """Send the file's content as the request body. Options of actions accept the name in the response."""
    # Read the body here instead of in a parser, to write it to the inbox while it arrives.
    inbox.check_name(name)
    with closing(inbox.IncomingFile(name, request.content_type or "", None)) as file:
        while chunk := request._request.read(CHUNK):
            file.size = (file.size or 0) + len(chunk)
            if file.size > settings.UPLOAD_MOST:
                raise InvalidAnswer(f"{name} is larger than {settings.UPLOAD_MOST >> 20:,} MB (ASSAY_UPLOAD_MOST).")
            file.write(chunk)
        path = inbox.save_upload(request._request, file)
    return {"name": path.name, "size": path.stat().st_size}


# --- Actions


PARSERS = (JSONParser, MultiPartParser)


def _api_name(option: Option) -> str:
    return option.name


@resource("POST", "start", "Start an action", JobSerializer, OpenApiTypes.OBJECT, status=202, parsers=PARSERS)
def start(request: Request, action: str) -> dict[str, Any]:
    """The action runs as a job. Poll the job until its state is done, failed or cancelled."""
    if action in actions_of_tasks():
        raise NotFound(f"The action {action} belongs to a task. Send POST manage/tasks/NAME/actions/{action}/.")
    return _start(request, action, {})


@resource(
    "POST", "decide", "Start an action of a task", JobSerializer, OpenApiTypes.OBJECT, status=202, parsers=PARSERS
)
def start_in_task(request: Request, task: Task, action: str) -> dict[str, Any]:
    """The action runs as a job. Poll the job until its state is done, failed or cancelled."""
    if action not in actions_of_tasks():
        raise NotFound(f"The action {action[:40]!r} does not exist. Actions: {', '.join(sorted(actions_of_tasks()))}.")
    if action not in IN_OWN_TASK:
        check_right(request.user, "start", task.name)
    return _start(request, action, {task_option(action): task.name})


def _start(request: Request, name: str, fixed: Mapping[str, str]) -> dict[str, Any]:
    """Start an action as a job.

    fixed: options that the URL determines
    """
    if name not in action_forms.JOB_FORMS:
        raise NotFound(f"The action {name[:40]!r} does not exist. The schema of the API lists all actions.")
    job_form, action = action_forms.find_job_form(name)
    try:
        texts = _texts(request)
        available = {option.name: option for option in action.options if option.name not in (*job_form.hidden, *fixed)}
        if unknown := texts.keys() - {*available, SURE}:
            raise InvalidAnswer(f"{name} has no option {min(unknown)!r}. Options: {', '.join(available)}.")
        is_confirmed = texts.pop(SURE, ["no"])[-1] == "yes"
        for option_name, values in texts.lists():
            texts.setlist(option_name, [_resolve_choice(name, available[option_name], value) for value in values])
        options = {**action_forms.submitted_options(name, texts), **fixed}
        if action.asks and not is_confirmed and (consequences := action.describe_consequences(options)):
            raise InvalidAnswer(f"{' '.join(consequences)} Send {SURE}: true to confirm.")
        return JobSerializer.row(job_worker.start(name, options, by=request.user))
    except ActionError as error:
        raise InvalidAnswer(action_forms.with_form_labels(str(error), action.options, _api_name)) from error


def _texts(request: Request) -> "MultiValueDict[str, str]":
    """Return a request's options as texts, as a form would send them. Uploaded files are moved to the inbox."""
    if not isinstance(request.data, dict):
        raise InvalidAnswer("The request is not a JSON object. Send the options as an object.")
    if isinstance(request.data, MultiValueDict):
        return inbox.with_uploads(request)
    return MultiValueDict({name: _as_texts(name, value) for name, value in request.data.items() if value is not None})


def _as_texts(name: str, value: Any) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if any(not isinstance(item, str | int | float) for item in values):
        raise InvalidAnswer(f"{name}: The value must be a text, a number, true, false, or a list of these.")
    return [format_value(item).replace("\0", "") for item in values]


def _resolve_choice(action: str, option: Option, text: str) -> str:
    """Return the form choice with this name. Files may be named by their path in the inbox or the data folder.

    An option without choices accepts any text. Raise InvalidAnswer if the form has no such choice.
    """
    choices = action_forms.choices_of(action, option)
    if choices is None or not text:
        return text
    names = {action_forms.relative_paths(value): value for value, _ in choices}
    if text not in names and text not in names.values():
        listed = ", ".join([*names][:LISTED]) or "none"
        raise InvalidAnswer(f"{option.name}: {text!r} does not exist. Available: {listed}.")
    return names.get(text, text)


# --- Jobs


@resource(
    "GET",
    "manage",
    "List the jobs, newest first",
    JobSerializer,
    many=True,
    operation_id="manage_jobs",
    parameters=[JobsOfSerializer],
)
def jobs(request: Request) -> list[dict[str, Any]]:
    query = validate_data(JobsOfSerializer, request.query_params)
    return _job_rows(query["task"], query["page"])


@resource(
    "GET",
    "manage",
    "List the jobs of a task, newest first",
    JobSerializer,
    many=True,
    operation_id="manage_jobs_of_task",
)
def jobs_of_task(request: Request, task: Task) -> list[dict[str, Any]]:
    return _job_rows(task.name, 1)


def _job_rows(task: str, page: int) -> list[dict[str, Any]]:
    jobs = Job.objects.of_task(task) if task else Job.objects.all()
    return [JobSerializer.row(job) for job in jobs[(page - 1) * job_pages.SHOWN : page * job_pages.SHOWN]]


@resource("GET", "manage", "Get a job with its progress and outcome", JobSerializer, operation_id="manage_job")
def job(request: Request, job: Job) -> dict[str, Any]:
    return JobSerializer.row(job)


@resource("POST", "start", "Cancel a job", JobSerializer, operation_id="manage_cancel_job")
def cancel(request: Request, job: Job) -> dict[str, Any]:
    """A running job ends at its next step. Finished work is kept."""
    job_store.cancel(job)
    job.refresh_from_db()
    return JobSerializer.row(job)


BINARY = "application/octet-stream"  # the only file type that common client generators support
FILE = {(200, BINARY): OpenApiTypes.BINARY}


@resource("GET", "manage", "Download a file that a job wrote", FILE, operation_id="manage_job_file")
def file(request: Request, job: Job, path: str) -> HttpResponseBase:
    output = job_pages.find_output(job, path)
    return FileResponse(output.open("rb"), as_attachment=True, filename=output.name, content_type=BINARY)


@resource(
    "GET", "manage", "Download all files that a job wrote, as a ZIP archive", FILE, operation_id="manage_job_archive"
)
def packed(request: Request, job: Job) -> HttpResponseBase:
    response = job_pages.download_all(request._request, job)
    response["Content-Type"] = BINARY
    return response


# --- The description of each action in the OpenAPI schema, generated from the declarations of its options


@cache
def actions_of_tasks() -> frozenset[str]:
    """Return the names of the actions on an existing task. Their URLs contain the task's name."""
    return frozenset(name for name in action_forms.JOB_FORMS if task_option(name))


@cache
def task_option(name: str) -> str:
    """Return the name of the option that names the task an action works on, or "" if there is none."""
    options = by_name()[name].options
    return next((option.name for option in options if option.read is task_named and option.required), "")


def describe_actions(result: dict[str, Any], **context: Any) -> dict[str, Any]:
    """Replace each path with {action} by one path for each action. drf-spectacular calls this on the schema."""
    paths: dict[str, Any] = {}
    for address, methods in result["paths"].items():
        if ACTION not in address:
            paths[address] = methods
            continue
        in_task = IN_A_TASK in address
        for name in action_forms.JOB_FORMS:
            if (name in actions_of_tasks()) == in_task:
                paths[address.replace(ACTION, name)] = {"post": _action_operation(methods["post"], name)}
    return result | {"paths": dict(sorted(paths.items()))}


def _action_operation(general: dict[str, Any], name: str) -> dict[str, Any]:
    action = by_name()[name]
    body = {"application/json": {"schema": _body_schema(action, name)}}
    if any(_is_file(name, option) for option in _schema_options(action, name)):
        body["multipart/form-data"] = {"schema": _body_schema(action, name, uploads=True)}
    return general | {
        "operationId": f"manage_{name}",
        "summary": action.description.partition(". ")[0].rstrip("."),
        "description": general.get("description", ""),
        "parameters": [parameter for parameter in general.get("parameters", ()) if parameter["name"] != "action"],
        "requestBody": {"content": body},
    }


def _schema_options(action: Action, name: str) -> list[Option]:
    omitted = (*action_forms.JOB_FORMS[name].hidden, task_option(name))
    return [option for option in action.options if option.name not in omitted]


def _is_file(name: str, option: Option) -> bool:
    return option.is_file or (name, option.name) in action_forms.ALSO_FILES


def _body_schema(action: Action, name: str, *, uploads: bool = False) -> dict[str, Any]:
    options = _schema_options(action, name)
    properties = {option.name: _option_schema(action, name, option, uploads) for option in options}
    if action.asks:
        properties[SURE] = {"type": "boolean", "default": False, "description": CONFIRMS}
    required = [option.name for option in options if option.required or (name, option.name) == action_forms.NEEDED]
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": required} if required else {})


def _option_schema(action: Action, name: str, option: Option, uploads: bool) -> dict[str, Any]:
    if uploads and _is_file(name, option):
        schema: dict[str, Any] = {"type": "string", "format": "binary"}
    elif option.read is flag:
        schema = {"type": "boolean"}
    elif option.read is whole_number:
        least, most = option.least or 0, LARGEST if option.most is None else option.most
        schema = {"type": "integer", "minimum": int(least), "maximum": int(most)}
    elif option.choices:
        schema = {"type": "string", "enum": list(option.choices)}
    else:
        schema = {"type": "string"}
    if option.several:
        schema = {"type": "array", "items": schema}
    text = action_forms.with_form_labels(option.help_text(), action.options, lambda other: other.name)
    return schema | {"description": f"{text}; the name of a file in the inbox" if _is_file(name, option) else text}


urlpatterns = [
    path("corpora/", corpora, name="api-corpora"),
    path("files/<str:name>/", upload, name="api-upload"),
    path("actions/<slug:action>/", start, name="api-start"),
    path("tasks/", tasks, name="api-manage-tasks"),
    path("tasks/<slug:task>/", task, name="api-manage-task"),
    path("tasks/<slug:task>/actions/<slug:action>/", start_in_task, name="api-start-in-task"),
    path("tasks/<slug:task>/jobs/", jobs_of_task, name="api-task-jobs"),
    path("jobs/", jobs, name="api-jobs"),
    path("jobs/<int:job>/", job, name="api-job"),
    path("jobs/<int:job>/cancel/", cancel, name="api-job-cancel"),
    path("jobs/<int:job>/packed/", packed, name="api-job-packed"),
    path("jobs/<int:job>/files/<path:path>/", file, name="api-job-file"),
]
