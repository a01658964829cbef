"""A task in progress, with an example of every object that a URL can name."""

from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from django.contrib.auth.models import Permission, User
from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlsafe_base64_encode
from knox.models import AuthToken

from annotate.actions.registry import call_command
from annotate.controls.qualification import next_question
from annotate.core import stages
from annotate.kinds import Answer
from annotate.kinds.kind_draft import TEMPLATES
from annotate.manager_pages import inbox
from annotate.models import Annotator, Job, Judgment, Lease, Task, Trial, Webhook
from annotate.work import accounts, flags, job_store
from annotate.work.accounts import request_language
from annotate.work.adjudication import settle
from annotate.work.interventions import pause
from annotate.work.judgments import judge, skip
from annotate.work.permit import acting
from annotate.work.queue import take, take_sheet
from tests.annotate.access.addresses import NEW_PASSWORD, OF_A_TASK, QUERIES, WHO
from tests.annotate.acts import answer, begin
from tests.annotate.concepts import acts as labelling
from tests.annotate.conftest import DISPUTED, make_manager, make_person, records_task_maker, task_maker

WEBHOOK = "https://8.8.8.8/"  # a public address, to which no test sends anything


class World:
    """A task in progress, and for each URL the arguments and form fields that refer to Ann's objects."""

    def __init__(self):
        self.sessions = {}
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
        with acting(ann.user, task.name) as permit:
            flagged = flags.flag(permit, lease.pk, "question", "A question of Ann's?").flag
        flags.reply(flagged.pk, "A reply to Ann.", by=manager)
        note = flags.write_note(task, "A note to those who read German.", by=manager, language="de")
        asking = make_task([DISPUTED] * 3, name="asking", asked="de")
        on_sheet = take_sheet(ann, asking)
        crowd = records_task_maker()(languages=["de"], gold={"practice": ["1"], "test": ["1", "0"]}, test_items=2)
        practice = begin(ann, crowd, "de", Trial.PRACTICE)
        answer(ann, next_question(practice).pk, "1")
        question = next_question(begin(ann, crowd, "de", Trial.TEST))
        records_task_maker()("toxic_pairs", name="hurting")
        of_concepts = self.of_concepts(ann)
        invited = Annotator.objects.create(user=User.objects.create_user("ivy"))
        self.who = {"nobody": None, "guest": guest, "manager": manager}
        self.who |= {"ann": ann.user, "bea": bea.user, "ada": ada.user}
        self.make_others(person)
        done, waits = self.make_jobs(manager)
        webhook = Webhook.objects.create(url=WEBHOOK, by=manager)
        failed = webhook.deliveries.create(
            event="job.ended", key="job.ended:1", body='{"data": {}}', at=timezone.now(), fault="x"
        )
        uid = urlsafe_base64_encode(b"%d" % invited.user.pk)
        self.arguments = {
            name: arguments
            for names, arguments in {
                "invite": [accounts.invite(invited)],
                "first-manager": [accounts.invite_first_manager()],
                "reset": [uid, default_token_generator.make_token(invited.user)],
                "queue start judge flag undo pause answers guidelines adjudication adjudicate-together": [task.name],
                " ".join(f"manage-{page}" for page in (*OF_A_TASK, "note", "extend", "export", "members")): [task.name],
                "manage-guidelines-add manage-guidelines-preview manage-settings-change manage-switch": [task.name],
                "api-task api-concepts api-progress api-next api-undo api-adjudication": [task.name],
                "api-manage-task api-task-jobs": [task.name],
                "sheet sheet-start sheet-judge": [asking.name],
                "manage-item adjudicate api-dossier api-settle api-discard": [task.name, self.waiting.pk],
                "unsettle api-unsettle": [task.name, settled.pk],
                "manage-person manage-lift manage-pause manage-void": [task.name, ann.pk],
                "manage-account manage-account-change manage-account-do": [ann.pk],
                "manage-route manage-route-remove": ["hi"],
                "manage-corpus": ["july"],
                "manage-rejects": ["july", 1],
                "manage-do": ["close"],
                "manage-job manage-job-packed manage-job-again manage-job-remove manage-job-share": [done.pk],
                "api-job api-job-packed": [done.pk],
                "shared": [job_store.share(done, "card.md", manager)],
                "manage-job-withdraw": [done.pk, done.shares.get().pk],
                "manage-job-cancel api-job-cancel": [waits.pk],
                "manage-job-file api-job-file": [done.pk, "card.md"],
                "reply-read manage-question": [flagged.pk],
                "note-read": [note.pk],
                "change": [task.name, judgment.pk],
                "consent": ["hurting"],
                "api-judge api-skip api-flag api-release": [lease.pk],
                "api-qualification": [crowd.name],
                "qualification qualification-practice qualification-test qualification-answer": [crowd.name, "de"],
                "api-practise api-test": [crowd.name, "de"],
                "api-answer": [question.pk],
                "api-upload": ["other.jsonl"],
                "api-start": ["import_corpus"],
                "api-start-in-task": [task.name, "export_gold"],
                "manage-webhook manage-webhook-delete api-deliveries api-webhook-delete": [webhook.pk],
                "manage-delivery-again api-delivery-again": [failed.pk],
                "docs-page": ["reference/commands"],
                "docs-file": ["reference/commands.md"],
            }.items()
            for name in names.split()
        }
        imported, template = {"corpus": "august", "licence": "CC0-1.0"}, TEMPLATES["inference"].read_text()
        self.fields = {
            "login": {"username": "ann", "password": "wrong"},
            "tongue": {"language": "de"},
            "password": {"old_password": "a long password", **NEW_PASSWORD},
            "reset": NEW_PASSWORD,
            "invite": NEW_PASSWORD,
            "first-manager": {"username": "mo", "password1": "a long password", "password2": "a long password"},
            "account": {"make": "1"},
            "preferences": {"theme": "dark"},
            "languages": {"language": "fr", "level": "4"},
            "manage-languages": {"refuse": request_language(bea, "it", 5).pk},
            "judge": {"lease": lease.pk, "answer": "de"},
            "flag": {"lease": lease.pk, "flag": "disturbing"},
            "disturbing": {"takes": "no"},
            "manage-question": {"do": "dismiss"},
            "manage-note": {"text": "Another note."},
            "change": {"answer": "de"},
            "consent": {"do": "agree"},
            "undo": {"judgment": judgment.pk},
            "sheet-judge": {"lease": [lease.pk for lease in on_sheet]}
            | {f"answer-{lease.pk}": "not-de" for lease in on_sheet},
            "adjudicate": {"label": "de", "reason": "I read the language"},
            "adjudicate-together": {"case": f"{self.waiting.pk} de", "reason": "I read the language"},
            **{name: {"reason": "asleep"} for name in ("manage-pause", "manage-void")},
            "manage-do": {"task": task.name},
            "manage-job-share": {"path": "card.md", "days": "30"},
            "manage-new-task": {"corpus": "july", "kind": "language", "name": "another", "size": "1", "seed": "1"},
            "manage-kind-edit": {"do": "save", "view": "toml", "toml": template, "slug": "mine"},
            "manage-extend": {"size": "20"},
            "manage-guidelines-add": {"language": "en", "text": "Read better.", "change": "minor"},
            "manage-guidelines-preview": {"language": "en", "text": "Read better."},
            "manage-settings-change": {"title": "Another"},
            "manage-switch": {"open": "no"},
            "manage-members": {"do": "open", "open_to": "members"},
            "manage-new-accounts": {"people": "nia", "language": "de", "level": "5"},
            "manage-new-manager": {"name": "mia"},
            "manage-account-change": {"name": "Anna", "language": "de", "level": "5"},
            "manage-account-do": {"do": "withdraw"},
            "manage-new-route": {"language": "pt", "queue": "es"},
            "manage-route": {"queue": "ur"},
            "manage-new-corpus": {"file": "posts.csv", "text_may_leave": "yes"} | imported,
            "api-upload": {"id": "1", "text": "Guten Tag"},
            "api-webhook-new": {"url": WEBHOOK},
            "manage-new-webhook": {"url": WEBHOOK, "event": "job.ended"},
            "api-start": {"files": ["posts.csv"]} | imported,
            "api-judge": {"label": "de"},
            "api-flag": {"kind": "broken"},
            "api-settle": {"label": "de", "reason": "I read the language"},
            "api-discard": {"reason": "nothing found"},
            "api-answer": {"label": "1"},
            "qualification-answer": {"question": question.pk, "answer": "1"},
        }
        for name, (arguments, fields) in of_concepts.items():
            self.arguments[name], self.fields[name] = arguments, {"do": "show browse"} | fields

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
        """Create a corpus from a file with one rejected row, a finished job with a file, and a pending job."""
        path = inbox.folder() / "posts.csv"
        path.write_text("id,text\n1,Guten Morgen\n2,\n")
        call_command("import_corpus", "july", path, licence="CC0-1.0", max_rejects="1", verbosity=0)
        done, waits = (job_store.begin("close", {"task": "task"}, corpus="", by=manager) for _ in range(2))
        (job_store.folder(done) / "out").mkdir(parents=True)
        (job_store.folder(done) / "out" / "card.md").write_text("# A card")
        now = timezone.now()
        Job.objects.filter(pk=done.pk).update(state=Job.DONE, began_at=now, ended_at=now)
        return done, waits

    @staticmethod
    def of_concepts(ann):
        """For tasks whose answers are concepts, create an answer, a lease and a question by Ann, and a unit for an
        adjudicator. Return the arguments and form fields of the addresses in PICKERS.
        """
        ann.languages.create(language="en")
        labelling.import_eurovoc()
        labelling.import_acts()
        task = labelling.task_of(skip_limit=1, redundancy=1)
        skip(ann, take(ann, task).pk)
        tested = labelling.task_of("tested-acts", gold=[labelling.gold_file("practice", "test")], test_items=1, tries=1)
        question = next_question(begin(ann, tested, "en", Trial.PRACTICE))
        judgment, lease = labelling.choose(ann, task, "4689"), take(ann, task)
        case = task.units.get(stage=stages.ADJUDICATION)
        return {
            "judge do": ([task.name], {"lease": lease.pk}),
            "change do": ([task.name, judgment.pk], {}),
            "adjudicate do": ([task.name, case.pk], {}),
            "qualification-answer do": ([tested.name, "en"], {"question": question.pk}),
        }

    @staticmethod
    def as_if_just_made():
        """Update all times to now, so that answers can be undone and no lease has expired."""
        now = timezone.now()
        Judgment.objects.update(shown_at=now, answered_at=now)
        Lease.objects.filter(closed_at__isnull=True).update(expires_at=now + timedelta(minutes=10))

    def address(self, name):
        if name == "favicon.ico":
            return "/favicon.ico"
        return reverse(name.partition(" ")[0], args=self.arguments.get(name)) + QUERIES.get(name, "")

    def client(self, who, **options):
        client = Client(**options)
        if user := self.who[who]:
            client.force_login(user)
        return client

    def send(self, client, method, name):
        if method in ("GET", "HEAD"):
            response = client.generic(method, self.address(name))
            if response.streaming:
                b"".join(response.streaming_content)  # reading to the end closes the file
            return response
        json = {"content_type": "application/json"} if name.startswith("api-") else {}
        return client.post(self.address(name), self.fields.get(name, {}), **json)

    def signed_in(self, who):
        """Return a new client with the person's session. Sessions are reused, because logging in is slow."""
        if who not in self.sessions:
            self.sessions[who] = self.client(who).cookies
        client = Client()
        client.cookies.update(self.sessions[who])
        return client

    def response(self, who, method, name):
        """Return the response to a person. Each request starts from the same state of the world."""
        if (who, method, name) not in self.already:
            client = self.signed_in(who)
            with transaction.atomic():
                answer = self.send(client, method, name)
                transaction.set_rollback(True)
            is_page = answer["Content-Type"].startswith("text/html") if "Content-Type" in answer else False
            self.already[who, method, name] = Reply(answer.status_code, answer.headers, answer.text if is_page else "")
        return self.already[who, method, name]

    def statuses(self, name, method, people=WHO):
        return tuple(self.response(who, method, name).status for who in people)


class Reply(NamedTuple):
    """A response.

    text: the text of the page
    """

    status: int
    headers: Mapping[str, str]
    text: str
