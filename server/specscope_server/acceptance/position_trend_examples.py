"""The example of positions over time in the API description: one request in one bucket of a minute."""

from __future__ import annotations

from typing import Any

from specscope_server.acceptance.examples import SUMMARY

_TIME = "2026-03-01T11:59:00.000Z"


def _cell(position: int, offered: int, accepted: int) -> dict[str, Any]:
    return {
        "time": _TIME,
        "position": position,
        "cycles": 13,
        "offered": offered,
        "accepted": accepted,
        "survival": accepted / 13,
        "conditional": accepted / offered,
        "is_few": True,
        "is_few_offered": True,
    }


TREND: dict[str, Any] = {
    "server": "gpu1:30000",
    "from": _TIME,
    "to": "2026-03-01T12:00:00.000Z",
    "step_seconds": 60.0,
    "is_demo": False,
    "launches": [SUMMARY["launch"]],
    "evidence": "histograms of finished requests",
    "times": [_TIME],
    "positions": 3,
    "cells": [_cell(1, 13, 7), _cell(2, 7, 7), _cell(3, 7, 4)],
    "note": "",
}
