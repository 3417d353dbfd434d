"""Identities that the counts of requests must satisfy, checked on what is stored."""

from __future__ import annotations

from specscope_server.acceptance.schemas import Check
from specscope_server.acceptance.survival import positions_of
from specscope_server.requests.coverage import Coverage
from specscope_server.requests.population import Population, matrix_of

TOLERANCE = 1e-9
AGREE = (0.98, 1.02)
"""Requests and counters of one window differ by those that finish between two scrapes at its ends."""
LOST = 1.25
"""A restart loses what the engine counted since the last scrape; more than this it cannot be."""


def checks_of(population: Population, coverage: Coverage) -> list[Check]:
    """Return all checks, those that cannot be made too."""
    return [_lengths(population), _cycles(population), _accepted(population), _coverage(coverage)]


def _lengths(population: Population) -> Check:
    """τ = 1 + Σ S_k, launch by launch and depth by depth."""
    name, worst, groups = "τ = 1 + ΣSₖ", 0.0, 0
    for (_, depth), places in population.groups.items():
        rows = [row for row in (population.rows[place] for place in places) if row.histogram is not None]
        if rows and depth:
            total = sum(position.survival.value or 0.0 for position in positions_of(matrix_of(rows, depth)))
            worst = max(
                worst, abs(total - sum(row.accepted for row in rows) / sum(row.cycles for row in rows))
            )
            groups += 1
    if not groups:
        return Check(name=name, passed=None, message="No request reported a histogram of a known depth.")
    return Check(
        name=name, passed=worst < TOLERANCE,
        message=f"Largest difference {worst:.1e} over {groups} combinations of launch and K.",
    )  # fmt: skip


def _cycles(population: Population) -> Check:
    told = [row for row in population.rows if row.histogram is not None]
    agree = sum(sum(row.histogram or ()) == row.cycles for row in told)
    return _all("Σh = verify calls", agree, len(told))


def _accepted(population: Population) -> Check:
    told = [row for row in population.rows if row.histogram is not None]
    agree = sum(sum(j * h for j, h in enumerate(row.histogram or ())) == row.accepted for row in told)
    return _all("Σj·h = accepted drafts", agree, len(told))


def _all(name: str, agree: int, n: int) -> Check:
    if not n:
        return Check(name=name, passed=None, message="No request reported a histogram.")
    return Check(name=name, passed=agree == n, message=f"Holds for {agree:,} of {n:,} requests.")


def _coverage(coverage: Coverage) -> Check:
    name, share = "requests against counters", coverage.share
    if share is None:
        message = "The engine's counter of verify calls was not read in this window."
        return Check(name=name, passed=None, message=message)
    counts = f"{coverage.of_requests:,} of {coverage.of_engine:,.0f} cycles"
    if share > AGREE[1]:
        message = (
            f"Requests report {share:.0%} of the cycles that the engine counted ({counts}): a restart or a "
            "missed scrape loses counts"
        )
        may_be = share <= LOST
        message += "." if may_be else ", but not so many; did they run on another server?"
        return Check(name=name, passed=None if may_be else False, message=message)
    if share < AGREE[0]:
        message = (
            f"Requests account for {share:.0%} of what the engine counted ({counts}); the others were not "
        )
        return Check(name=name, passed=None, message=f"{message}reported, or finished outside the window.")
    return Check(name=name, passed=True, message=f"Requests account for {share:.0%}: {counts}.")
