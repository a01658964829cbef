"""What all of it shares and needs no Django: languages, records, values; and the error for people to read."""


# --- The error that this room raises for people to read, and how it names what is wrong.

NAMED = 5  # faults that are named; the others are counted


class CorpusError(Exception):
    """One clear sentence: what is wrong, where, and what to do. status: with which a command ends for it."""

    status = 1


def listed(names: list[str], total: int, noun: str) -> str:
    """The faults in words: `3 ids: a, b, c`, or `9 ids, the first: a, b, c, d, e`."""
    named = f"{total:,} {noun}" + ("" if total == 1 else "s")
    return f"{named}{', the first' if total > NAMED else ''}: {', '.join(names[:NAMED])}"
