"""A small file system in memory whose free space can be reduced and restored. Mounting it requires root."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

WHOLE = 1 << 30  # bytes
HANGS = 30  # seconds


@dataclass
class Disk:
    folder: Path

    def leave(self, room: int) -> None:
        """Leave this many bytes free, but at least a page."""
        deadline = time.monotonic() + HANGS
        while True:
            usage = os.statvfs(self.folder)
            used = (usage.f_blocks - usage.f_bfree) * usage.f_frsize
            try:
                return self._mount(used + max(room, usage.f_frsize))
            except subprocess.CalledProcessError:
                # More has been written meanwhile than it was to hold.
                if time.monotonic() > deadline:
                    raise

    def empty(self) -> None:
        """Restore the free space."""
        self._mount(WHOLE)

    def _mount(self, size: int, how: str = "remount,") -> None:
        command = ["mount", "-t", "tmpfs", "-o", f"{how}size={size},mode=755", "assay-small-disk", str(self.folder)]
        subprocess.run(command, check=True, capture_output=True)


def may_mount() -> bool:
    return os.geteuid() == 0


@contextmanager
def small_disk() -> Iterator[Disk]:
    # Not in TMPDIR: PostgreSQL, which is another account, must get there.
    with tempfile.TemporaryDirectory(prefix="assay-disk-", dir="/tmp") as name:
        disk = Disk(Path(name))
        disk._mount(WHOLE, "")
        try:
            Path(name).chmod(0o755)
            yield disk
        finally:
            # PostgreSQL may hold a file of it open that it has deleted.
            subprocess.run(["umount", "--lazy", name], check=True)
            Path(name).chmod(0o700)
