"""Which versions of SGLang write lines like those of a launch, as far as the lines decide.

Read: 0.4.6.post5, 0.5.2, 0.5.8, 0.5.15 and 0.5.23. A form that one of them writes and the next does not may
have been given up anywhere between the two, so it bounds the version by its neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable

SOURCE = "log_lines"
"""`Launch.version_source` of a version that was told so."""
REPR_DUMP, DICT_DUMP = "server_args=ServerArgs(…)", "server_args={…}"
_Release = tuple[int, int, int]
_FIRST, _LAST = (0, 0, 0), (999, 0, 0)

BOUNDS: dict[str, tuple[_Release, _Release]] = {
    "0.4.6": (_FIRST, (0, 5, 1)),
    "0.5.2": ((0, 4, 7), (0, 5, 7)),
    "0.5.8": ((0, 5, 3), (0, 5, 14)),
    "0.5.15 or later": ((0, 5, 9), _LAST),
    "0.5.23 or later": ((0, 5, 16), _LAST),
    REPR_DUMP: (_FIRST, (0, 5, 22)),
    DICT_DUMP: ((0, 5, 16), _LAST),
}
"""Form of Decode lines (see `lines.form_of`) or of the dump → oldest and newest version that may write it."""


def version_range(forms: Iterable[str]) -> str | None:
    """Return the versions that may write all of these forms, in words; None: none does, or all do."""
    bounds = [BOUNDS[form] for form in forms]
    oldest = max((low for low, _ in bounds), default=_FIRST)
    newest = min((high for _, high in bounds), default=_LAST)
    if oldest > newest or (oldest == _FIRST and newest == _LAST):
        return None
    if oldest == _FIRST:
        return f"{_text(newest)} or earlier"
    return f"{_text(oldest)} or later" if newest == _LAST else f"{_text(oldest)}–{_text(newest)}"


def _text(release: _Release) -> str:
    return ".".join(map(str, release))
