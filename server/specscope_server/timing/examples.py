"""Examples shown in the API description."""

from __future__ import annotations

from typing import Any

SUMMARY: dict[str, Any] = {}
TREND: dict[str, Any] = {}
SURFACE: dict[str, Any] = {}
RANKS: dict[str, Any] = {}
COMPARISON: dict[str, Any] = {}
