"""How the probe gets into a scheduler process: as an SGLang plugin, or through ``--forward-hooks``.

Both may be active; the second one finds the work done. This module is imported in every process of an
engine in whose environment the package is installed, so it imports next to nothing, and without
``SPECSCOPE_PROBE=1`` it does nothing at all.
"""

from __future__ import annotations

import os
import sys

SWITCH = "SPECSCOPE_PROBE"
OFF = ("", "0")
SCHEDULER_MODULE = "sglang.srt.managers.scheduler"


def register() -> None:
    """Entry point ``sglang.srt.plugins`` (SGLang 0.5.11 and newer): install in scheduler processes.

    The engine's main process imports the scheduler too, but is nobody's child.
    """
    if _switch() not in OFF and SCHEDULER_MODULE in sys.modules and _is_spawned():
        _install()


def forward_hook(config: object = None) -> None:
    """Hook factory for ``--forward-hooks`` (SGLang 0.5.6 and newer); called inside ``Scheduler.__init__``.

    Returns None, so the engine registers no hook (and says so in a warning): the call itself is the point.
    """
    if _switch() not in OFF:
        _install()


def _switch() -> str:
    return os.environ.get(SWITCH, "").strip()


def _is_spawned() -> bool:
    import multiprocessing

    return multiprocessing.parent_process() is not None


def _install() -> None:
    if _switch() != "1":
        import logging

        told = "specscope: %s=%r is neither 1 (on) nor 0 (off); the probe stays off"
        logging.getLogger("specscope_probe").warning(told, SWITCH, _switch())
        return
    try:
        from specscope_probe.install import install

        install()
    except Exception:
        import logging

        logging.getLogger("specscope_probe").exception(
            "specscope: the probe could not be installed; the engine runs without it"
        )
