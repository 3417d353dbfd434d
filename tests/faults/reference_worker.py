"""Runs `specscope reference build ARGV…` and writes each file of the dump that it opens to a pipe.

Called with the pipe's number and ARGV.

Only time is the test's: the clock stands, and a checkpoint is written after each file.
"""

from __future__ import annotations

import os
import sys

from specscope_collectors.references import checkpointing
from specscope_server.cli import reference

NOW_MS = 1_790_000_000_000


def tell(event: str, arguments: tuple[object, ...]) -> None:
    """Write the name of a file of the dump that is opened to be read; where only its ends are asked for there
    is no mode.
    """
    if event == "open" and isinstance(arguments[0], (str, os.PathLike)) and arguments[1] is not None:
        name = os.path.basename(os.fspath(arguments[0]))
        if name.startswith("data_") and name.endswith(".pt"):
            os.write(int(sys.argv[1]), f"{name}\n".encode())


if __name__ == "__main__":
    reference.system_clock = lambda: NOW_MS  # type: ignore[attr-defined]
    checkpointing.SAVE_SECONDS = 0.0
    sys.addaudithook(tell)
    sys.exit(reference.main(["build", *sys.argv[2:]]))
