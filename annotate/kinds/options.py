"""Declarations of task options, which commands, the managers' form, the card and the manifest use.

Each kind lists its options and can change their defaults. Each task stores the values of its options. If a kind does
not have an option, its tasks behave as if the option had its `off` value.
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
        help="the number of people who answer each item. If the question is about a post's language, it may be 1.1: "
        "every tenth item is read twice",
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
        help="not for language and verify: first ask only enough people to settle an item, then more if they disagree",
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
        help="where an item goes if its answers do not result in a label",
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
        help="the minimum reading level of people who receive items of a language, 0 to 5",
        group=ROUTING,
        most=5,
    ),
    Option(
        "audit_share",
        share,
        default=0.15,
        off=0.0,
        help="the share of posts on which detectors agree, or of documents with a declared class, that people check. "
        "A language with ten times as many posts gets five times as many audits",
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
        help="people label a whole language if the audit is large enough and the upper end of its 95% interval shows "
        "that more than this share may be wrong",
        group=AUDIT,
        most=1,
    ),
    Option(
        "check_share",
        share,
        default=0.1,
        off=0.0,
        help="the share of decisions by a single reader or adjudicator that another adjudicator repeats, blind. "
        "Readers' decisions are distributed over languages like audits",
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
        help="the number of times that a person can take the test",
        group=TEST,
        least=1,
        most=99,
    ),
    Option(
        "gold_share",
        share,
        default=0.1,
        off=0.0,
        help="the share of a person's items that are gold answers: one in 2, 3 … items",
        group=GOLD,
        most=0.5,
        fixed=True,
    ),
    Option(
        "pause_below",
        share,
        default=0.7,
        off=0.0,
        help="pause people whose accuracy on gold answers is below this share; 0: pause nobody",
        group=GOLD,
        most=1,
    ),
)
# All options by name. A quality control from a plug-in adds its options when it is registered.
OPTIONS: dict[str, Option] = {option.name: option for option in _EVERY}

# The share of the combinations of person and unit for which suggestions are hidden. A fifth is enough to compare
# answers with and without suggestions, and people still see suggestions for most units.
BLIND_SHARE = 0.2

# Options that every kind has.
ASKED = ("redundancy", "on_conflict", "rounds", "skip_limit", "least_level")
OF_AUDIT = ("audit_share", "audit_least", "audit_recheck", "audit_limit")
OF_DECLARED_AUDIT = ("audit_share", "audit_least")
OF_CHECKS = ("check_share",)
OF_CROWDS = ("stop_early", "aggregation")
OF_TEST = ("test_items", "pass_mark", "tries")
OF_GOLD = ("gold_share", "pause_below")
