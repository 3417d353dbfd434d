"""What an older version stored and no check of today would let through never breaks an answer about drift."""

from __future__ import annotations

from hashlib import sha256
from html import unescape

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, delete, insert, select, update
from tests.server.client import Web
from tests.server.drift.conftest import Served
from tests.server.seed import NOW, SERVER, T0, Feed
from tests.support.faulty_profiles import (
    BODY_FAULTS,
    DOCUMENT_FAULTS,
    PROFILE_FAULTS,
    faulty_profile,
    faulty_reference,
)
from tests.support.synthetic_states import Target

from specscope_collectors.references.document import Reference
from specscope_server.app import create_app
from specscope_server.drift import facts, matching
from specscope_server.drift.panels import PANELS
from specscope_server.models import Reference as ReferenceRow
from specscope_server.models import StateProfile
from specscope_server.settings import Settings
from specscope_server.store.engine import write_transaction
from specscope_server.store.ingest import IngestWriter
from specscope_server.store.state_writer import read_body

SPAN = {"server": SERVER, "from": "now-2h", "to": "now"}
PATHS = (
    "/api/v1/drift", "/api/v1/drift/trend", "/api/v1/drift/profiles", "/api/v1/drift/boundaries",
    "/api/v1/references", "/drift", *(f"/api/v1/figures/{panel.words.name}" for panel in PANELS),
)  # fmt: skip
EXAMPLES = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def served(sqlite_engine: Engine, target: Target, training: Reference, calibration: Reference) -> Served:
    """A healthy server with two windows and both references, on one kind of store."""
    found = Served(Feed(IngestWriter(sqlite_engine, lambda: NOW)), sqlite_engine, target)
    found.launch()
    found.reference(training)
    found.reference(calibration)
    found.windows(count=2)
    return found


@pytest.fixture
def web(sqlite_engine: Engine) -> Web:
    """The application on that store."""
    return Web(create_app(Settings(), engine=sqlite_engine, clock=lambda: NOW))


def store_body(served: Served, document: Reference, body: bytes) -> int:
    """Store what no upload would let through, as the newest reference; return its id."""
    with write_transaction(served.engine) as connection:
        names = connection.execute(select(ReferenceRow.name)).scalars().all()
        row = {
            "name": f"faulty {len(names)}", "version": 1, "key": sha256(body).hexdigest(), "tool": "x",
            "model": document.model, "hidden_size": document.hidden_size, "slots": 3, "requests": 1,
            "rows": 1, "made_ms": T0, "created_ms": NOW, "body": body,
        }  # fmt: skip
        statement = insert(ReferenceRow).values(**row).returning(ReferenceRow.id)
        return connection.execute(statement).scalar_one()


def forget(served: Served, number: int) -> None:
    """Take a reference away again."""
    with write_transaction(served.engine) as connection:
        connection.execute(delete(ReferenceRow).where(ReferenceRow.id == number))


def broken(web: Web) -> list[tuple[str, int]]:
    """Ask for everything about drift; return what was answered with an error of the server."""
    found = [(path, web.get(path, params=SPAN).status_code) for path in PATHS]
    return [(path, status) for path, status in found if status not in (200, 422)]


FAULTS = sorted([*PROFILE_FAULTS, *DOCUMENT_FAULTS, *BODY_FAULTS])


@EXAMPLES
@given(st.sampled_from(FAULTS), st.integers(0, 12), st.booleans())
@example("norms too far apart", 1, False)
@example("cut off", 0, True)
@example("a future version", 0, True)
def test_a_faulty_reference_never_breaks_an_answer(
    served: Served, web: Web, training: Reference, calibration: Reference, fault: str, place: int,
    is_whole: bool,
) -> None:  # fmt: skip
    document = calibration if is_whole else training
    number = store_body(served, document, faulty_reference(document, fault, place))
    try:
        assert broken(web) == []
        for path in (f"/api/v1/references/{number}", f"/api/v1/references/{number}/token-ids"):
            assert web.get(path).status_code in (200, 422)
        for name in ("reference", "boundaries"):
            asked = web.get("/api/v1/drift", params={**SPAN, name: number})
            assert asked.status_code in (200, 422), asked.text
    finally:
        forget(served, number)


def test_what_cannot_be_used_is_named_with_the_reason_and_the_rest_goes_on(
    served: Served, web: Web, training: Reference, calibration: Reference
) -> None:
    store_body(served, training, faulty_reference(training, "norms too far apart"))
    store_body(served, calibration, faulty_reference(calibration, "a future version"))
    found = web.get("/api/v1/drift", params=SPAN).json()
    assert found["verdict"]["state"] == "ok", found["verdict"]
    assert (found["reference"]["name"], found["boundaries_reference"]["name"]) == ("training", "calibration")
    first, second = sorted(found["unusable"])
    assert first.startswith(
        "reference 'faulty 2' version 1 cannot be used: its profile of slot 0, class 'other',"
    )
    assert second.startswith("reference 'faulty 3' version 1 cannot be used: it is no reference of format")
    page = unescape(web.get("/drift", params=SPAN).text)
    assert first in page
    assert second in page


def test_asking_for_a_reference_that_cannot_be_used_says_why(
    served: Served, web: Web, training: Reference
) -> None:
    number = store_body(served, training, faulty_reference(training, "another hidden size"))
    answer = web.get("/api/v1/drift", params={**SPAN, "reference": number})
    assert answer.status_code == 422
    assert "'faulty 2' version 1" in answer.json()["detail"]
    assert "build it again" in answer.json()["detail"]


@EXAMPLES
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted([*PROFILE_FAULTS, *BODY_FAULTS])), st.integers(0, 11)),
        min_size=1,
        max_size=12,
    )
)
@example([("norms of other bins", 0), ("cut off", 5)])
def test_faulty_profiles_of_serving_never_break_an_answer(
    served: Served, web: Web, faults: list[tuple[str, int]]
) -> None:  # fmt: skip
    with served.engine.connect() as connection:
        query = select(StateProfile.id, StateProfile.body).order_by(StateProfile.id)
        whole = [(number, body) for number, body in connection.execute(query)]
    try:
        for fault, place in faults:
            number, body = whole[place]
            _write(served, number, faulty_profile(read_body(body), fault))
        assert broken(web) == []
    finally:
        for number, body in whole:
            _write(served, number, body)


def test_a_profile_that_cannot_be_used_is_left_out_and_named(served: Served, web: Web) -> None:
    with served.engine.connect() as connection:
        query = select(StateProfile.id, StateProfile.body).order_by(StateProfile.id)
        number, body = connection.execute(query).first() or (0, b"")
    _write(served, number, faulty_profile(read_body(body), "norms of other bins"))
    found = web.get("/api/v1/drift", params=SPAN).json()
    assert found["verdict"]["state"] == "ok"
    [words] = found["unusable"]
    assert words.startswith(f"profile {number} of slot 0, prefill, ")
    assert words.endswith("its sums or arrays do not agree with each other")


def _write(served: Served, number: int, body: bytes) -> None:
    """Replace what is stored of a profile, and what was kept of it in memory."""
    with write_transaction(served.engine) as connection:
        connection.execute(update(StateProfile).where(StateProfile.id == number).values(body=body))
    facts._windows._stores.clear()
    matching._matched._stores.clear()
