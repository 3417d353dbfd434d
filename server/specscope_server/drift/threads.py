"""Keep numpy's matrix products on one thread: they are small, and more would only wait for each other."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    """Looking for the libraries of the process takes milliseconds; they do not change."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Return what holds products to one thread while it is open."""
    limited: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limited
