"""Options, each declared once: how they are parsed, checked and described."""

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from annotate.actions import open_task
from annotate.core.option import (
    Option,
    OptionError,
    codes,
    days,
    flag,
    format_value,
    fraction,
    number,
    share,
    whole_number,
    words,
)
from annotate.kinds import KINDS
from annotate.kinds.designs import DESIGNS, DRAW_OPTIONS
from annotate.kinds.options import OF_CROWDS, OPTIONS

JULY = datetime(2014, 7, 1, tzinfo=UTC), datetime(2014, 8, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (whole_number, "12", 12),
        (whole_number, "-1", -1),
        (share, "10%", 0.1),
        (share, "1/8", 0.125),
        (fraction, "2.5%", Fraction(1, 40)),
        (number, "-2.5e-3", -0.0025),
        (words, "a,b  c", ["a,b", "c"]),
        (codes, "de, zh-CN hi", ["de", "zh-CN", "hi"]),
        (days, "2014-07-01..2014-08-01", JULY),
        (flag, "Yes", True),
        (flag, "no", False),
        (Path, "a/b.toml", Path("a/b.toml")),
        (str, "", ""),
    ],
)
def test_a_value_is_read_from_text_and_written_so_that_it_is_read_again(read, text, value):
    assert read(text) == value
    assert read(format_value(value)) == value


def test_what_cannot_be_read_is_said_with_the_options_name():
    a_share = "is not a share. Write it as 0.1, 10% or 1/10."
    a_number = "is not a finite number. Write it as 0.5 or -2."
    for read, text, sentence in (
        (whole_number, "1.5", "'1.5' is not a whole number."),
        (share, "1/0", f"'1/0' {a_share}"),
        (share, "1e-30000000", f"'1e-30000000' {a_share}"),
        (fraction, "1e99999999%", f"'1e99999999%' {a_share}"),
        (share, f"1/{'9' * 99_999}", f"'1/{'9' * 58}…' {a_share}"),
        (whole_number, "9" * 99_999, f"'{'9' * 60}…' is not a whole number."),
        (
            days,
            "2014-07",
            "'2014-07' is not a range of days. Write it as 2014-07-01..2014-08-01; the last day is not included.",
        ),
        (flag, "perhaps", "'perhaps' is neither yes nor no."),
        (number, "nan", f"'nan' {a_number}"),
        (number, "0,5", f"'0,5' {a_number}"),
    ):
        with pytest.raises(OptionError) as refused:
            Option("it", read).value(text)
        assert str(refused.value) == f"--it: {sentence}"


def test_what_is_out_of_bounds_or_of_another_type_is_refused():
    for option, value, sentence in (
        (Option("at_most", whole_number, most=5), 6, "--at-most is 6. It must be 0 to 5."),
        (Option("it", whole_number, least=1), 0, "--it is 0. It must be 1 or more."),
        (Option("it", whole_number), -1, "--it is -1. It must be 0 or more."),
        (Option("it", whole_number), True, "--it is True. It must be a whole number."),
        (Option("it", share, least=0.5, most=0.999), 1, "--it is 1. It must be 0.5 to 0.999."),
        (Option("it", share), "half", "--it is 'half'. It must be a share between 0 and 1."),
        (Option("it", codes), "de", "--it is 'de'. It must be a list of codes."),
        (Option("it", choices=("a", "b")), "c", "--it is 'c'. It must be one of a, b."),
        (Option("it", argument=True), 1, "it is 1. It must be a word."),
    ):
        with pytest.raises(OptionError) as refused:
            option.check(value)
        assert str(refused.value) == sentence


def test_of_several_values_each_is_checked_and_none_is_the_default():
    option = Option("it", whole_number, default=(), several=True, most=3)
    assert option.value(["1", 2]) == [1, 2]
    assert option.value(None) == option.value([]) == ()
    with pytest.raises(OptionError, match="--it is 4"):
        option.value(["1", "4"])
    with pytest.raises(OptionError, match="--it is required"):
        replace(option, required=True).value([])


def test_the_help_says_the_default_and_whose_is_another():
    option = Option("it", whole_number, default=1, help="so many")
    assert option.help_text() == "so many (default 1)"
    assert option.help_text({"a": 3, "b": 2, "c": 3}) == "so many (default 1; a, c: 3; b: 2)"
    assert Option("it", help="so").help_text() == "so"
    assert Option("it", flag, default=False, help="so").help_text() == "so"
    assert Option("it", codes, default=[], help="which").help_text() == "which (default none)"


@pytest.mark.parametrize("option", [*OPTIONS.values(), *DRAW_OPTIONS.values()], ids=lambda option: option.name)
def test_every_option_of_a_task_or_a_draw_has_a_right_default_and_is_one_of_the_command(option):
    """Declared once: the command's option differs only in its default, which the kind or the design supplies."""
    if option.default is not None:
        assert option.value(format_value(option.default)) == option.check(option.default) == option.default
    [command_option] = [candidate for candidate in open_task.OPTIONS if candidate.name == option.name]
    assert command_option.default is None
    assert option.help in command_option.help
    assert replace(command_option, default=option.default, help=option.help, group=option.group) == option


def test_the_command_tells_the_kinds_whose_default_differs_and_what_language_tasks_do_not_take():
    help_texts = {option.name: option.help for option in open_task.OPTIONS}
    slugs = ", ".join(slug for slug, kind in KINDS.items() if kind.answered_here and slug != "language")
    assert help_texts["rounds"].endswith(f"(default 2; {slugs}, a kind of your own: 1)")
    assert help_texts["history"].startswith("for the design recall: ")
    assert help_texts["window"].startswith("for the designs recall and precision: ")
    for kind in KINDS.values():
        for name in kind.defaults:
            assert OPTIONS[name].check(kind.defaults[name]) == kind.defaults[name]
    not_theirs = {name for name, option in OPTIONS.items() if option.help.startswith("not for language and verify: ")}
    assert not_theirs == {*OF_CROWDS}
    assert not any(not_theirs & {*KINDS[name].options} for name in ("language", "verify"))
    for design in DESIGNS.values():
        assert {*design.options, *design.needs} <= DRAW_OPTIONS.keys()
