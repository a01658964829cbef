"""All URLs of the site, with the status that each kind of person receives."""

# Nobody; an account that is not an annotator's; the annotator whose lease, judgment and token the request names;
# another annotator; an adjudicator, whose settled unit it names; a manager, who is no annotator.
WHO = ("nobody", "guest", "ann", "bea", "ada", "manager")

# The managers' pages about all tasks, and about one task.
OF_ALL = ("manage", "manage-questions", "manage-now", "manage-dates", "manage-everybody", "manage-hours")
OF_A_TASK = (
    *("task", "items", "people", "guidelines", "quality", "settings"),
    *("agreement", "tests", "rule", "pace", "comments", "notes", "task-jobs"),
)
# The pages of the admin, which managers use.
OF_THE_DESK = (
    *("corpora", "corpus", "rejects", "jobs", "job", "job-packed", "job-file"),
    *("account", "routes", "kind", "foreseen", "new-task-voters", "webhooks", "webhook"),
)
# Actions of managers: some have a form on a separate page, others a button on another page.
FORMS_OF_MANAGERS = (
    *("new-corpus", "new-task", "kind-edit", "inbox", "do", "extend", "export"),
    *("new-accounts", "new-manager", "new-route", "route"),
)
BUTTONS_OF_MANAGERS = (
    *("job-cancel", "job-again", "job-remove", "job-withdraw", "guidelines-add", "settings-change", "switch"),
    *("members", "account-change", "account-do", "route-remove", "webhook-delete", "delivery-again"),
)
# address: (GET by each of WHO), (POST by each of WHO). 302 of nobody is to the login; 405: the address takes no such
# request. 404 and 409 tell another annotator no more than that the thing is not theirs; the API's undo names none.
READERS_LOOK, READERS_LOOK_OR_ACT = (302, 403, 200, 200, 200, 403), (302, 403, 302, 302, 302, 403)
NO_GET, NO_POST, ALL = (302, 405, 405, 405, 405, 405), (302, 405, 405, 405, 405, 405), (200,) * 6
ONES_OWN, MANAGERS_LOOK = (302, 403, 302, 404, 404, 403), (302, 403, 403, 403, 403, 200)
MANAGERS_ACT, ADJUDICATORS_LOOK = (302, 403, 403, 403, 403, 302), (302, 403, 403, 403, 200, 403)
PAGES = {
    # A manager who is not an annotator is redirected to the managers' pages.
    "home": ((302, 200, 200, 200, 200, 302), NO_POST),
    **dict.fromkeys(["history", "rest", "queue", "sheet", "answers"], (READERS_LOOK, NO_POST)),
    **dict.fromkeys(["login", "forgotten"], (ALL, ALL)),
    "tongue": ((405,) * 6, (302,) * 6),
    "logout": (NO_GET, (302,) * 6),
    "invite": (ALL, (302,) * 6),
    # Everybody who has the link can read a shared report.
    "shared": (ALL, (405,) * 6),
    # A manager already exists.
    "first-manager": ((404,) * 6, (404,) * 6),
    # The link in a mail redirects to its form.
    **dict.fromkeys(["reset", "favicon.ico"], ((302,) * 6, (302,) * 6)),
    "account": ((302, 200, 200, 200, 200, 200), (302, 200, 200, 200, 200, 200)),
    **dict.fromkeys(["password", "preferences"], ((302, 200, 200, 200, 200, 200), (302,) * 6)),
    **dict.fromkeys(["disturbing", "start", "pause", "sheet-start"], (NO_GET, READERS_LOOK_OR_ACT)),
    **dict.fromkeys(["languages", "consent"], (READERS_LOOK, READERS_LOOK_OR_ACT)),
    **dict.fromkeys(["judge", "flag", "qualification-answer", "reply-read"], (NO_GET, ONES_OWN)),
    # A note for readers of German.
    "note-read": (NO_GET, (302, 403, 302, 302, 404, 403)),
    "undo": (NO_GET, (302, 403, 302, 409, 409, 403)),
    # The rest of the sheet is saved. The page states which answers belong to another annotator and were not saved.
    "sheet-judge": (NO_GET, (302, 403, 302, 200, 200, 403)),
    # The form repeats the answer that Ann has already given.
    "change": ((302, 403, 200, 404, 404, 403), (302, 403, 400, 404, 404, 403)),
    "guidelines": ((302, 403, 200, 200, 200, 200), NO_POST),
    # Bea has not practised yet, and Ada does not read any of the task's languages.
    "qualification": ((302, 403, 200, 200, 403, 403), NO_POST),
    "qualification-practice": (NO_GET, (302, 403, 302, 302, 403, 403)),
    "qualification-test": (NO_GET, (302, 403, 302, 409, 403, 403)),
    "adjudication": (ADJUDICATORS_LOOK, NO_POST),
    "adjudicate": (ADJUDICATORS_LOOK, (302, 403, 403, 403, 302, 403)),
    "adjudicate-together": (NO_GET, (302, 403, 403, 403, 409, 403)),
    "unsettle": (NO_GET, (302, 403, 403, 403, 302, 403)),
    **dict.fromkeys(
        [*OF_ALL, *(f"manage-{page}" for page in (*OF_A_TASK, "item", "person", *OF_THE_DESK))],
        (MANAGERS_LOOK, NO_POST),
    ),
    **dict.fromkeys(
        [f"manage-{page}" for page in ("languages", "void", *FORMS_OF_MANAGERS)], (MANAGERS_LOOK, MANAGERS_ACT)
    ),
    # The corpus has no votes, so the form is rejected.
    "manage-new-task": (MANAGERS_LOOK, (302, 403, 403, 403, 403, 400)),
    **dict.fromkeys(
        [f"manage-{page}" for page in ("lift", "question", "note", "pause", *BUTTONS_OF_MANAGERS)],
        (NO_GET, MANAGERS_ACT),
    ),
    # The response is the only place that shows the password.
    "manage-new-manager": (MANAGERS_LOOK, MANAGERS_LOOK),
    "manage-links": (MANAGERS_LOOK, MANAGERS_ACT),
    # So does this one, which shows a webhook's secret.
    "manage-new-webhook": (MANAGERS_LOOK, MANAGERS_LOOK),
    **dict.fromkeys(["manage-guidelines-preview", "manage-job-share"], (NO_GET, MANAGERS_LOOK)),
    # The documentation contains no secrets, so everybody who can reach the site can read it.
    **dict.fromkeys(["docs", "docs-page", "docs-file"], (ALL, (405,) * 6)),
}
# POST of a command of the concept picker to the addresses that show it.
PICKERS = {
    **dict.fromkeys(["judge do", "change do", "qualification-answer do"], (302, 403, 200, 404, 404, 403)),
    "adjudicate do": (302, 403, 403, 403, 200, 403),
}
API_OF_MANAGERS = (
    *("corpora", "manage-tasks", "manage-task", "task-jobs", "jobs", "job", "job-packed", "job-file"),
    *("webhooks", "deliveries"),
)
API_ACTS_OF_MANAGERS = (
    *("api-upload", "api-start", "api-start-in-task", "api-job-cancel"),
    *("api-webhook-new", "api-webhook-delete", "api-delivery-again"),
)
NO_API_GET = NO_API_POST = (401, 405, 405, 405, 405, 405)
API = {
    **dict.fromkeys(["api-docs", "api-schema"], (ALL, (405,) * 6)),
    **dict.fromkeys(
        ["api-tasks", "api-task", "api-progress", "api-qualification"], ((401, 403, 200, 200, 200, 403), NO_API_POST)
    ),
    # No task in the world asks for concepts.
    "api-concepts": ((401, 403, 404, 404, 404, 403), NO_API_POST),
    **dict.fromkeys(["api-adjudication", "api-dossier"], ((401, 403, 403, 403, 200, 403), NO_API_POST)),
    **dict.fromkeys(["api-settle", "api-discard"], (NO_API_GET, (401, 403, 403, 403, 200, 403))),
    "api-unsettle": (NO_API_GET, (401, 403, 403, 403, 204, 403)),
    "api-next": (NO_API_GET, (401, 403, 200, 200, 200, 403)),
    "api-undo": (NO_API_GET, (401, 403, 200, 200, 409, 403)),
    **dict.fromkeys(["api-judge", "api-skip", "api-flag", "api-answer"], (NO_API_GET, (401, 403, 200, 404, 404, 403))),
    "api-release": (NO_API_GET, (401, 403, 204, 404, 404, 403)),
    "api-practise": (NO_API_GET, (401, 403, 200, 200, 403, 403)),
    "api-test": (NO_API_GET, (401, 403, 200, 409, 403, 403)),
    **dict.fromkeys([f"api-{name}" for name in API_OF_MANAGERS], ((401, 403, 403, 403, 403, 200), NO_API_POST)),
    **dict.fromkeys(["api-upload", "api-webhook-new"], (NO_API_GET, (401, 403, 403, 403, 403, 201))),
    **dict.fromkeys(["api-webhook-delete", "api-delivery-again"], (NO_API_GET, (401, 403, 403, 403, 403, 204))),
    **dict.fromkeys(["api-start", "api-start-in-task"], (NO_API_GET, (401, 403, 403, 403, 403, 202))),
    "api-job-cancel": (NO_API_GET, (401, 403, 403, 403, 403, 200)),
}
# Others, who are as one of WHO but for some addresses. The clerk is staff with all permissions on annotators and tasks,
# the onlooker staff without any, Zoe a reader from whom all languages were taken; Pat, a reader, and Kit, an
# adjudicator, are paused in every task.
OTHERS = {
    # Only a superuser makes managers.
    "clerk": ("manager", {"manage-new-manager": (403, 403)}),
    "onlooker": (
        "manager",
        {
            "manage-languages": (200, 403),
            **dict.fromkeys(("manage-links", "manage-new-webhook"), (403, 403)),
            **dict.fromkeys(("manage-lift", "manage-pause", "manage-question", "manage-note"), (405, 403)),
            **dict.fromkeys(("manage-guidelines-preview", "manage-job-share"), (405, 403)),
            **dict.fromkeys((f"manage-{page}" for page in BUTTONS_OF_MANAGERS), (405, 403)),
            **dict.fromkeys(API_ACTS_OF_MANAGERS, (405, 403)),
            **dict.fromkeys((f"manage-{page}" for page in ("void", *FORMS_OF_MANAGERS)), (403, 403)),
        },
    ),
    "zoe": (
        "bea",
        {
            "qualification": (403, 405),
            "note-read": (405, 404),
            **dict.fromkeys(("qualification-practice", "qualification-test"), (405, 403)),
            **dict.fromkeys(("api-practise", "api-test", "api-undo"), (405, 403)),
        },
    ),
    "pat": (
        "bea",
        {
            **dict.fromkeys(("undo", "qualification-practice", "qualification-test"), (405, 403)),
            **dict.fromkeys(("api-undo", "api-practise", "api-test"), (405, 403)),
        },
    ),
    "kit": (
        "ada",
        {
            **dict.fromkeys(("adjudication", "api-adjudication", "api-dossier"), (403, 405)),
            "adjudicate": (403, 403),
            **dict.fromkeys(("adjudicate-together", "unsettle", "undo"), (405, 403)),
            **dict.fromkeys(("api-settle", "api-discard", "api-unsettle", "api-undo"), (405, 403)),
        },
    ),
}
# Only a few URLs of the admin, because they all share one check, which admits staff.
ADMIN = {
    "admin:index": (302, 302, 302, 302, 302, 200),
    "admin:annotate_annotator_changelist": (302, 302, 302, 302, 302, 200),
    "admin:annotate_annotator_add": (302, 302, 302, 302, 302, 403),
    "admin:auth_user_changelist": (302, 302, 302, 302, 302, 200),
}
# Forms of people who are not logged in, and those that a logged-in person can submit.
OF_NOBODY = ("login", "tongue", "invite", "first-manager", "forgotten", "reset")
FORMS = [
    name for name, (_, posted) in PAGES.items() if set(posted[1:]) != {405} and name not in (*OF_NOBODY, "favicon.ico")
]


NEW_PASSWORD = {"new_password1": "quite a long one", "new_password2": "quite a long one"}


QUERIES = {  # query strings that URLs require
    "manage-kind": "?kind=qa_match",
    "manage-foreseen": "?kind=language&design=uniform",
    "manage-new-task-voters": "?kind=language&design=uniform",
}
