"""One request beside its peers: the requests of the same launch and depth in the same window."""

from __future__ import annotations

import numpy as np
from sqlalchemy.orm import Session

from specscope_collectors.observations import CANARY_ID_PREFIX
from specscope_server.acceptance.survival import depth_of
from specscope_server.kit.timeparse import to_iso
from specscope_server.models import Launch, Request
from specscope_server.requests.detail_schemas import HistogramBar, PeerGroup, RequestDetail
from specscope_server.requests.filters import Scope
from specscope_server.requests.listing import item_of, request_row
from specscope_server.requests.outliers import Judgement, judge
from specscope_server.requests.population import Population, matrix_of, read_population

AROUND_MS = 1_800_000
"""Peers of a request finished at most this long before or after it."""


def read_detail(session: Session, server: str, server_id: int, number: int) -> RequestDetail:
    """Return one request and its peers; raises `NotFound`."""
    row = request_row(session, server_id, number)
    launch = None if row.launch_id is None else session.get(Launch, row.launch_id)
    item = item_of(row)
    histogram = item.accepted_histogram
    depth = None
    if launch is not None and row.verify_calls:
        depth = depth_of(launch, row.verify_calls, row.proposed_drafts, histogram or ())
    peers = None if launch is None or depth is None else _peers(session, row, launch, depth)
    return RequestDetail.model_validate(
        {
            "server": server, "request": item, "is_demo": launch is not None and launch.is_demo,
            "num_steps": depth,
            "from": to_iso(row.time_ms - AROUND_MS), "to": to_iso(row.time_ms + AROUND_MS),
            "peers": peers, "note": _note(item.verify_calls, histogram, depth),
        }
    )  # fmt: skip


def _peers(session: Session, row: Request, launch: Launch, depth: int) -> PeerGroup | None:
    scope = Scope(
        row.server_id, row.time_ms - AROUND_MS, row.time_ms + AROUND_MS + 1, {launch.id: launch}, False
    )
    population = read_population(session, scope)
    places = population.groups.get((launch.id, depth), [])
    members = [population.rows[place] for place in places]
    total = matrix_of(members, depth).sum(axis=0)
    if not total.sum():
        return None
    own = matrix_of([each for each in members if each.number == row.id], depth).sum(axis=0)
    cycles, accepted = population.cycles[places].sum(), population.accepted[places].sum()
    place = next((place for place in places if population.rows[place].number == row.id), None)
    return PeerGroup(
        requests=len(members), cycles=int(cycles), accept_length=float(1 + accepted / cycles),
        histogram=[
            HistogramBar(
                accepted_drafts=j, cycles=int(own[j]) if own.sum() else None,
                share=float(own[j] / own.sum()) if own.sum() else None,
                peer_cycles=int(total[j]), peer_share=float(total[j] / total.sum()),
            )
            for j in range(depth + 1)
        ],
        verdict="canary" if _is_canary(row) else _verdict(population, judge(population), place),
        note=population.note(),
    )  # fmt: skip


def _is_canary(row: Request) -> bool:
    return row.request_id.startswith(CANARY_ID_PREFIX)


def _verdict(population: Population, judgement: Judgement, place: int | None) -> str:
    """Return what the rule for outliers says of the request; `unread` where a sample left it out."""
    if place is None:
        return "unread"
    if not judgement.judged[place]:
        return "not_judged"
    if not judgement.outlying[place]:
        return "ordinary"
    return "low" if np.less(population.lengths[place], judgement.expected[place]) else "high"


def _note(calls: int | None, histogram: list[int] | None, depth: int | None) -> str:
    if not calls:
        return "The engine said nothing about speculation for this request."
    if histogram is None:
        return "The engine gave no histogram of accepted drafts: SGLang 0.5.15 and later do."
    if depth is None:
        return "Its cycles may have proposed differently many drafts, so it is not compared with others."
    return ""
