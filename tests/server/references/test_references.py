"""References through the API: uploaded, kept in versions, listed, shown, downloaded; and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest
from sqlalchemy import Engine
from tests.collectors.references.writers import FORMATS, config_of_our_own, write_dump
from tests.server.client import Web
from tests.server.seed import NOW

from specscope_collectors.references.building import Building, Order
from specscope_collectors.references.document import LastState, Reference, packed, unpacked
from specscope_collectors.references.manifests import manifest_of
from specscope_server.app import create_app
from specscope_server.kit.web.scopes import Scope, scopes_for
from specscope_server.references import examples
from specscope_server.references.schemas import ReferenceDetail, ReferenceList, ReferenceReceipt
from specscope_server.settings import Settings

PATH = "/api/v1/references"


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """A reference of a dump of twenty requests."""
    root = tmp_path_factory.mktemp("dump")
    write_dump(root, FORMATS["hybrid"])
    config_of_our_own(root)
    order = Order(root=root, name="synth", made_ms=NOW - 60_000, manifest=manifest_of(root))
    return Building(order).run()


def send(
    web: Web, content: bytes | Reference, kind: str = "application/gzip", **query: Any
) -> httpx.Response:
    """Upload a file."""
    body = packed(content) if isinstance(content, Reference) else content
    return web.request("POST", PATH, params=query, content=body, headers={"content-type": kind})


def refused(web: Web, reference: Reference, **changes: Any) -> str:
    """Return why a changed reference is refused; nothing of it is stored."""
    answer = send(web, msgspec.structs.replace(reference, **changes))
    assert answer.status_code == 422, answer.text
    assert web.api("/references")["references"] == []
    return str(answer.json()["detail"])


def test_what_is_uploaded_is_listed_shown_and_comes_back(web: Web, reference: Reference) -> None:
    receipt = send(web, reference).json()
    number = receipt["id"]
    assert (receipt["is_new"], receipt["reference"]["version"]) == (True, 1)
    [item] = web.api("/references")["references"]
    assert (item["id"], item["name"], item["rows"], item["slots"]) == (number, "synth", 800, 3)
    shown = web.api(f"/references/{number}")
    assert shown["boundaries"] == [2, 4, 5]
    assert shown["last"]["boundary"] == 8
    others = [each for each in shown["profiles"] if each["row_class"] == "other" and each["slot"] == 1]
    assert [(each["answers_only"], each["rows"]) for each in others] == [(False, 720), (True, 400)]
    assert others[0]["mean_ln_norm"] == pytest.approx(np.log(8 * np.sqrt(32)), abs=0.2)
    assert unpacked(web.get(shown["download"]).content) == reference
    assert web.api(f"/references/{number}/token-ids") == list(reference.token_ids)


def test_the_same_content_is_stored_once_and_another_is_the_next_version(
    web: Web, reference: Reference
) -> None:
    first, again = send(web, reference).json(), send(web, reference).json()
    assert (again["id"], again["is_new"]) == (first["id"], False)
    other = send(web, msgspec.structs.replace(reference, seed=2)).json()
    assert (other["is_new"], other["reference"]["version"]) == (True, 2)
    renamed = send(web, reference, name="other").json()
    assert (renamed["reference"]["name"], renamed["reference"]["version"]) == ("other", 1)
    listed = [(item["name"], item["version"]) for item in web.api("/references")["references"]]
    assert listed == [("other", 1), ("synth", 2), ("synth", 1)]
    assert [item["version"] for item in web.api("/references", name="synth")["references"]] == [2, 1]


def test_lists_have_pages_and_other_forms(web: Web, reference: Reference) -> None:
    for seed in range(3):
        send(web, msgspec.structs.replace(reference, seed=seed))
    first = web.api("/references", limit=2)
    rest = web.api("/references", limit=2, cursor=first["next_cursor"])
    versions = [item["version"] for item in first["references"] + rest["references"]]
    assert versions == [3, 2, 1]
    assert rest["next_cursor"] is None
    lines = web.get(f"{PATH}?format=csv").text.splitlines()
    assert lines[0].startswith("id,name,version")
    assert len(lines) == 4


def test_plain_json_is_taken_too(web: Web, reference: Reference) -> None:
    assert send(web, msgspec.json.encode(reference), "application/json").json()["is_new"]


def profile_changed(reference: Reference, **changes: Any) -> dict[str, Any]:
    """Return the profiles with one changed."""
    profiles = list(reference.profiles)
    place = next(n for n, each in enumerate(profiles) if each.row_class == "other")
    profiles[place] = msgspec.structs.replace(profiles[place], **changes)
    return {"profiles": tuple(profiles)}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "a\x1b[31m"}, "printable"),
        ({"name": ""}, "printable"),
        ({"name": "x" * 201}, "printable"),
        ({"tool": "half \ud800"}, ""),
        ({"notes": ("nul \0",)}, "stored"),
        ({"rows": 2**70}, ""),
        ({"requests": 0}, "fit"),
        ({"requests": 801}, "fit"),
        ({"answer_rows": 900}, "fit"),
        ({"made_ms": NOW + 10**9}, "numbers"),
        ({"boundaries": (-1, 2, 3)}, "numbers"),
        ({"boundaries": (2,) * 1_000}, "slots"),
        ({"token_ids": tuple(range(2_000))}, "token ids"),
        ({"last": LastState(boundary=-5)}, "numbers"),
        ({"profiles": ()}, "some"),
        ({"hidden_size": 17}, "hidden size"),
        ({"boundaries": (2,)}, "not there"),
    ],
)
def test_what_cannot_be_is_refused(
    web: Web, reference: Reference, changes: dict[str, Any], words: str
) -> None:
    try:
        found = refused(web, reference, **changes)
    except (UnicodeEncodeError, OverflowError, msgspec.ValidationError):
        return  # not even a file of it can be made
    assert words in found


def test_profiles_that_cannot_be_are_refused(web: Web, reference: Reference) -> None:
    nan = np.full(reference.hidden_size, np.nan, "<f4").tobytes()
    assert "not finite" in refused(web, reference, **profile_changed(reference, direction_sum=nan))
    assert "bad_profile" in refused(web, reference, **profile_changed(reference, direction_sum=b"abcd"))
    assert "more rows" in refused(web, reference, **profile_changed(reference, rows=10**6))
    assert "no training" in refused(web, reference, **profile_changed(reference, phase="verify_rejected"))
    twice = (*reference.profiles, reference.profiles[0])
    assert "one place" in refused(web, reference, profiles=twice)


def test_files_that_are_none_are_refused(web: Web, reference: Reference) -> None:
    content = packed(reference)
    assert "cut off" in send(web, content[:-20]).json()["detail"]
    assert "no reference" in send(web, b"hello").json()["detail"]
    assert (
        "version"
        in send(web, gzip.compress(b'{"format":"specscope-reference","version":2}')).json()["detail"]
    )
    assert "damaged" in send(web, content[:100] + b"\xff" * 40 + content[140:]).json()["detail"]
    assert "unpacks" in send(web, gzip.compress(b" " * 40_000_000)).json()["detail"]
    assert send(web, b"x" * 5_000_001).status_code == 413
    assert send(web, content, "text/plain").status_code == 415
    assert web.api("/references")["references"] == []


def test_what_is_not_there_is_said(web: Web) -> None:
    for path in ("/7", "/7/file", "/7/token-ids"):
        answer = web.get(PATH + path)
        assert answer.status_code == 404
        assert "listed at /api/v1/references" in answer.json()["detail"]


def test_an_ingest_token_may_upload_and_a_reading_one_may_not(
    sqlite_engine: Engine, reference: Reference
) -> None:
    assert scopes_for("POST", PATH) == {Scope.INGEST, Scope.ADMIN}
    web = Web(create_app(Settings(token="a long enough token"), engine=sqlite_engine, clock=lambda: NOW))
    assert send(web, reference).status_code == 401


def test_the_examples_of_the_description_are_answers() -> None:
    for model, example in (
        (ReferenceReceipt, examples.RECEIPT),
        (ReferenceList, examples.LIST),
        (ReferenceDetail, examples.DETAIL),
    ):  # fmt: skip
        assert model.model_validate(example).model_dump(mode="json") == example


def test_a_store_keeps_the_file_small(web: Web, reference: Reference, tmp_path: Path) -> None:
    number = send(web, reference).json()["id"]
    (tmp_path / "file").write_bytes(web.get(f"{PATH}/{number}/file").content)
    assert (tmp_path / "file").stat().st_size < 300_000


def test_a_reference_of_all_boundaries_is_of_its_own_kind(web: Web, reference: Reference) -> None:
    others = [each for each in reference.profiles if each.row_class == "other"]
    profiles = tuple(
        msgspec.structs.replace(each, slot=None, boundary=boundary, phase="calibration", sum_of_squares=b"")
        for boundary, each in enumerate(others)
    )
    whole = msgspec.structs.replace(
        reference, kind="boundaries", boundaries=tuple(range(len(profiles))), profiles=profiles,
        answer_profiles=(), provenance={"engine_version": "0.5.23"},
    )  # fmt: skip
    number = send(web, whole).json()["id"]
    send(web, reference, name="of a dump")
    kinds = [(item["name"], item["kind"]) for item in web.api("/references")["references"]]
    assert kinds == [("of a dump", "slots"), ("synth", "boundaries")]
    shown = web.api(f"/references/{number}")
    assert (shown["kind"], shown["provenance"]) == ("boundaries", {"engine_version": "0.5.23"})
    assert [(each["slot"], each["boundary"]) for each in shown["profiles"]] == [(None, n) for n in range(4)]
    found = unpacked(web.get(shown["download"]).content)
    assert (found.kind, found.arrays, len(found.profiles)) == ("boundaries", "float32", 4)
    twice = msgspec.structs.replace(whole, profiles=(*profiles, profiles[0]))
    assert "of one place" in send(web, twice).json()["detail"]
    in_slots = msgspec.structs.replace(whole, profiles=tuple(others))
    assert "of a slot, in a reference of all boundaries" in send(web, in_slots).json()["detail"]


def test_what_could_not_be_compared_with_is_refused(web: Web, reference: Reference) -> None:
    heads = tuple(
        msgspec.structs.replace(each, slot=None, boundary=index, row_class="head")
        for index, each in enumerate(reference.profiles[:2])
    )
    said = refused(web, reference, kind="boundaries", profiles=heads, answer_profiles=())
    assert "no profile of ordinary rows (class 'other')" in said
    first, *others = reference.profiles
    place, count = next(iter(first.ln_norms.bins.items()))
    bins = {**first.ln_norms.bins, place: count, 10**9: 1}
    norms = msgspec.structs.replace(first.ln_norms, bins=bins)
    wide = msgspec.structs.replace(first, ln_norms=norms, rows=first.rows + 1)
    assert "cannot be (bad_profile)" in refused(web, reference, profiles=(wide, *others))
