"""Numbers that forms send, read without trust."""


def whole_number(text: str | None) -> int | None:
    """A non-negative number from a form; None for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def active_seconds(request) -> float | None:
    """The working time that the page has measured, None if it has not."""
    milliseconds = whole_number(request.POST.get("active_ms"))
    return None if milliseconds is None else milliseconds / 1000
