"""The options of tasks, each declared once: for the command, the manager's form, the card and the manifest.

A kind of question names its options, with its own default if that differs; a task holds their values. If a kind does
not have an option, its tasks behave as the option's `off` says.
"""

from annotate.core.option import Option, flag, people, share, whole_number

ROUTING, AGREEMENT, AUDIT, CHECKS, DECOYS, ANSWERS, SUGGESTIONS, TEST, GOLD = (
    "Routing",
    "The detectors' agreement",
    "The audit of that agreement",
    "Checks of people who decide alone",
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
        help="how many people are asked for each unit; for language and verify also 1.1, where a second person reads a "
        "tenth of the units",
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
        help="not for language and verify: ask only as many people at first as can settle a unit, and the others if "
        "these do not agree",
        group=ANSWERS,
        fixed=True,
    ),
    Option(
        "aggregation",
        str,
        default="majority",
        off="majority",
        help="not for language and verify: how several answers become a label: majority, or median for grades",
        group=ANSWERS,
        choices=("majority", "median"),
        fixed=True,
    ),
    Option(
        "on_conflict",
        str,
        default="ADJUDICATION",
        off="ADJUDICATION",
        help="where a unit goes if its answers give no label: ADJUDICATION or DISCARDED",
        group=ROUTING,
        choices=("ADJUDICATION", "DISCARDED"),
    ),
    Option(
        "rounds",
        whole_number,
        default=2,
        off=1,
        help="how many languages' readers are tried before adjudication",
        group=ROUTING,
        least=1,
        most=99,
    ),
    Option(
        "skip_limit",
        whole_number,
        default=1,
        off=1,
        help="how many skips end a unit's round",
        group=ROUTING,
        least=1,
        most=99,
    ),
    Option(
        "least_level",
        whole_number,
        default=4,
        off=0,
        help="the least reading level, 0 to 5: people who read a language less well are not given its units",
        group=ROUTING,
        most=5,
    ),
    Option(
        "audit_share",
        share,
        default=0.15,
        off=0.0,
        help="the share of all posts on which the detectors agree, or of documents whose class is declared, that "
        "people check; a language with ten times as many posts gets five times as many of these audits",
        group=AUDIT,
        most=1,
        fixed=True,
    ),
    Option(
        "audit_least",
        whole_number,
        default=5,
        off=0,
        help="the least number of posts checked in each language, or of documents in each language and class, if there "
        "are so many",
        group=AUDIT,
        fixed=True,
    ),
    Option(
        "audit_recheck",
        share,
        default=0.3,
        off=0.0,
        help="the share of posts confirmed by the reader that an adjudicator checks",
        group=AUDIT,
        most=1,
        fixed=True,
    ),
    Option(
        "audit_limit",
        share,
        default=0.15,
        off=1.0,
        help="people label a whole language if more than this share of it may be wrong (upper end of the 95% "
        "interval), where enough is audited to tell",
        group=AUDIT,
        most=1,
    ),
    Option(
        "check_share",
        share,
        default=0.1,
        off=0.0,
        help="the share of all that one person decides alone that an adjudicator decides again, blind: of what readers "
        "decide, spread over languages as audits are, and of what adjudicators settle",
        group=CHECKS,
        most=1,
        fixed=True,
    ),
    Option(
        "decoy_share",
        share,
        default=None,
        off=0.0,
        help="how many decoys (posts known not to be in the language) are hidden for each post to verify; by default "
        "as many as keep the intervals at most a tenth wider than if readers never said Yes by mistake",
        group=DECOYS,
        most=1,
        fixed=True,
    ),
    Option(
        "test_items",
        whole_number,
        default=10,
        off=0,
        help="how many questions the qualification test has; 0: nobody is tested",
        group=TEST,
    ),
    Option(
        "pass_mark",
        share,
        default=0.8,
        off=0.0,
        help="the share of the questions that must be answered rightly",
        group=TEST,
        most=1,
    ),
    Option(
        "tries",
        whole_number,
        default=2,
        off=1,
        help="how many tests one person may take",
        group=TEST,
        least=1,
        most=99,
    ),
    Option(
        "gold_share",
        share,
        default=0.1,
        off=0.0,
        help="the share of a person's units that have a known answer: one in 2, 3 … units",
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
# Those of quality controls from outside come to it when these are registered.
OPTIONS: dict[str, Option] = {option.name: option for option in _EVERY}

# The options of every kind that people answer here.
ASKED = (
    "redundancy",
    "on_conflict",
    "rounds",
    "skip_limit",
    "least_level",
)
OF_AUDIT = ("audit_share", "audit_least", "audit_recheck", "audit_limit")
OF_DECLARED_AUDIT = ("audit_share", "audit_least")
OF_CHECKS = ("check_share",)
OF_CROWDS = ("stop_early", "aggregation")
OF_TEST = ("test_items", "pass_mark", "tries")
OF_GOLD = ("gold_share", "pause_below")
