"""Declarations of task options, for commands, the managers' form, cards and manifests.

Each kind lists its options and can change their defaults. Each task stores the values of its options. If a kind lacks
an option, its tasks have the option's `off` value.
"""

from annotate.core.option import Option, flag, people, share, whole_number

ROUTING, AGREEMENT, AUDIT, CHECKS, DECOYS, ANSWERS, SUGGESTIONS, TEST, GOLD = (
    "Routing",
    "The detectors' agreement",
    "The audit of that agreement",
    "Checks of single readers and adjudicators",
    "Decoys",
    "Answers to labels",
    "Suggestions",
    "Test",
    "Gold answers and the pause",
)

_EVERY = (
    Option(
        "redundancy",
        people,
        default=1,
        off=1,
        help="the number of annotators per item. For questions about a post's language, it can be a fraction up to 2: "
        "with 1.1, every tenth item gets a second annotator",
        group=ANSWERS,
        least=1,
        most=99,
        fixed=True,
    ),
    Option(
        "stop_early",
        flag,
        default=False,
        off=False,
        help="not for language and verify: first ask only enough annotators to decide an item, then more if they "
        "disagree",
        group=ANSWERS,
        fixed=True,
    ),
    Option(
        "aggregation",
        str,
        default="majority",
        off="majority",
        help="not for language and verify: how several answers become a label: by majority; for grades, by median; for "
        "spans, by the majority at each character",
        group=ANSWERS,
        choices=("majority", "median", "characters"),
        fixed=True,
    ),
    Option(
        "on_conflict",
        str,
        default="ADJUDICATION",
        off="ADJUDICATION",
        help="what happens to an item whose answers do not result in a label",
        group=ROUTING,
        choices=("ADJUDICATION", "DISCARDED"),
    ),
    Option(
        "rounds",
        whole_number,
        default=2,
        off=1,
        help="the number of languages whose readers are asked before adjudication",
        group=ROUTING,
        least=1,
        most=99,
    ),
    Option(
        "skip_limit",
        whole_number,
        default=1,
        off=1,
        help="the number of skips that end an item's round",
        group=ROUTING,
        least=1,
        most=99,
    ),
    Option(
        "least_level",
        whole_number,
        default=4,
        off=0,
        help="the minimum reading level of a language's annotators, 0 to 5",
        group=ROUTING,
        most=5,
    ),
    Option(
        "audit_share",
        share,
        default=0.15,
        off=0.0,
        help="the share of posts that the detectors agree on, or of documents with a declared class, that annotators "
        "check. A language with ten times as many posts gets five times as many audits",
        group=AUDIT,
        most=1,
        fixed=True,
    ),
    Option(
        "audit_least",
        whole_number,
        default=5,
        off=0,
        help="the minimum number of audits in each language, or in each language and class of documents",
        group=AUDIT,
        fixed=True,
    ),
    Option(
        "audit_recheck",
        share,
        default=0.3,
        off=0.0,
        help="the share of confirmed audits that an adjudicator checks",
        group=AUDIT,
        most=1,
        fixed=True,
    ),
    Option(
        "audit_limit",
        share,
        default=0.15,
        off=1.0,
        help="annotators label a whole language if its audit is large enough and the upper limit of the 95% interval "
        "for the share of wrong labels is above this share",
        group=AUDIT,
        most=1,
    ),
    Option(
        "check_share",
        share,
        default=0.1,
        off=0.0,
        help="the share of decisions by a single annotator or adjudicator that another adjudicator repeats, blind. "
        "Annotators' decisions are distributed over languages like audits",
        group=CHECKS,
        most=1,
        fixed=True,
    ),
    Option(
        "decoy_share",
        share,
        default=None,
        off=0.0,
        help="hidden decoys (posts known not to be in the language) per post to verify. By default, enough that "
        "false Yes answers widen intervals by at most 10%",
        group=DECOYS,
        most=1,
        fixed=True,
    ),
    Option(
        "test_items",
        whole_number,
        default=10,
        off=0,
        help="the number of questions in the qualification test; 0: no test",
        group=TEST,
    ),
    Option(
        "pass_mark",
        share,
        default=0.8,
        off=0.0,
        help="the share of questions that must be answered correctly",
        group=TEST,
        most=1,
    ),
    Option(
        "tries",
        whole_number,
        default=2,
        off=1,
        help="the number of times that an annotator can take the test",
        group=TEST,
        least=1,
        most=99,
    ),
    Option(
        "gold_share",
        share,
        default=0.1,
        off=0.0,
        help="the share of an annotator's items that are gold answers: one in 2, 3 … items",
        group=GOLD,
        most=0.5,
        fixed=True,
    ),
    Option(
        "pause_below",
        share,
        default=0.7,
        off=0.0,
        help="pause annotators whose accuracy on gold answers is below this share; 0: pause nobody",
        group=GOLD,
        most=1,
    ),
)
# All options by name. A control from a plug-in adds its options when it is registered.
OPTIONS: dict[str, Option] = {option.name: option for option in _EVERY}

# The share of (annotator, unit) pairs with hidden suggestions. A fifth is enough to compare answers with and
# without suggestions, and annotators still see suggestions for most units.
BLIND_SHARE = 0.2

# Options of every kind.
ASKED = ("redundancy", "on_conflict", "rounds", "skip_limit", "least_level")
OF_AUDIT = ("audit_share", "audit_least", "audit_recheck", "audit_limit")
OF_DECLARED_AUDIT = ("audit_share", "audit_least")
OF_CHECKS = ("check_share",)
OF_CROWDS = ("stop_early", "aggregation")
OF_TEST = ("test_items", "pass_mark", "tries")
OF_GOLD = ("gold_share", "pause_below")
