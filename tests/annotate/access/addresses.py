"""Every address of the site, and what each kind of person is answered there."""

# Nobody; an account that is not an annotator's; the annotator whose lease, judgment and token the request names;
# another annotator; an adjudicator, whose settled unit it names; a manager, who is no annotator.
WHO = ("nobody", "guest", "ann", "bea", "ada", "manager")

# The manager's pages of all tasks, and of one.
OF_ALL = ("manage", "manage-questions", "manage-now", "manage-dates", "manage-everybody", "manage-hours")
OF_A_TASK = ("task", "people", "comments", "notes", "tests", "agreement", "rule", "guidelines", "settings")
# Those of the desk, which managers look at.
OF_THE_DESK = (
    *("corpora", "corpus", "rejects", "jobs", "job", "job-packed", "job-file"),
    *("accounts", "account", "routes", "kind", "foreseen"),
)
# Where a manager acts by a form of its own page, and where by a button elsewhere.
FORMS_OF_MANAGERS = (
    *("new-corpus", "new-task", "inbox", "do", "extend"),
    *("new-accounts", "new-manager", "new-route", "route"),
)
BUTTONS_OF_MANAGERS = (
    *("job-cancel", "job-again", "job-remove", "guidelines-add", "settings-change", "switch"),
    *("account-change", "account-do", "route-remove"),
)
# address: (GET by each of WHO), (POST by each of WHO). 302 of nobody is to the login; 405: the address takes no such
# request. 404 and 409 tell another annotator no more than that the thing is not theirs; the API's undo names none.
PAGES = {
    # A manager who is no annotator is led on to the manager's pages.
    "home": ((302, 200, 200, 200, 200, 302), (302, 405, 405, 405, 405, 405)),
    "history": ((302, 403, 200, 200, 200, 403), (302, 405, 405, 405, 405, 405)),
    "rest": ((302, 403, 200, 200, 200, 403), (302, 405, 405, 405, 405, 405)),
    "login": ((200, 200, 200, 200, 200, 200), (200, 200, 200, 200, 200, 200)),
    "tongue": ((405,) * 6, (302,) * 6),
    "logout": ((302, 405, 405, 405, 405, 405), (302, 302, 302, 302, 302, 302)),
    "invite": ((200, 200, 200, 200, 200, 200), (302, 302, 302, 302, 302, 302)),
    "account": ((302, 200, 200, 200, 200, 200), (302, 200, 200, 200, 200, 200)),
    "disturbing": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 302, 302, 403)),
    # A reply to Ann, and a note to those who read German.
    "reply-read": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 404, 404, 403)),
    "note-read": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 302, 404, 403)),
    "password": ((302, 200, 200, 200, 200, 200), (302, 302, 302, 302, 302, 302)),
    "preferences": ((302, 200, 200, 200, 200, 200), (302, 302, 302, 302, 302, 302)),
    "languages": ((302, 403, 200, 200, 200, 403), (302, 403, 302, 302, 302, 403)),
    "forgotten": ((200, 200, 200, 200, 200, 200), (200, 200, 200, 200, 200, 200)),
    # The link of a mail leads on to its form.
    "reset": ((302, 302, 302, 302, 302, 302), (302, 302, 302, 302, 302, 302)),
    "queue": ((302, 403, 200, 200, 200, 403), (302, 405, 405, 405, 405, 405)),
    "start": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 302, 302, 403)),
    "judge": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 404, 404, 403)),
    "choose": ((302, 405, 405, 405, 405, 405), (302, 403, 200, 404, 404, 403)),
    "flag": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 404, 404, 403)),
    "undo": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 409, 409, 403)),
    "pause": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 302, 302, 403)),
    "sheet": ((302, 403, 200, 200, 200, 403), (302, 405, 405, 405, 405, 405)),
    "sheet-start": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 302, 302, 403)),
    # Of a sheet the rest is saved: what another annotator's is not is said on the page.
    "sheet-judge": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 200, 200, 403)),
    "answers": ((302, 403, 200, 200, 200, 403), (302, 405, 405, 405, 405, 405)),
    # The form says the same that Ann has said already.
    "change": ((302, 403, 200, 404, 404, 403), (302, 403, 400, 404, 404, 403)),
    "change-choose": ((302, 405, 405, 405, 405, 405), (302, 403, 200, 404, 404, 403)),
    "consent": ((302, 403, 200, 200, 200, 403), (302, 403, 302, 302, 302, 403)),
    "guidelines": ((302, 403, 200, 200, 200, 200), (302, 405, 405, 405, 405, 405)),
    # Bea has not practised yet, and Ada reads no language of the task.
    "qualification": ((302, 403, 200, 200, 403, 403), (302, 405, 405, 405, 405, 405)),
    "qualification-practice": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 302, 403, 403)),
    "qualification-test": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 409, 403, 403)),
    "qualification-answer": ((302, 405, 405, 405, 405, 405), (302, 403, 302, 404, 404, 403)),
    "qualification-choose": ((302, 405, 405, 405, 405, 405), (302, 403, 200, 404, 404, 403)),
    "adjudication": ((302, 403, 403, 403, 200, 403), (302, 405, 405, 405, 405, 405)),
    "adjudicate": ((302, 403, 403, 403, 200, 403), (302, 403, 403, 403, 302, 403)),
    "adjudicate-choose": ((302, 405, 405, 405, 405, 405), (302, 403, 403, 403, 200, 403)),
    "adjudicate-together": ((302, 405, 405, 405, 405, 405), (302, 403, 403, 403, 409, 403)),
    "unsettle": ((302, 405, 405, 405, 405, 405), (302, 403, 403, 403, 302, 403)),
    **dict.fromkeys(
        [*OF_ALL, *(f"manage-{page}" for page in (*OF_A_TASK, "person", *OF_THE_DESK))],
        ((302, 403, 403, 403, 403, 200), (302, 405, 405, 405, 405, 405)),
    ),
    "manage-languages": ((302, 403, 403, 403, 403, 200), (302, 403, 403, 403, 403, 302)),
    **dict.fromkeys(
        ["manage-lift", "manage-question", "manage-note"],
        ((302, 405, 405, 405, 405, 405), (302, 403, 403, 403, 403, 302)),
    ),
    "manage-pause": ((302, 405, 405, 405, 405, 405), (302, 403, 403, 403, 403, 302)),
    "manage-void": ((302, 403, 403, 403, 403, 200), (302, 403, 403, 403, 403, 302)),
    **dict.fromkeys(
        [f"manage-{page}" for page in FORMS_OF_MANAGERS],
        ((302, 403, 403, 403, 403, 200), (302, 403, 403, 403, 403, 302)),
    ),
    # Links and passwords are told in the answer, and only there.
    **dict.fromkeys(
        ["manage-new-accounts", "manage-new-manager"], ((302, 403, 403, 403, 403, 200), (302, 403, 403, 403, 403, 200))
    ),
    **dict.fromkeys(
        [f"manage-{page}" for page in BUTTONS_OF_MANAGERS],
        ((302, 405, 405, 405, 405, 405), (302, 403, 403, 403, 403, 302)),
    ),
    "manage-guidelines-preview": ((302, 405, 405, 405, 405, 405), (302, 403, 403, 403, 403, 200)),
    # The documentation holds no secret: it is for everybody who can reach the site.
    **dict.fromkeys(["docs", "docs-page", "docs-file"], ((200,) * 6, (405,) * 6)),
    "favicon.ico": ((302, 302, 302, 302, 302, 302), (302, 302, 302, 302, 302, 302)),
}
API = {
    "api-docs": ((200, 200, 200, 200, 200, 200), (405, 405, 405, 405, 405, 405)),
    "api-schema": ((200, 200, 200, 200, 200, 200), (405, 405, 405, 405, 405, 405)),
    "api-tasks": ((401, 403, 200, 200, 200, 403), (401, 405, 405, 405, 405, 405)),
    "api-task": ((401, 403, 200, 200, 200, 403), (401, 405, 405, 405, 405, 405)),
    # The world's tasks do not ask for concepts.
    "api-concepts": ((401, 403, 404, 404, 404, 403), (401, 405, 405, 405, 405, 405)),
    "api-adjudication": ((401, 403, 403, 403, 200, 403), (401, 405, 405, 405, 405, 405)),
    "api-dossier": ((401, 403, 403, 403, 200, 403), (401, 405, 405, 405, 405, 405)),
    "api-settle": ((401, 405, 405, 405, 405, 405), (401, 403, 403, 403, 200, 403)),
    "api-discard": ((401, 405, 405, 405, 405, 405), (401, 403, 403, 403, 200, 403)),
    "api-unsettle": ((401, 405, 405, 405, 405, 405), (401, 403, 403, 403, 204, 403)),
    "api-progress": ((401, 403, 200, 200, 200, 403), (401, 405, 405, 405, 405, 405)),
    "api-next": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 200, 200, 403)),
    "api-undo": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 200, 409, 403)),
    "api-judge": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 404, 404, 403)),
    "api-skip": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 404, 404, 403)),
    "api-flag": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 404, 404, 403)),
    "api-release": ((401, 405, 405, 405, 405, 405), (401, 403, 204, 404, 404, 403)),
    "api-qualification": ((401, 403, 200, 200, 200, 403), (401, 405, 405, 405, 405, 405)),
    "api-practise": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 200, 403, 403)),
    "api-test": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 409, 403, 403)),
    "api-answer": ((401, 405, 405, 405, 405, 405), (401, 403, 200, 404, 404, 403)),
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
            **dict.fromkeys(("manage-lift", "manage-pause", "manage-question", "manage-note"), (405, 403)),
            "manage-guidelines-preview": (405, 403),
            **dict.fromkeys((f"manage-{page}" for page in BUTTONS_OF_MANAGERS), (405, 403)),
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
            **dict.fromkeys(("adjudicate-choose", "adjudicate-together", "unsettle", "undo"), (405, 403)),
            **dict.fromkeys(("api-settle", "api-discard", "api-unsettle", "api-undo"), (405, 403)),
        },
    ),
}
# The admin's addresses by a few of them: all are behind the same gate, which lets staff in.
ADMIN = {
    "admin:index": (302, 302, 302, 302, 302, 200),
    "admin:annotate_task_changelist": (302, 302, 302, 302, 302, 200),
    "admin:annotate_annotator_changelist": (302, 302, 302, 302, 302, 200),
    "admin:annotate_unit_changelist": (302, 302, 302, 302, 302, 200),
    "admin:annotate_judgment_changelist": (302, 302, 302, 302, 302, 200),
    "admin:annotate_judgment_add": (302, 302, 302, 302, 302, 403),
    "admin:auth_user_changelist": (302, 302, 302, 302, 302, 200),
}
# What a logged-in person can post by a form of ours.
FORMS = (
    *("logout", "account", "password", "preferences", "languages", "disturbing", "reply-read", "note-read"),
    *("start", "judge", "flag", "undo", "pause", "sheet-start", "sheet-judge", "choose", "change"),
    *("change-choose", "consent"),
    *("adjudicate", "adjudicate-choose", "adjudicate-together", "unsettle"),
    *("manage-languages", "manage-lift", "manage-pause", "manage-void", "manage-question", "manage-note"),
    "manage-guidelines-preview",
    *(f"manage-{page}" for page in (*FORMS_OF_MANAGERS, *BUTTONS_OF_MANAGERS)),
    *("qualification-practice", "qualification-test", "qualification-answer", "qualification-choose"),
)


NEW_PASSWORD = {"new_password1": "quite a long one", "new_password2": "quite a long one"}


QUERIES = {  # what an address needs behind it
    "manage-kind": "?kind=qa_match",
    "manage-foreseen": "?kind=language&design=uniform",
}
