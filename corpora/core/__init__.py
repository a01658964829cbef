"""Languages, records and values, free of Django; and the error class for problems that users can fix."""


# --- The error class and the wording of its counts.

NAMED = 5  # how many faults are named; the rest are only counted


class CorpusError(Exception):
    """An error with one clear sentence for the user: what is wrong, where, and what to do.

    status: the exit status of a command that ends with this error
    """

    status = 1


def listed(names: list[str], total: int, noun: str) -> str:
    """Return the faults in words, such as `3 ids: a, b, c` or `9 ids, the first: a, b, c, d, e`."""
    named = f"{total:,} {noun}" + ("" if total == 1 else "s")
    return f"{named}{', the first' if total > NAMED else ''}: {', '.join(names[:NAMED])}"
