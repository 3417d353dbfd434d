"""Why an answer gives no record; the words name the input, the reason and the remedy."""

from __future__ import annotations


class RefusedError(ValueError):
    """The answer cannot be a finished request, or its counts contradict each other."""

    cause = "not_an_answer"
    """The reason in one word, under which refusals are counted."""


class UnreadableError(RefusedError):
    """The text is no JSON."""

    cause = "not_json"


class UnfinishedError(RefusedError):
    """The request still runs."""

    cause = "unfinished"


class NamelessError(RefusedError):
    """The request has no id by which it could be counted once."""

    cause = "no_id"


class CountsError(RefusedError):
    """The counts are none, or contradict each other."""

    cause = "bad_counts"


class TimeError(RefusedError):
    """A time is given, but not as seconds since 1970."""

    cause = "bad_time"


class LabelsError(RefusedError):
    """The labels are not few and short."""

    cause = "bad_labels"


class HealthCheckError(ValueError):
    """The engine asked itself (`/health` runs a generation): nobody's request, so not a record."""
