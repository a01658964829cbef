"""What deeds did, and what is to be done, in a sentence: for pages and commands alike."""


def rerouted(counts: dict[str, int]) -> str:
    """What routing.reroute did."""
    queues, adjudication = counts["queues"], counts["adjudication"]
    return f"Sent on: {queues:,} to readers of their next language, {adjudication:,} to adjudication."


def undecidable(count: int) -> str:
    """What to do about the units that progress.undecidable counts; empty where there are none."""
    if not count:
        return ""
    posts = (
        "1 post waits for an adjudicator who has not read it"
        if count == 1
        else f"{count:,} posts wait for an adjudicator who has not read them"
    )
    return f"{posts}; make another person an adjudicator."
