"""How an engine's version is worded.

A version told from metric names is only the oldest that fits; one told from a log's lines is a range, in
words.
"""

from __future__ import annotations

SERVER_INFO = "server_info"
"""`Launch.version_source` of a version that the server itself said."""

METRIC_NAMES = "metric_names"
"""`Launch.version_source` of a version that was told from the names of the metrics."""

LOG_LINES = "log_lines"
"""`Launch.version_source` of versions told from the forms of a log's lines, e.g. ``0.5.3–0.5.14``."""


def is_lower_bound(version_source: str | None) -> bool:
    """Tell whether the version means "this one or a later one"."""
    return version_source == METRIC_NAMES


def tells_settings(engine: str, version_source: str | None, model: str | None) -> bool:
    """Tell whether the launch's settings are known, so that what they do not name is off.

    SGLang's `/server_info` says them, or the dump of the arguments in its log, which names the model.
    """
    return engine == "sglang" and (
        version_source == SERVER_INFO or (version_source == LOG_LINES and model is not None)
    )


def version_text(version: str | None, version_source: str | None) -> str | None:
    """Return the version as it is shown, e.g. ``0.5.8 or later (from the metric names)``; None = unknown."""
    if version is not None and version_source == LOG_LINES:
        return f"{version} (from the lines of its log)"
    if version is None or not is_lower_bound(version_source):
        return version
    return f"{version} or later (from the metric names)"
