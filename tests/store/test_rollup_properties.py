"""Any order, any split into batches and any repetition gives the roll-ups of all samples taken at once."""

from __future__ import annotations

import itertools
import struct
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine
from tests.store.conftest import HOUR_MS, NOW, T0, batch, histogram, increment, launch, rows

from specscope_collectors.observations import Distribution, Increment, Target
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.series_writer import RESOLUTIONS

COMMON = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
_numbers = itertools.count()

# Whole numbers: their sums are exact in any order. The times cross minutes, ten minutes and hours.
times = st.one_of(st.integers(0, 3 * HOUR_MS), st.integers(0, 180).map(lambda minute: minute * 60_000))
points = st.dictionaries(
    st.tuples(st.integers(0, 2), times), st.tuples(st.integers(0, 10**6), st.integers(1, 60_000)), max_size=40
)


@st.composite
def deliveries(
    draw: st.DrawFn, of: st.SearchStrategy[dict[Any, Any]]
) -> tuple[dict[Any, Any], list[list[Any]]]:
    """Draw points, and batches that together hold every point at least once, in any order."""
    all_points = draw(of)
    keys = list(all_points)
    again = draw(st.lists(st.sampled_from(keys), max_size=20)) if keys else []
    order = draw(st.permutations(keys + again))
    cuts = sorted(draw(st.lists(st.integers(0, len(order)), max_size=6)))
    return all_points, [order[a:b] for a, b in itertools.pairwise([0, *cuts, len(order)])]


def send(engine: Engine, batches: Sequence[Sequence[Increment | Distribution]]) -> dict[str, int]:
    """Apply the batches for a server of their own and return label ``s`` → series id."""
    name = f"server-{next(_numbers)}"
    writer = IngestWriter(engine, lambda: NOW)
    for sequence, observations in enumerate(batches, 1):
        target = Target(name=name, base_url="http://x")
        writer.apply(batch(launch(), *observations, sequence=sequence, collector_id=name, target=target))
    server_id = dict(rows(engine, "server", "name", "id"))[name]
    series = rows(engine, "series", "server_id", "id", "labels")
    return {labels: series_id for owner, series_id, labels in series if owner == server_id}


@COMMON
@given(drawn=deliveries(points))
def test_samples(store_engine: Engine, drawn: tuple[dict[Any, Any], list[list[Any]]]) -> None:
    expected, batches = drawn
    ids = send(
        store_engine,
        [
            [
                increment(
                    labels={"s": str(s)}, time_ms=T0 + t, value=expected[s, t][0], span_ms=expected[s, t][1]
                )
                for s, t in keys
            ]
            for keys in batches
        ],
    )
    by_series = {(ids[f'{{"s":"{s}"}}'], T0 + t): value for (s, t), value in expected.items()}
    mine = set(ids.values())
    stored = [row for row in rows(store_engine, "sample") if row[0] in mine]
    assert stored == sorted((*key, float(value), span) for key, (value, span) in by_series.items())
    for suffix, resolution in RESOLUTIONS.items():
        found = [row for row in rows(store_engine, f"sample_{suffix}") if row[0] in mine]
        assert found == brute_force(by_series, resolution)
    newest = {series_id: max(t for s, t in by_series if s == series_id) for series_id in mine}
    latest = [row for row in rows(store_engine, "latest") if row[0] in mine]
    assert latest == sorted((s, t, float(by_series[s, t][0]), by_series[s, t][1]) for s, t in newest.items())


def brute_force(samples: dict[tuple[int, int], tuple[int, int]], resolution: int) -> list[tuple[Any, ...]]:
    """Return the roll-up's rows computed from all samples at once."""
    groups: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    for (series_id, time_ms), (value, span) in sorted(samples.items()):
        groups[series_id, time_ms // resolution * resolution].append((time_ms, value, span))
    return sorted(
        (
            *key,
            len(group),
            float(sum(value for _, value, _ in group)),
            float(min(value for _, value, _ in group)),
            float(max(value for _, value, _ in group)),
            float(group[-1][1]),
            group[-1][0],
            sum(span for _, _, span in group),
        )
        for key, group in groups.items()
    )


histograms = st.dictionaries(
    st.tuples(st.integers(0, 1), times, st.sampled_from([(1.0,), (0.5, 2.5)])),
    st.lists(st.integers(0, 50), min_size=3, max_size=3),
    max_size=15,
)


@COMMON
@given(drawn=deliveries(histograms))
def test_distributions(store_engine: Engine, drawn: tuple[dict[Any, Any], list[list[Any]]]) -> None:
    expected, batches = drawn

    def record(key: tuple[int, int, tuple[float, ...]]) -> Distribution:
        series, time, bounds = key
        buckets = tuple(map(float, expected[key][: len(bounds) + 1]))
        fields = {"bounds": bounds, "buckets": buckets, "count": sum(buckets), "sum": buckets[0]}
        return histogram(labels={"s": str(series)}, time_ms=T0 + time, **fields)

    ids = send(store_engine, [[record(key) for key in keys] for keys in batches])
    mine = set(ids.values())
    layouts = dict(rows(store_engine, "bucket_layout", "id", "bounds"))
    for suffix, resolution in RESOLUTIONS.items():
        sums: dict[tuple[int, int, int], list[float]] = defaultdict(lambda: [0.0] * 3)
        for key in expected:
            sent = record(key)
            start = sent.time_ms // resolution * resolution
            group = sums[ids[f'{{"s":"{key[0]}"}}'], start, len(key[2])]
            group[: len(sent.buckets)] = [a + b for a, b in zip(group, sent.buckets, strict=False)]
        found = {}
        for series_id, start, layout_id, span, count, total, buckets in rows(
            store_engine, f"distribution_{suffix}"
        ):
            if series_id in mine:
                counts = struct.unpack(f"<{len(buckets) // 8}d", buckets)
                assert (count, total) == (sum(counts), counts[0])
                assert span % 5_000 == 0
                found[series_id, start, layouts[layout_id].count(",") + 1] = list(counts)
        assert found == {key: counts[: key[2] + 1] for key, counts in sums.items()}
