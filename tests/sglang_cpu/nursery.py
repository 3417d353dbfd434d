"""Engines without the long wait for imports: `python nursery.py MODULE…`, with the rig's Python.

A start of SGLang is 20 s of a processor, and nearly all of that are imports, the same in three processes: the
server, its scheduler, its detokenizer. This process imports the modules once, and then forks an engine for
each order; the engine's own processes are forked from a twin of it that has done nothing yet, so that they
begin as those that SGLang spawns: with these modules imported, and nothing called.

An order is a line of JSON on standard input: ``arguments`` (SGLang's), ``environment`` (the whole of it) and
``log`` (a path; output is added to it). The answer is a line with the process id, which is that of a process
group, too. At the end of its input it ends its engines and itself.
"""

from __future__ import annotations

import gc
import importlib
import json
import multiprocessing.context
import multiprocessing.forkserver
import multiprocessing.spawn
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

ENVIRONMENT = "specscope_environment"
"""Beside what multiprocessing tells a new process."""


def main(modules: list[str]) -> None:
    """Import the modules, then start engines until the input ends."""
    orders, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what imports print is no answer
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # or a collection in an engine would copy what they share
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    started: list[int] = []
    for order in orders:
        child = os.fork()
        if child == 0:
            begin(json.loads(order), (orders.fileno(), answers.fileno()))
        started.append(child)
        print(child, file=answers, flush=True)
    for group in started:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def become_quiet(log: str) -> None:
    """Read from nothing, and add all output to a file."""
    nothing, file = (
        os.open(os.devnull, os.O_RDONLY),
        os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644),
    )
    for source, place in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(source, place)
    os.close(nothing)
    os.close(file)


def begin(order: dict[str, Any], foreign: tuple[int, ...]) -> None:
    """Become an engine, in the forked process; never returns."""
    status = 1
    try:
        os.setsid()
        for file in foreign:
            os.close(file)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        become_quiet(order["log"])
        live_in(order["environment"])
        fork_instead_of_spawning()
        import launch

        sys.argv = [launch.__file__, *order["arguments"]]
        launch.main(order["arguments"])
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        os._exit(status)


def live_in(environment: dict[str, str]) -> None:
    """Take over an environment; its ``PYTHONPATH`` is searched first, as at a start of Python."""
    os.environ.clear()
    os.environ.update(environment)
    paths = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [sys.path[0], *paths, *(path for path in sys.path[1:] if path not in paths)]
    importlib.invalidate_caches()


def fork_instead_of_spawning() -> None:
    """Fork a twin that has done nothing yet, and let it start the processes that SGLang asks to be spawned.

    They get the environment of the process that asks, as spawned ones do.
    """
    address, (alive_r, alive_w) = f"\0specscope-nursery-{os.getpid()}", os.pipe()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    prepare, tell = multiprocessing.spawn.prepare, multiprocessing.spawn.get_preparation_data

    def prepared(data: dict[str, Any]) -> None:
        os.environ.clear()
        os.environ.update(data.pop(ENVIRONMENT))
        prepare(data)

    def told(name: str) -> dict[str, Any]:
        return tell(name) | {ENVIRONMENT: dict(os.environ)}

    multiprocessing.spawn.prepare = prepared
    multiprocessing.spawn.get_preparation_data = told
    twin = os.fork()
    if twin == 0:
        os.close(alive_w)
        multiprocessing.forkserver.main(listener.detach(), alive_r, [])
    listener.close()
    os.close(alive_r)
    server: Any = multiprocessing.forkserver._forkserver
    server._forkserver_address, server._forkserver_alive_fd, server._forkserver_pid = address, alive_w, twin
    contexts: dict[str, Any] = multiprocessing.context._concrete_contexts
    contexts["spawn"] = contexts["forkserver"]


if __name__ == "__main__":
    main(sys.argv[1:])
