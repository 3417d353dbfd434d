"""Writes numbered Decode lines as a server does that notices when its log is rotated.

Arguments: path of the log, number of lines. Line i is stamped i seconds after `START`.
"""

from __future__ import annotations

import logging.handlers
import sys
import time
from datetime import UTC, datetime

START = datetime(2026, 11, 29, 0, 0, 0, tzinfo=UTC).timestamp()


def line(number: int) -> str:
    """Return one line without its end."""
    stamp = datetime.fromtimestamp(START + number, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return (
        f"[{stamp} TP0] Decode batch, #running-req: {number % 97}, #token: {number}, token usage: 0.31, "
        f"accept len: 3.33, accept rate: 0.78, gen throughput (token/s): 1085.39, #queue-req: {number % 7}"
    )


def write(path: str, count: int) -> None:
    """Write them, some hundred a second."""
    handler = logging.handlers.WatchedFileHandler(path)
    for number in range(count):
        handler.emit(logging.makeLogRecord({"msg": line(number)}))
        if number % 10 == 0:
            time.sleep(0.01)
    handler.close()


if __name__ == "__main__":
    write(sys.argv[1], int(sys.argv[2]))
