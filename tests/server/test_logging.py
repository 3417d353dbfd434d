"""Logs as text or JSON, one format for ours and for libraries; no local variables in tracebacks."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from specscope_server.logging import configure_logging


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, config = root.handlers, root.level, structlog.get_config()
    yield
    root.handlers, root.level = handlers, level
    structlog.configure(**config)


def test_json_logs_are_one_object_a_line_for_ours_and_for_libraries() -> None:
    out = io.StringIO()
    configure_logging("json", "info", out)
    structlog.get_logger("ours").info("batch_applied", samples=3)
    logging.getLogger("library").warning("slow %s", "disk")
    ours, theirs = (json.loads(line) for line in out.getvalue().splitlines())
    assert (ours["event"], ours["samples"], ours["level"], ours["logger"]) == (
        "batch_applied",
        3,
        "info",
        "ours",
    )
    assert (theirs["event"], theirs["level"]) == ("slow disk", "warning")
    assert theirs["timestamp"].endswith("Z")


def test_text_logs_hold_the_pairs_and_levels_are_kept() -> None:
    out = io.StringIO()
    configure_logging("text", "warning", out)
    structlog.get_logger("ours").info("unseen")
    structlog.get_logger("ours").warning("scrape_failed", target="gpu1")
    assert "scrape_failed" in out.getvalue()
    assert "target=gpu1" in out.getvalue()
    assert "unseen" not in out.getvalue()


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_tracebacks_show_no_local_variables(log_format: str) -> None:
    out = io.StringIO()
    configure_logging(log_format, "info", out)  # type: ignore[arg-type]
    token = "hunter" + "2"
    try:
        raise RuntimeError("broken")
    except RuntimeError as error:
        structlog.get_logger("ours").error("unexpected_error", exc_info=error)
    assert "broken" in out.getvalue()
    assert token not in out.getvalue()


def test_the_newest_configuration_wins_and_requests_of_clients_are_quiet() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logging("text", "info", first)
    configure_logging("text", "info", second)
    logging.getLogger("library").info("once")
    logging.getLogger("httpx").info("GET http://gpu1/metrics")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1
    assert "gpu1" not in second.getvalue()


def test_untrusted_text_cannot_steer_a_terminal() -> None:
    out = io.StringIO()
    configure_logging("text", "info", out)
    structlog.get_logger("ours").info("odd\x1b[2J", path="/\x1b]0;owned\x07", line="a\nb\r")
    assert "\x1b" not in out.getvalue()
    assert out.getvalue().count("\n") == 1
    assert "\\x1b]0;owned\\x07" in out.getvalue()
