"""How many processors this process may use."""

import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container: microseconds of CPU, and of which period; or "max"


def usable() -> int:
    """At least 1. A container's share counts, as does an affinity."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text().split()
        allowed = min(allowed, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        pass  # no container, or no limit
    return max(1, allowed)
