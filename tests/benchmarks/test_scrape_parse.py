"""Reading a scrape must cost little more than the bare parser that everybody uses."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from specscope_collectors.exposition import labels, lines
from specscope_collectors.exposition.parse import parse_exposition
from specscope_collectors.sources.sglang_metrics.mapping import map_exposition
from specscope_collectors.sources.sglang_metrics.table import WANTED

BODY = Path(__file__).parents[1] / "collectors/sglang_metrics/fixtures/0.5.23-real/metrics.txt"
ROUNDS = 15
MAX_RATIO = 1.5


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def forget_labels() -> None:
    """Make the next parse a first one."""
    lines._cached_label_pairs.cache_clear()
    labels.sort_out.cache_clear()
    labels.rank_of.cache_clear()


@pytest.mark.benchmark
@pytest.mark.parametrize("is_first_scrape", [True, False], ids=["first scrape", "later scrape"])
def test_parse_and_mapping_against_the_bare_parser(is_first_scrape: bool) -> None:
    body = BODY.read_bytes()
    text = body.decode()
    ours, theirs = [], []
    for _ in range(ROUNDS):
        if is_first_scrape:
            forget_labels()
        ours.append(seconds(lambda: map_exposition(parse_exposition(body, max_series=50_000, wanted=WANTED))))
        theirs.append(seconds(lambda: list(text_string_to_metric_families(text))))
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(  # noqa: T201 — the measured ratio is the point
        f"\n{len(body)} bytes, {'first' if is_first_scrape else 'later'} scrape: parse + mapping "
        f"{statistics.median(ours) * 1e3:.2f} ms, prometheus_client's parser alone "
        f"{statistics.median(theirs) * 1e3:.2f} ms, ratio {ratio:.2f} (at most {MAX_RATIO})"
    )
    assert ratio <= MAX_RATIO
