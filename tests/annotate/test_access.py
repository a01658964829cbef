"""Access: every address of the site, asked for by every kind of person; and what an answer never tells."""

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple
from urllib.parse import quote

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.auth.tokens import default_token_generator
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, get_resolver, reverse
from django.utils import timezone
from django.utils.http import urlsafe_base64_encode
from knox.models import AuthToken

from annotate.core import stages
from annotate.kinds import Answer
from annotate.models import Annotator, Job, Judgment, Lease, Task, Trial
from annotate.pages import inbox
from annotate.quality import pauses
from annotate.quality.qualification import next_question
from annotate.work import accounts, flagging, jobs, notes
from annotate.work.adjudication import settle
from annotate.work.judging import judge, skip
from annotate.work.pausing import pause
from annotate.work.permit import acting
from annotate.work.personal import ask_for_language
from annotate.work.queue import take, take_sheet
from tests.annotate.acts import answer, begin
from tests.annotate.conftest import DISPUTED, make_manager, make_person, records_task_maker, task_maker
from tests.annotate.labelling import acts as labelling

# Nobody; an account that is not an annotator's; the annotator whose lease, judgment and token the request names;
# another annotator; an adjudicator, whose settled unit it names; a manager, who is no annotator.
WHO = ("nobody", "guest", "ann", "bea", "ada", "manager")

# The manager's pages of all tasks, and of one.
OF_ALL = ("manage", "manage-questions", "manage-now", "manage-dates", "manage-everybody", "manage-hours")
OF_A_TASK = ("task", "people", "comments", "notes", "tests", "agreement", "rule", "guidelines", "settings")
# Those of the desk, which managers look at.
OF_THE_DESK = (
    "corpora",
    "corpus",
    "rejects",
    "jobs",
    "job",
    "job-packed",
    "job-file",
    "accounts",
    "account",
    "routes",
    "kind",
    "foreseen",
)
# Where a manager acts by a form of its own page, and where by a button elsewhere.
FORMS_OF_MANAGERS = (
    "new-corpus",
    "new-task",
    "inbox",
    "do",
    "extend",
    "new-accounts",
    "new-manager",
    "new-route",
    "route",
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
OF_ADJUDICATORS = {"unsettle", "api-dossier", "api-settle", "api-discard", "api-unsettle"}


class World:
    """A task in the middle of its work, and for each address the arguments and the fields that name Ann's things."""

    def __init__(self):
        make_task, person, manager = task_maker(), make_person, make_manager()
        self.task = task = make_task([DISPUTED] * 7, rounds=1)
        ann, bea = person("ann", "de"), person("bea", "de")
        ada = person("ada", adjudicates=True)
        guest = User.objects.create_user("guest", password="a long password")
        skip(ann, take(ann, task).pk)
        skip(ann, take(ann, task).pk)
        self.waiting, settled = task.units.filter(stage=stages.ADJUDICATION)
        settle(ada, settled.pk, Answer("en", "I read the language"))
        judgment = judge(ann, take(ann, task).pk, Answer("de", comment="a comment of Ann's"))
        judge(bea, take(bea, task).pk, Answer("en", comment="a comment of Bea's"))
        AuthToken.objects.create(ann.user)
        lease = take(ann, task)
        with acting(ann, task.name) as permit:
            asked = flagging.flag(permit, lease.pk, "question", "A question of Ann's?").flag
        flagging.reply(asked.pk, "A reply to Ann.", by=manager)
        note = notes.write(task, "A note to those who read German.", by=manager, language="de")
        asking = make_task([DISPUTED] * 3, name="asking", asked="de")
        on_sheet = take_sheet(ann, asking)
        crowd = records_task_maker()(languages=["de"], gold={"practice": ["1"], "test": ["1", "0"]}, test_items=2)
        practice = begin(ann, crowd, "de", Trial.PRACTICE)
        answer(ann, next_question(practice).pk, "1")
        question = next_question(begin(ann, crowd, "de", Trial.TEST))
        records_task_maker()("toxic_pairs", name="hurting")
        said, chosen, sought, unsettled = self.of_concepts(ann)
        invited = Annotator.objects.create(user=User.objects.create_user("ivy"))
        self.who = {
            "nobody": None,
            "guest": guest,
            "ann": ann.user,
            "bea": bea.user,
            "ada": ada.user,
            "manager": manager,
        }
        self.make_others(person)
        done, waits = self.make_jobs(manager)
        self.arguments = {
            "invite": [accounts.invite(invited)],
            "reset": [urlsafe_base64_encode(b"%d" % invited.user.pk), default_token_generator.make_token(invited.user)],
            **{
                name: [task.name]
                for name in ("queue", "start", "judge", "flag", "undo", "pause", "answers", "guidelines")
            },
            **{name: [asking.name] for name in ("sheet", "sheet-start", "sheet-judge")},
            **{f"manage-{page}": [task.name] for page in OF_A_TASK},
            **{f"manage-{page}": [task.name, ann.pk] for page in ("person", "lift", "pause", "void")},
            **{
                f"manage-{page}": [task.name]
                for page in ("guidelines-add", "guidelines-preview", "settings-change", "switch", "extend")
            },
            **{f"manage-{page}": [ann.pk] for page in ("account", "account-change", "account-do")},
            **{f"manage-{page}": ["hi"] for page in ("route", "route-remove")},
            "manage-corpus": ["july"],
            "manage-rejects": ["july", 1],
            "manage-do": ["close"],
            **{f"manage-job{act}": [done.pk] for act in ("", "-packed", "-again", "-remove")},
            "manage-job-cancel": [waits.pk],
            "manage-job-file": [done.pk, "card.md"],
            "reply-read": [asked.pk],
            "note-read": [note.pk],
            "manage-question": [asked.pk],
            **{name: [task.name] for name in ("adjudication", "adjudicate-together", "manage-note")},
            "choose": ["acts"],
            "change-choose": ["acts", said.pk],
            "change": [task.name, judgment.pk],
            "consent": ["hurting"],
            "qualification-choose": ["tested-acts", "en"],
            "adjudicate-choose": ["acts", unsettled.pk],
            "adjudicate": [task.name, self.waiting.pk],
            "unsettle": [task.name, settled.pk],
            **{
                name: [task.name]
                for name in ("api-task", "api-concepts", "api-progress", "api-next", "api-undo", "api-adjudication")
            },
            **{name: [task.name, self.waiting.pk] for name in ("api-dossier", "api-settle", "api-discard")},
            "api-unsettle": [task.name, settled.pk],
            **{name: [lease.pk] for name in ("api-judge", "api-skip", "api-flag", "api-release")},
            "api-qualification": [crowd.name],
            **{name: [crowd.name, "de"] for name in ("api-practise", "api-test", "qualification")},
            **{f"qualification-{name}": [crowd.name, "de"] for name in ("practice", "test", "answer")},
            "api-answer": [question.pk],
            "docs-page": ["reference/commands"],
            "docs-file": ["reference/commands.md"],
        }
        self.fields = {
            "login": {"username": "ann", "password": "wrong"},
            "tongue": {"language": "de"},
            "password": {"old_password": "a long password", **NEW_PASSWORD},
            "reset": NEW_PASSWORD,
            "invite": NEW_PASSWORD,
            "account": {"make": "1"},
            "languages": {"language": "fr", "level": "4"},
            "manage-languages": {"refuse": ask_for_language(bea, "it", 5).pk},
            "judge": {"lease": lease.pk, "answer": "de"},
            "flag": {"lease": lease.pk, "flag": "disturbing"},
            "choose": {"lease": chosen.pk},
            "manage-question": {"do": "dismiss"},
            "manage-note": {"text": "Another note."},
            "change": {"answer": "de"},
            "consent": {"do": "agree"},
            "qualification-choose": {"question": sought.pk},
            "undo": {"judgment": judgment.pk},
            "sheet-judge": {"lease": [each.pk for each in on_sheet]}
            | {f"answer-{each.pk}": "not-de" for each in on_sheet},
            "adjudicate": {"label": "de", "reason": "I read the language"},
            "adjudicate-together": {"case": f"{self.waiting.pk} de", "reason": "I read the language"},
            **{name: {"reason": "asleep"} for name in ("manage-pause", "manage-void")},
            "manage-do": {"task": task.name},
            "manage-new-task": {"corpus": "july", "kind": "language", "name": "another", "size": "1", "seed": "1"},
            "manage-extend": {"size": "20"},
            "manage-guidelines-add": {"language": "en", "text": "Read better.", "change": "minor"},
            "manage-guidelines-preview": {"language": "en", "text": "Read better."},
            "manage-settings-change": {"title": "Another"},
            "manage-switch": {"open": "no"},
            "manage-new-accounts": {"username": "nia", "languages": "de:5"},
            "manage-new-manager": {"name": "mia"},
            "manage-account-change": {"name": "Anna", "languages": "de:5"},
            "manage-account-do": {"do": "withdraw"},
            "manage-new-route": {"language": "pt", "queue": "es"},
            "manage-route": {"queue": "ur"},
            "manage-new-corpus": {
                "file": "posts.csv",
                "corpus": "august",
                "licence": "CC0-1.0",
                "text_may_leave": "yes",
            },
            "api-judge": {"label": "de"},
            "api-flag": {"kind": "broken"},
            "api-settle": {"label": "de", "reason": "I read the language"},
            "api-discard": {"reason": "nothing found"},
            "api-answer": {"label": "1"},
            "qualification-answer": {"question": question.pk, "answer": "1"},
        }

    def make_others(self, person):
        clerk, onlooker = (
            User.objects.create_user(name, password="a long password", is_staff=True) for name in ("clerk", "onlooker")
        )
        clerk.user_permissions.set(Permission.objects.filter(content_type__app_label="annotate"))
        zoe = person("zoe", "de")
        skip(zoe, take(zoe, self.task).pk)
        zoe.languages.all().delete()
        pat, kit = person("pat", "de"), person("kit", adjudicates=True)
        for task in Task.objects.all():
            for paused in (pat, kit):
                pause(paused, task, by=clerk, reason="asleep")
        self.who |= {"clerk": clerk, "onlooker": onlooker, "zoe": zoe.user, "pat": pat.user, "kit": kit.user}

    @staticmethod
    def make_jobs(manager):
        """A corpus of a file of which one row was rejected; a job that made a file, and one that waits."""
        path = inbox.folder() / "posts.csv"
        path.write_text("id,text\n1,Guten Morgen\n2,\n")
        call_command("import_corpus", "july", path, licence="CC0-1.0", max_rejects="1", verbosity=0)
        done, waits = (jobs.begin("close", {"task": "task"}, corpus="", by=manager) for _ in range(2))
        (jobs.folder(done) / "out").mkdir(parents=True)
        (jobs.folder(done) / "out" / "card.md").write_text("# A card")
        now = timezone.now()
        Job.objects.filter(pk=done.pk).update(state=Job.DONE, began_at=now, ended_at=now)
        return done, waits

    @staticmethod
    def of_concepts(ann):
        """Of tasks whose answers are concepts: an answer and a lease of Ann's, a question of hers, and a unit for an
        adjudicator.
        """
        ann.languages.create(language="en")
        labelling.import_eurovoc()
        labelling.import_acts()
        task = labelling.task_of(skip_limit=1, redundancy=1)
        skip(ann, take(ann, task).pk)
        tested = labelling.task_of("tested-acts", gold=[labelling.gold_file("practice", "test")], test_items=1, tries=1)
        practice = begin(ann, tested, "en", Trial.PRACTICE)
        unsettled = task.units.get(stage=stages.ADJUDICATION)
        return labelling.choose(ann, task, "4689"), take(ann, task), next_question(practice), unsettled

    @staticmethod
    def as_if_just_made():
        """However long ago it was: answers can be taken back, and no lease has run out."""
        now = timezone.now()
        Judgment.objects.update(shown_at=now, answered_at=now)
        Lease.objects.filter(closed_at__isnull=True).update(expires_at=now + timedelta(minutes=10))

    def address(self, name):
        if name == "favicon.ico":
            return "/favicon.ico"
        return reverse(name, args=self.arguments.get(name)) + QUERIES.get(name, "")

    def client(self, who, **options):
        client = Client(**options)
        if user := self.who[who]:
            client.force_login(user)
        return client

    def send(self, client, method, name):
        if method == "GET":
            got = client.get(self.address(name))
            if got.streaming:
                b"".join(got.streaming_content)  # at its end the file is closed
            return got
        json = {"content_type": "application/json"} if name.startswith("api-") else {}
        return client.post(self.address(name), self.fields.get(name, {}), **json)

    def told(self, who, method, name):
        """What a person is told, every time in the same world: nobody is told it twice."""
        if (who, method, name) not in self.already:
            with transaction.atomic():
                answer = self.send(self.client(who), method, name)
                transaction.set_rollback(True)
            is_page = answer["Content-Type"].startswith("text/html") if "Content-Type" in answer else False
            self.already[who, method, name] = Told(answer.status_code, answer.headers, answer.text if is_page else "")
        return self.already[who, method, name]

    def statuses(self, name, method, people=WHO):
        return tuple(self.told(who, method, name).status for who in people)


class Told(NamedTuple):
    """text: of a page."""

    status: int
    headers: Mapping[str, str]
    text: str


@pytest.fixture(scope="module")
def begin_world(make_world):
    begin, already = make_world(World), {}

    def again(data_dir):
        made = begin(data_dir)
        made.already = already
        return made

    return again


@pytest.fixture
def world(begin_world, data_dir, db):
    made = begin_world(data_dir)
    made.as_if_just_made()
    return made


def addresses(patterns):
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield pattern.name or str(pattern.pattern)
        elif pattern.namespace != "admin":
            yield from addresses(pattern.url_patterns)


def test_the_tables_have_every_address():
    assert sorted(addresses(get_resolver().url_patterns)) == sorted([*PAGES, *API])


@pytest.mark.parametrize("who", WHO)
def test_who_may_ask_for_what(world, who):
    place, names = WHO.index(who), [*PAGES, *API]
    assert {name: (*world.statuses(name, "GET", [who]), *world.statuses(name, "POST", [who])) for name in names} == {
        name: (asked[place], posted[place]) for name, (asked, posted) in (PAGES | API).items()
    }


@pytest.mark.parametrize("who", OTHERS)
def test_what_staff_with_some_rights_a_withdrawn_reader_and_paused_people_may_ask_for(world, who):
    model, but_for = OTHERS[who]
    otherwise = {}
    for name, (asked, posted) in (PAGES | API).items():
        found = (*world.statuses(name, "GET", [who]), *world.statuses(name, "POST", [who]))
        if found != (asked[WHO.index(model)], posted[WHO.index(model)]):
            otherwise[name] = found
    assert otherwise == but_for


def test_options_tell_by_one_header_which_methods_an_address_of_the_api_takes(world):
    for who in (*WHO, *OTHERS):
        client = world.client(who)
        for name, (asked, posted) in API.items():
            answer = client.options(world.address(name))
            if who == "nobody" and asked[0] == 401:
                assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated"), name
                continue
            takes = {method for method, ann in (("GET", asked[2]), ("POST", posted[2])) if ann != 405}
            told = set(answer["Allow"].split(", ")) - {"OPTIONS", "HEAD"}
            assert (answer.status_code, answer.content, told) == (200, b"", takes), (who, name)


def test_the_admin_is_the_managers(world):
    assert {name: world.statuses(name, "GET") for name in ADMIN} == ADMIN


def test_nobody_is_sent_to_the_login_and_back(world):
    for name in set(PAGES) - {
        "login",
        "tongue",
        "logout",
        "invite",
        "forgotten",
        "reset",
        "docs",
        "docs-page",
        "docs-file",
        "favicon.ico",
    }:
        told = world.told("nobody", "GET", name)
        assert told.headers["Location"] == f"/login/?next={quote(world.address(name))}", name


def test_a_token_opens_what_a_session_opens(world):
    for who in WHO[1:]:
        headers = {"Authorization": f"Token {AuthToken.objects.create(world.who[who])[1]}"}
        for name, (asked, posted) in API.items():
            with transaction.atomic():
                assert Client().get(world.address(name), headers=headers).status_code == asked[WHO.index(who)]
                answer = Client().post(
                    world.address(name), world.fields.get(name, {}), content_type="application/json", headers=headers
                )
                assert answer.status_code == posted[WHO.index(who)], (who, name)
                transaction.set_rollback(True)


# --- forms, headers, cookies, tokens


def test_a_form_without_the_token_against_forged_requests_is_refused(world):
    forms = {name: "ada" if name.startswith(("adjudicate", "unsettle")) else "ann" for name in FORMS}
    forms |= {name: "manager" for name in FORMS if name.startswith("manage-")}
    forms |= dict.fromkeys(("login", "tongue", "invite", "forgotten", "reset"), "nobody")
    takes_posts = {name for name, (_, posted) in PAGES.items() if set(posted[1:]) != {405}} - {"favicon.ico"}
    assert set(forms) == takes_posts
    for name, who in forms.items():
        answer = world.send(world.client(who, enforce_csrf_checks=True), "POST", name)
        assert answer.status_code == 403, name
    assert not Judgment.objects.filter(unit=world.waiting, kind="settle").exists()


def test_the_api_with_a_session_asks_for_that_token_too(world):
    tried = set()
    for who in ("ann", "ada"):
        client = world.client(who, enforce_csrf_checks=True)
        for name, (_, posted) in API.items():
            if posted[WHO.index(who)] not in (403, 405):
                assert world.send(client, "POST", name).status_code == 403, (who, name)
                tried.add(name)
    assert tried == {name for name, (_, posted) in API.items() if posted[WHO.index("ada")] != 405}


def policy(headers):
    parts = (part.split() for part in headers["Content-Security-Policy"].split(";"))
    return {name: set(sources) for name, *sources in parts}


def test_every_answer_forbids_scripts_of_others_and_scripts_in_the_page(world):
    for who in ("nobody", "ada", "manager"):
        for name in (*PAGES, *API, *ADMIN):
            rules = policy(world.told(who, "GET", name).headers)
            assert rules["default-src"] == {"'self'"}, name
            assert rules.get("script-src", {"'self'"}) == {"'self'"}, name
            assert rules["form-action"] == rules.get("connect-src", {"'self'"}) == {"'self'"}, name
            assert (rules["object-src"], rules["frame-ancestors"]) == ({"'none'"}, {"'none'"}), name
            relaxed = {"'self'", "'unsafe-inline'"} if name == "api-docs" else {"'self'"}
            assert rules.get("style-src", {"'self'"}) == relaxed, name


def test_no_page_has_a_script_or_a_style_in_it(world):
    for name in (*PAGES, *API):
        page = world.told("ada", "GET", name).text
        scripts = re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", page)
        assert scripts == [], name
        assert not re.search(r"<[^>]+\son[a-z]+=", page), name
        if name != "api-docs":
            assert not re.search(r"<style|<[^>]+\sstyle=", page), name
    assert "<script" in world.told("ada", "GET", "queue").text


def test_the_session_cookie_is_for_the_server_alone(world, settings):
    answer = Client().post("/login/", {"username": "ann", "password": "a long password"})
    cookie = answer.cookies["sessionid"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert settings.SESSION_COOKIE_SECURE == settings.CSRF_COOKIE_SECURE == settings.HTTPS


def test_tokens_are_stored_as_hashes(world):
    stored, token = AuthToken.objects.create(world.who["ann"])
    assert token not in {str(value) for value in vars(stored).values()}
    assert stored.token_key == token[: len(stored.token_key)]
    assert len(stored.token_key) < len(token) / 2 < len(stored.digest)


def tasks_by(token):
    return Client().get("/api/v1/tasks/", headers={"Authorization": f"Token {token}"}).status_code


def test_a_token_that_was_revoked_is_refused(world):
    client = world.client("ann")
    page = client.post("/account/", {"make": "1"})
    token = re.search(r"<code>(\w{40,})</code>", page.text)[1]
    assert tasks_by(token) == 200
    assert token not in client.get("/account/").text
    client.post("/account/", {"revoke": AuthToken.objects.get(token_key=token[:15]).token_key})
    assert tasks_by(token) == 401


def test_nobody_revokes_the_token_of_somebody_else(world):
    stored, token = AuthToken.objects.create(world.who["ann"])
    world.client("bea").post("/account/", {"revoke": stored.token_key})
    assert tasks_by(token) == 200


def test_who_is_locked_out_is_out_at_once(world):
    client, (_, token) = world.client("ann"), AuthToken.objects.create(world.who["ann"])
    accounts.set_active(Annotator.objects.filter(user=world.who["ann"]), False)
    assert client.get("/").url == "/login/?next=/"
    assert world.send(client, "POST", "judge").url.startswith("/login/")
    assert world.send(client, "POST", "api-judge").status_code == 401
    assert tasks_by(token) == 401
    again = Client().post("/login/", {"username": "ann", "password": "a long password"})
    assert again.status_code == 200


# --- what annotators are not told


def keys(value):
    """Every key of a JSON value, as paths."""
    if isinstance(value, dict):
        return {f"{key}{rest}" for key, inner in value.items() for rest in keys(inner) | {""}}
    if isinstance(value, list):
        return {f".{rest}" for inner in value for rest in keys(inner)}
    return {""}


CLOSED = {"id", "kind", "label", "reason", "comment", "answered_at", "active_seconds", "next"}
PROGRESS = {"answered_today", "skipped_today", "waiting"}
LEASE = {"id", "text", "language", "fields", "asked", "sets", "suggestions", "expires_at"}
TASK = {"name", "title", "type", "labels", "languages", "guidelines", "version", "progress"}
IN_FULL = TASK | {"answers", "vocabulary"}
VOCABULARY = {"name", "version", "least", "most", "beside_broader"}
OFFERED = {"label", "asked", "name", "names", "autonym"}
STANDING = {"language", "state", "version", "guidelines", "tries_left"}
QUESTION = {"id", "number", "of", "fields", "sets"}
ANSWERED = {"accepted", "right", "label", "explanation", "result"}
RESULT = {"kind", "passed", "right", "asked", "needed", "missed"}
FLAGGED = {"kind", "words", "at", "next"}
NEXT = {"lease": LEASE, "why": None}


def test_the_api_tells_exactly_this(world):
    client = world.client("ann")
    *_, task = client.get("/api/v1/tasks/").json()
    assert set(task) == TASK
    assert set(task["progress"]) == set(world.send(client, "GET", "api-progress").json()) == PROGRESS
    task = world.send(client, "GET", "api-task").json()
    assert (set(task), *map(set, task["answers"])) == (IN_FULL, *[OFFERED] * len(world.task.labels), OFFERED)
    given = world.send(client, "POST", "api-next").json()
    assert {key: set(value) if isinstance(value, dict) else None for key, value in given.items()} == NEXT
    assert set(world.send(client, "POST", "api-judge").json()) == CLOSED
    reopened = world.send(client, "POST", "api-undo").json()
    assert {key: set(value) if isinstance(value, dict) else None for key, value in reopened.items()} == NEXT
    path = f"/api/v1/leases/{reopened['lease']['id']}/skip/"
    skipped = client.post(path, {"take_next": True}, content_type="application/json").json()
    assert (set(skipped), set(skipped["next"])) == (CLOSED, set(NEXT))
    path = f"/api/v1/leases/{skipped['next']['lease']['id']}/flag/"
    flagged = client.post(path, {"kind": "disturbing", "take_next": True}, content_type="application/json").json()
    assert (set(flagged), set(flagged["next"])) == (FLAGGED, set(NEXT))
    refused = client.post("/api/v1/leases/0/skip/", content_type="application/json")
    assert set(refused.json()) == {"code", "detail"}
    (standing,) = world.send(client, "GET", "api-qualification").json()
    assert set(standing) == STANDING
    for name in ("api-practise", "api-test"):
        begun = world.send(client, "POST", name).json()
        assert (set(begun), set(begun["question"])) == ({"question", "result"}, QUESTION)
    said = world.send(client, "POST", "api-answer").json()
    assert (set(said), {name for name, value in said.items() if value is not None}) == (ANSWERED, {"accepted"})


ADJUDICATORS = {"Discard", "Dossier", "Judgment", "Move", "OtherPost", "Said", "Settle", "Waiting", "WaitingList"}


def test_the_schema_names_nothing_else_to_annotators(world):
    schema = json.loads(Client().get("/api/v1/schema/?format=json").text)
    paths = {path: methods for path, methods in schema["paths"].items() if "/adjudication/" not in path}
    schemas = {name: each for name, each in schema["components"]["schemas"].items() if name not in ADJUDICATORS}
    text = json.dumps([paths, schemas])
    assert not re.search(f'schemas/({"|".join(ADJUDICATORS)})"', text)
    assert {name: set(schema["properties"]) for name, schema in schemas.items() if "properties" in schema} == {
        "Answer": {"label", "reason", "comment", "sure", "active_seconds", "take_next"},
        "Answered": ANSWERED,
        "Concept": {"id", "label", "path"},
        "Closed": CLOSED,
        "Flag": {"kind", "words", "active_seconds", "take_next"},
        "Flagged": FLAGGED,
        "Lease": LEASE,
        "Missed": {"fields", "sets", "said", "label", "explanation"},
        "Next": {"lease", "why"},
        "Offered": OFFERED,
        "Progress": PROGRESS,
        "Question": QUESTION,
        "Refusal": {"code", "detail"},
        "Result": RESULT,
        "Skip": {"active_seconds", "take_next"},
        "Standing": STANDING,
        "Task": TASK,
        "TaskInFull": IN_FULL,
        "Trial": {"question", "result"},
        "TrialAnswer": {"label", "sure"},
        "Vocabulary": VOCABULARY,
    }
    assert not re.search("votes|visited|candidate|pseudonym|stage|round|redundancy|detector", text)


def test_no_page_of_an_annotator_names_others_or_anything_of_the_machine(world):
    client = world.client("ann")
    pages = [world.send(client, "GET", name).text for name in ("home", "queue", "answers", "guidelines", "account")]
    pages.append(client.post("/tasks/task/start/", headers={"HX-Request": "true"}).text)
    told = "\n".join(pages)
    assert "a comment of Ann&#x27;s" in told
    assert "Bea" not in told
    for annotator in Annotator.objects.all():
        assert annotator.pseudonym not in told
    for word in (*stages.STAGES, "langid", "cld2", "fasttext", "candidate"):
        assert word not in told, word


# --- what is kept of pages


def test_no_browser_and_no_proxy_keeps_a_page_that_is_of_a_person(world):
    """Every address by everybody; who is not logged in may keep the documentation, and ask whether it has changed."""
    public = {"docs", "docs-page", "docs-file"}
    for who in WHO:
        for name in (*PAGES, *API, *ADMIN):
            for method in ("GET", "POST"):
                kept = world.told(who, method, name).headers["Cache-Control"]
                told = {part.strip() for part in kept.split(",")}
                if who == "nobody" and name in public and method == "GET":
                    assert told == {"no-cache"}, name
                else:
                    assert {"no-store", "private"} <= told, (who, method, name)


def test_a_paused_adjudicator_can_do_nothing_in_the_task(world):
    ada = Annotator.objects.get(user=world.who["ada"])
    for task in Task.objects.all():  # some addresses are of others
        pauses.store(ada, task, 0, 0, reason="too fast")
    client = world.client("ada")
    names = [name for name, (asked, _) in (PAGES | API).items() if "adjudic" in name or name in OF_ADJUDICATORS]
    assert len(names) == 10
    for name in names:
        for method in ("GET", "POST"):
            with transaction.atomic():
                answer = world.send(client, method, name)
                assert answer.status_code in (403, 405), (method, name)
                assert answer.status_code == 405 or pauses.PAUSED in answer.text, (method, name)
                transaction.set_rollback(True)
    assert "/adjudication/" not in client.get("/").text
