"""Secrecy attacks: programs that know all that annotators and readers of an export can know predict where gold answers
stand and which posts are audited no better than by chance. Where draws go by the seed, the same programs find them all.
"""

import hashlib
from collections import Counter
from functools import partial
from typing import NamedTuple
from unittest.mock import patch

import pytest
from scipy.stats import binom

from annotate.core.draws.committed_draws import gold_places
from annotate.core.draws.hash_order import by_secret, by_seed, draw_sample
from annotate.models import Annotator, Task
from tests.annotate.acts import work_through
from tests.annotate.conftest import AGREED, make_person, records_task_maker

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite]

PEOPLE, RECORDS, BLOCK = 5, 120, 5
POSTS, AUDITED = 600, 120
CANDIDATES = 20_000
KNOWN = 9  # places that an attacker has found out


class Public(NamedTuple):
    """Everything that an outsider or an annotator can know about a task: the card, the manifest and the rows.

    other_secret: the secret that another task has disclosed
    numbers: the primary key of each person
    is_gold: whether each unit was a gold answer, by person; an attack may read this only if its docstring says so
    """

    seed: str
    name: str
    digest: str
    other_secret: str
    ids: list[str]
    numbers: dict[str, int]
    is_gold: dict[str, list[bool]]


def worked_on() -> dict[str, Public]:
    """Return a task in which five people answered over 600 units, and a task of one person that draws by its seed."""
    make, gold = records_task_maker(), {"queue": ["1", "0"] * 15}
    how = {"gold": gold, "gold_share": 1 / BLOCK, "pause_below": 0}
    secret = make("qa_match", RECORDS, redundancy=PEOPLE, **how)
    other_secret = make("qa_match", 1, name="another").secret
    people = [make_person(f"person {number}", "en") for number in range(PEOPLE)]
    with drawn_by_the_seed():
        seed = make("qa_match", 70, name="by-seed", redundancy=1, **how)
        by_seed = public(seed, other_secret, given_to(people[:1], seed))
    return {"secret": public(secret, other_secret, given_to(people, secret)), "seed": by_seed}


def drawn_by_the_seed():
    """Make all draws repeatable by anybody, so that a working attack finds something."""
    return patch.object(Task, "lots", property(lambda task: by_seed(task.seed)))


def given_to(people, task):
    return {person.pseudonym: [lease.unit.honeypot for lease in work_through(person, task, "1")] for person in people}


def public(task, other_secret, is_gold) -> Public:
    keys = list(task.units.order_by("pk").values_list("item__key", flat=True))
    numbers = dict(Annotator.objects.values_list("pseudonym", "pk"))
    digest = hashlib.sha256(task.secret.encode()).hexdigest()
    return Public(task.seed, task.name, digest, other_secret, keys, numbers, is_gold)


@pytest.fixture(scope="module")
def begin(make_world):
    return make_world(worked_on)


@pytest.fixture
def worlds(begin, data_dir, db):
    return begin(data_dir)


@pytest.fixture
def facts(worlds):
    return worlds["secret"]


# --- attacks on the places of gold answers: for each person, whether each unit is predicted to be one


def _by(lots, person, length):
    is_gold = gold_places(lots, person, "en", BLOCK)
    return [is_gold(place) for place in range(length)]


def from_the_seed(facts, person):
    """MD5 of the seed, the task's name and the person's number, as cards once published them."""
    return _by(by_seed(f"{facts.seed}:{facts.name}"), str(facts.numbers[person]), len(facts.is_gold[person]))


def from_the_seed_and_pseudonym(facts, person):
    return _by(by_seed(facts.seed), person, len(facts.is_gold[person]))


def from_hmac_of(secret, facts, person):
    """The program's own draw, with a public value instead of the secret."""
    return _by(by_secret(secret(facts)), person, len(facts.is_gold[person]))


def from_a_search(lots_of, facts, person):
    """Return the predictions of the candidate that fits most of the nine known places, for the places after them."""
    marks = facts.is_gold[person]
    places = [place for place, is_gold in enumerate(marks) if is_gold][:KNOWN]
    best, most = 0, -1
    for number in range(CANDIDATES):
        lots, who = lots_of(facts, person, number)
        fits = _fitting(gold_places(lots, who, "en", BLOCK), places)
        if fits > most:
            best, most = number, fits
    lots, who = lots_of(facts, person, best)
    guesses = _by(lots, who, len(marks))
    return [None if place <= places[-1] else guesses[place] for place in range(len(marks))]


def _fitting(is_gold, places):
    return next((number for number, place in enumerate(places) if not is_gold(place)), len(places))


def seeds(facts, person, number):
    """A guessed seed."""
    return by_seed(str(number)), person


def secrets(facts, person, number):
    """A guessed secret."""
    return by_secret(str(number)), person


def from_the_others(facts, person):
    """The place where most other people had their gold answer in the same block."""
    met = [
        (place // BLOCK, place % BLOCK)
        for other, marks in facts.is_gold.items()
        for place, is_gold in enumerate(marks)
        if is_gold and other != person
    ]
    of_block = {block: Counter(at for b, at in met if b == block).most_common(1)[0][0] for block, _ in met}
    return [of_block.get(place // BLOCK) == place % BLOCK for place in range(len(facts.is_gold[person]))]


def from_one_s_own(facts, person):
    """The place of the person's own gold answer in the previous block."""
    marks = facts.is_gold[person]
    return [None if place < BLOCK else marks[place - BLOCK] for place in range(len(marks))]


def nothing(facts):
    return ""


ON_PLACES = {
    "MD5 of seed, task and number of the person": from_the_seed,
    "MD5 of seed and pseudonym": from_the_seed_and_pseudonym,
    "HMAC, the published digest as its secret": partial(from_hmac_of, lambda facts: facts.digest),
    "HMAC, the seed as its secret": partial(from_hmac_of, lambda facts: facts.seed),
    "HMAC, the name of the task as its secret": partial(from_hmac_of, lambda facts: facts.name),
    "HMAC, the secret of another task": partial(from_hmac_of, lambda facts: facts.other_secret),
    "HMAC, no secret": partial(from_hmac_of, nothing),
    "places of the other people": from_the_others,
    "one's own place in the block before": from_one_s_own,
}
SEARCHES = {
    "a search of 20,000 seeds": partial(from_a_search, seeds),
    "a search of 20,000 secrets": partial(from_a_search, secrets),
}
ATTACKS = [*ON_PLACES, *(pytest.param(search, marks=pytest.mark.slow) for search in SEARCHES)]


def found_by(attack, facts, people=None):
    """Return the numbers of predicted gold answers, of correct predictions, and of units with a prediction."""
    predicted = right = units = 0
    for person in people or facts.is_gold:
        pairs = [
            (guess, is_gold)
            for guess, is_gold in zip(attack(facts, person), facts.is_gold[person], strict=True)
            if guess is not None
        ]
        units += len(pairs)
        predicted += sum(guess for guess, _ in pairs)
        right += sum(guess and is_gold for guess, is_gold in pairs)
    return predicted, right, units


def print_row(attack, predicted, right, chance):
    print(f"| {attack} | {predicted} | {right} | {chance:.0f} |")


@pytest.mark.parametrize("attack", ATTACKS)
def test_nobody_foresees_more_places_of_gold_answers_than_by_chance(facts, attack):
    predicted, right, units = found_by((ON_PLACES | SEARCHES)[attack], facts)
    print_row(attack, predicted, right, predicted / BLOCK)
    assert sum(map(len, facts.is_gold.values())) >= 600
    assert units >= 400  # a search makes no predictions for the places that it knows
    low, high = binom.interval(0.999, predicted, 1 / BLOCK)
    assert low <= right <= high


@pytest.mark.parametrize("attack", ["MD5 of seed and pseudonym", ATTACKS[-2]])
def test_the_same_attacks_find_all_places_where_lots_go_by_the_seed(worlds, attack):
    predicted, right, _ = found_by((ON_PLACES | SEARCHES)[attack], worlds["seed"])
    assert predicted == right >= 5


# --- attacks on the audit: the posts that are predicted to be audited

ON_AUDITS = {
    "MD5 of the seed": lambda facts: by_seed(facts.seed),
    "MD5 of the seed and the name of the task": lambda facts: by_seed(f"{facts.seed}:{facts.name}"),
    "HMAC, the published digest as its secret": lambda facts: by_secret(facts.digest),
    "HMAC, the seed as its secret": lambda facts: by_secret(facts.seed),
    "HMAC, the secret of another task": lambda facts: by_secret(facts.other_secret),
    "HMAC, no secret": lambda facts: by_secret(""),
}


def audited(make_task):
    task = make_task([AGREED] * POSTS, audit_share=AUDITED / POSTS)
    other = make_task([AGREED], name="another-audited").secret
    return public(task, other, {}), set(task.units.filter(audited=True).values_list("item__key", flat=True))


def test_nobody_foresees_more_audits_than_by_chance(make_task):
    facts, chosen = audited(make_task)
    assert len(chosen) == AUDITED
    for attack, lots_of in ON_AUDITS.items():
        right = len(chosen.intersection(draw_sample(facts.ids, AUDITED, lots=lots_of(facts), purpose="audit")))
        print_row(attack, AUDITED, right, AUDITED * AUDITED / POSTS)
        low, high = binom.interval(0.999, AUDITED, AUDITED / POSTS)
        assert low <= right <= high


def test_the_same_attack_finds_all_audits_where_lots_go_by_the_seed(make_task):
    with drawn_by_the_seed():
        facts, chosen = audited(make_task)
    assert chosen == set(draw_sample(facts.ids, AUDITED, lots=by_seed(facts.seed), purpose="audit"))
