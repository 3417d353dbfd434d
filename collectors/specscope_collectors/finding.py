"""One thing that was looked at when somebody asked what can be seen at a target."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Grade(StrEnum):
    """How a finding bears on what can be seen."""

    OK = "ok"
    MISSING = "missing"
    BAD = "bad"


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was looked at."""

    grade: Grade
    subject: str
    words: str
    remedy: str = ""


def ok(subject: str, words: str) -> Finding:
    """Return that all is well with ``subject``."""
    return Finding(grade=Grade.OK, subject=subject, words=words)


def lacking(subject: str, words: str, remedy: str) -> Finding:
    """Return what cannot be seen, and how to turn it on."""
    return Finding(grade=Grade.MISSING, subject=subject, words=words, remedy=remedy)


def bad(subject: str, words: str, remedy: str) -> Finding:
    """Return what is wrong, and what to do about it."""
    return Finding(grade=Grade.BAD, subject=subject, words=words, remedy=remedy)
