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
from annotate.core.draws.hash_order import by_secret, by_seed, drawn
from annotate.models import Annotator, Task
from tests.annotate.acts import work_through
from tests.annotate.conftest import AGREED, make_person, records_task_maker

pytestmark = [pytest.mark.django_db, pytest.mark.on_sqlite]

PEOPLE, RECORDS, BLOCK = 5, 120, 5
POSTS, AUDITED = 600, 120
CANDIDATES = 20_000
KNOWN = 9  # places that somebody has found out


class Public(NamedTuple):
    """What can be known of a task: from the card and the manifest, from the rows, and by whoever is one of its people.

    told: the secret that another task has told. numbers: those by which a database may know the person. given: person
    -> whether each unit that they were given was a gold answer, which an attack may look at only where it says so.
    """

    seed: str
    name: str
    digest: str
    told: str
    ids: list[str]
    numbers: dict[str, int]
    given: dict[str, list[bool]]


def worked_on() -> dict[str, Public]:
    """A task in which five people were given more than 600 units, and one of one person whose lots go by its seed."""
    make, gold = records_task_maker(), {"queue": ["1", "0"] * 15}
    how = {"gold": gold, "gold_share": 1 / BLOCK, "pause_below": 0}
    secret = make("qa_match", RECORDS, redundancy=PEOPLE, **how)
    told = make("qa_match", 1, name="another").secret
    people = [make_person(f"person {number}", "en") for number in range(PEOPLE)]
    with drawn_by_the_seed():
        seed = make("qa_match", 70, name="by-seed", redundancy=1, **how)
        by_seed = public(seed, told, given_to(people[:1], seed))
    return {"secret": public(secret, told, given_to(people, secret)), "seed": by_seed}


def drawn_by_the_seed():
    """Tasks whose draws anybody can repeat, so that an attack that works has something to find."""
    return patch.object(Task, "lots", property(lambda task: by_seed(task.seed)))


def given_to(people, task):
    return {each.pseudonym: [lease.unit.honeypot for lease in work_through(each, task, "1")] for each in people}


def public(task, told, given) -> Public:
    keys = list(task.units.order_by("pk").values_list("item__key", flat=True))
    numbers = dict(Annotator.objects.values_list("pseudonym", "pk"))
    digest = hashlib.sha256(task.secret.encode()).hexdigest()
    return Public(task.seed, task.name, digest, told, keys, numbers, given)


@pytest.fixture(scope="module")
def begin(make_world):
    return make_world(worked_on)


@pytest.fixture
def worlds(begin, data_dir, db):
    return begin(data_dir)


@pytest.fixture
def known(worlds):
    return worlds["secret"]


# --- attacks on the places of gold answers: for each person, whether each unit is foretold to be one


def _by(lots, person, length):
    is_gold = gold_places(lots, person, "en", BLOCK)
    return [is_gold(place) for place in range(length)]


def from_the_seed(known, person):
    """As it stood in every card: MD5 of the seed, the name of the task and the number of the person."""
    return _by(by_seed(f"{known.seed}:{known.name}"), str(known.numbers[person]), len(known.given[person]))


def from_the_seed_and_pseudonym(known, person):
    return _by(by_seed(known.seed), person, len(known.given[person]))


def from_hmac_of(secret, known, person):
    """By the program itself, with something public in the place of the secret."""
    return _by(by_secret(secret(known)), person, len(known.given[person]))


def from_a_search(lots_of, known, person):
    """The candidate that fits as many of nine known places as any; what it says of the others."""
    given = known.given[person]
    places = [place for place, is_gold in enumerate(given) if is_gold][:KNOWN]
    best, most = 0, -1
    for number in range(CANDIDATES):
        lots, who = lots_of(known, person, number)
        fits = _fitting(gold_places(lots, who, "en", BLOCK), places)
        if fits > most:
            best, most = number, fits
    lots, who = lots_of(known, person, best)
    found = _by(lots, who, len(given))
    return [None if place <= places[-1] else found[place] for place in range(len(given))]


def _fitting(is_gold, places):
    return next((number for number, place in enumerate(places) if not is_gold(place)), len(places))


def seeds(known, person, number):
    """A seed that somebody guessed."""
    return by_seed(str(number)), person


def secrets(known, person, number):
    """A secret that somebody made up."""
    return by_secret(str(number)), person


def from_the_others(known, person):
    """The place at which most of the others met their gold answer in the same block."""
    met = [
        (place // BLOCK, place % BLOCK)
        for other, given in known.given.items()
        for place, is_gold in enumerate(given)
        if is_gold and other != person
    ]
    of_block = {block: Counter(at for b, at in met if b == block).most_common(1)[0][0] for block, _ in met}
    return [of_block.get(place // BLOCK) == place % BLOCK for place in range(len(known.given[person]))]


def from_one_s_own(known, person):
    """The place of one's gold answer in the block before."""
    given = known.given[person]
    return [None if place < BLOCK else given[place - BLOCK] for place in range(len(given))]


def nothing(known):
    return ""


ON_PLACES = {
    "MD5 of seed, task and number of the person": from_the_seed,
    "MD5 of seed and pseudonym": from_the_seed_and_pseudonym,
    "HMAC, the published digest as its secret": partial(from_hmac_of, lambda known: known.digest),
    "HMAC, the seed as its secret": partial(from_hmac_of, lambda known: known.seed),
    "HMAC, the name of the task as its secret": partial(from_hmac_of, lambda known: known.name),
    "HMAC, the secret that another task told": partial(from_hmac_of, lambda known: known.told),
    "HMAC, no secret": partial(from_hmac_of, nothing),
    "places of the other people": from_the_others,
    "one's own place in the block before": from_one_s_own,
}
SEARCHES = {
    "a search of 20,000 seeds": partial(from_a_search, seeds),
    "a search of 20,000 secrets": partial(from_a_search, secrets),
}
ATTACKS = [*ON_PLACES, *(pytest.param(search, marks=pytest.mark.slow) for search in SEARCHES)]


def found_by(attack, known, people=None):
    """How many gold answers an attack foretold, how many of these came true, and of how many units it spoke."""
    foretold = right = units = 0
    for person in people or known.given:
        pairs = [
            (told, is_gold)
            for told, is_gold in zip(attack(known, person), known.given[person], strict=True)
            if told is not None
        ]
        units += len(pairs)
        foretold += sum(told for told, _ in pairs)
        right += sum(told and is_gold for told, is_gold in pairs)
    return foretold, right, units


def print_row(attack, foretold, right, chance):
    print(f"| {attack} | {foretold} | {right} | {chance:.0f} |")


@pytest.mark.parametrize("attack", ATTACKS)
def test_nobody_foresees_more_places_of_gold_answers_than_by_chance(known, attack):
    foretold, right, units = found_by((ON_PLACES | SEARCHES)[attack], known)
    print_row(attack, foretold, right, foretold / BLOCK)
    assert sum(map(len, known.given.values())) >= 600
    assert units >= 400  # a search leaves out what it knows
    low, high = binom.interval(0.999, foretold, 1 / BLOCK)
    assert low <= right <= high


@pytest.mark.parametrize("attack", ["MD5 of seed and pseudonym", ATTACKS[-2]])
def test_the_same_attacks_find_all_places_where_lots_go_by_the_seed(worlds, attack):
    foretold, right, _ = found_by((ON_PLACES | SEARCHES)[attack], worlds["seed"])
    assert foretold == right >= 5


# --- attacks on the audit: the posts that are foretold to be audited

ON_AUDITS = {
    "MD5 of the seed": lambda known: by_seed(known.seed),
    "MD5 of the seed and the name of the task": lambda known: by_seed(f"{known.seed}:{known.name}"),
    "HMAC, the published digest as its secret": lambda known: by_secret(known.digest),
    "HMAC, the seed as its secret": lambda known: by_secret(known.seed),
    "HMAC, the secret that another task told": lambda known: by_secret(known.told),
    "HMAC, no secret": lambda known: by_secret(""),
}


def audited(make_task):
    task = make_task([AGREED] * POSTS, audit_share=AUDITED / POSTS)
    other = make_task([AGREED], name="another-audited").secret
    return public(task, other, {}), set(task.units.filter(audited=True).values_list("item__key", flat=True))


def test_nobody_foresees_more_audits_than_by_chance(make_task):
    known, chosen = audited(make_task)
    assert len(chosen) == AUDITED
    for attack, lots_of in ON_AUDITS.items():
        right = len(chosen.intersection(drawn(known.ids, AUDITED, lots=lots_of(known), purpose="audit")))
        print_row(attack, AUDITED, right, AUDITED * AUDITED / POSTS)
        low, high = binom.interval(0.999, AUDITED, AUDITED / POSTS)
        assert low <= right <= high


def test_the_same_attack_finds_all_audits_where_lots_go_by_the_seed(make_task):
    with drawn_by_the_seed():
        known, chosen = audited(make_task)
    assert chosen == set(drawn(known.ids, AUDITED, lots=by_seed(known.seed), purpose="audit"))
