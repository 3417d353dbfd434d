"""The folder that the probe writes into: what waits there, and what becomes of files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

PATTERN = "specscope-states-*.json.gz"
ASIDE = "refused"
MOST_ASIDE = 32
"""Refused files that are kept for a look; older ones are deleted."""


class Folder:
    """One spool folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def waiting(self) -> list[str]:
        """Return the names of files, oldest first. Raises OSError when the folder cannot be read."""
        next(self.path.iterdir(), None)  # a glob is silent about folders that are not there
        return sorted(found.name for found in self.path.glob(PATTERN))

    def delete(self, name: str) -> bool:
        """Delete a file that is stored; say whether it is gone."""
        with suppress(FileNotFoundError):
            try:
                (self.path / name).unlink()
            except OSError:
                return False
        return True

    def put_aside(self, name: str) -> bool:
        """Move a refused file out of the way; say whether it is gone."""
        aside = self.path / ASIDE
        try:
            aside.mkdir(exist_ok=True)
            (self.path / name).rename(aside / name)
            for old in sorted(aside.glob(PATTERN))[:-MOST_ASIDE]:
                old.unlink()
        except FileNotFoundError:
            return True
        except OSError:
            return self.delete(name)
        return True
