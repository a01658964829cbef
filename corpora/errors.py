"""The one error that this room raises for people to read."""


class CorpusError(Exception):
    """One clear sentence: what is wrong, where, and what to do. Commands turn it into CommandError."""
