"""Run by `tests/support/versions.py` with a real SGLang of some version, which it imports once.

What is to be seen is seen in processes forked from this one, in which the probe has not touched a class yet.
Prints a line for each: its name, and JSON.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from tests.probe import version_driver


def states(kinds: list[str]) -> dict[str, Any]:
    """Return what is seen of states."""
    from tests.probe.states import version_driver as of_states

    return of_states.main(kinds)


def switched_off(_: list[str]) -> dict[str, Any]:
    """Call both loaders in what looks like a scheduler process; return what that did."""
    os.environ["SPECSCOPE_PROBE"] = "0"
    from sglang.srt.managers.scheduler import Scheduler
    from sglang.srt.plugins import load_plugins

    before = dict(vars(Scheduler))
    multiprocessing.parent_process = lambda: object()  # type: ignore[assignment,return-value]
    load_plugins()
    from specscope_probe.loading import forward_hook

    hook = forward_hook({})
    return {
        "hook": hook,
        "is_untouched": dict(vars(Scheduler)) == before,
        "loaded": sorted(name for name in sys.modules if name.startswith("specscope")),
    }


def tell(name: str, look: Callable[[list[str]], dict[str, Any]], kinds: list[str]) -> None:
    """Look in a process of its own."""
    sys.stdout.flush()
    if child := os.fork():
        os.waitpid(child, 0)
        return
    status = 1
    try:
        sys.stdout.write(f"{name} {json.dumps(look(kinds))}\n")
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main(kinds: list[str]) -> None:
    """Tell everything."""
    tell("COUNTS", version_driver.main, kinds)
    tell("STATES", states, kinds)
    if importlib.util.find_spec("sglang.srt.plugins") is not None:
        tell("SWITCHED_OFF", switched_off, kinds)


if __name__ == "__main__":
    main(sys.argv[1:])
