"""Starts processes to be killed, quickly: this one imports once, then forks a child for each line it reads.

A line is JSON: {"module": …, "argv": […], "log": FILE}. The child runs `module.main(argv)`, as the command
line does; its process id is written. Children are reaped by the kernel.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys

from specscope_server.app import domain_routers


def main(modules: list[str]) -> None:
    """Read lines until there are no more, then kill what still runs."""
    found = {name: importlib.import_module(name) for name in modules}
    domain_routers()  # what the server imports only when it starts
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    _say("ready")
    children = []
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            null = os.open(os.devnull, os.O_RDONLY)
            for old, new in ((0, null), (1, log), (2, log)):
                os.dup2(new, old)
            status = 1
            try:
                status = found[order["module"]].main(order["argv"])
            finally:
                sys.stdout.flush()
                os._exit(status or 0)
        children.append(child)
        _say(str(child))
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
