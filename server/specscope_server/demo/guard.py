"""Runs one `specscope` command that must not outlive its parent: ``python -m specscope_server.demo.guard …``.

The parent keeps the write end of this process's standard input. When it goes away, however it ended, reading
returns; the command is then asked to stop, and made to stop if it does not.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from specscope.__main__ import main

GRACE_SECONDS = 5.0


def watch_parent() -> None:
    """Wait for the parent to go away, then end this process."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=watch_parent, name="parent-watch", daemon=True).start()
    sys.exit(main(sys.argv[1:]))
