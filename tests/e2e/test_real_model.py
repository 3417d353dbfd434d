"""The team's story live: wrong layers, τ near 1, drift names them; then the right ones, and all is well."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from tests.support.probe import settled
from tests.support.product import Document, Product, serving
from tests.support.real_model import BOUNDARIES, RealModel
from tests.support.rig import RunningRig, free_port
from tests.support.story import SERVER, Chapter, References, engine, make_references, probing, upload

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

SPAN = {"from": "now-1h", "to": "now+1m"}


class Story:
    """The product and one engine after the other at the address that it watches."""

    def __init__(self, product: Product, model: RealModel, site: Path, folder: Path, port: int) -> None:
        self.product = product
        self.references: References = make_references(model, folder)
        self.ids = {
            name: upload(product.base_url, getattr(self.references, name), name)
            for name in ("swapped", "right", "boundaries")
        }
        self.chapters: dict[str, Chapter] = {}
        self.launches: dict[str, int] = {}
        self.counted: dict[str, dict[int, int]] = {}
        """Fault → what the product counted while its prompts were served."""
        self.findings: dict[str, list[str]] = {}
        """Fault → kinds of what the Sources page says that cannot be."""
        self._model, self._site, self._folder, self._port = model, site, folder, port
        self._launch_key = ""

    def play(self, fault: str, tokens: int) -> Chapter:
        """Serve with a fault until the product has everything, and stop the engine; once for each fault."""
        if fault not in self.chapters:
            folder = self._folder / fault
            folder.mkdir()
            variables = probing(self._site, folder, self.product.base_url, self.references.token_ids)
            running = engine(self._model, fault, folder, variables, self._port)
            chapter = self.chapters[fault] = Chapter(running)
            try:
                running.start()
                self._wait_for_launch()
                before = self._counted(running)
                chapter.serve(self._model.prompts(), tokens)
                self.counted[fault] = {
                    key: count - before.get(key, 0) for key, count in self._counted(running).items()
                }
                self.product.wait_for("empty spool", lambda: not list((folder / "spool").glob("specscope-*")))
                [server] = self.product.get("/sources", server=SERVER)["servers"]
                self.findings[fault] = [each["kind"] for each in server["states"]["findings"]]
            finally:
                running.stop()
            self.launches[fault] = self.product.get(f"/servers/{SERVER}/launches")["launches"][0]["id"]
        return self.chapters[fault]

    def _wait_for_launch(self) -> None:
        """Wait until the new start is noticed, and its counters have been read once."""

        def noticed() -> bool:
            answer = httpx.get(f"{self.product.base_url}/api/v1/ingest/launch", params={"server": SERVER})
            return answer.is_success and answer.json()["launch_key"] != self._launch_key

        self.product.wait_for("new launch", noticed)
        found = self.product.get("/ingest/launch", server=SERVER)
        self._launch_key = found["launch_key"]

        def is_measured() -> bool:
            [server] = self.product.get("/sources", server=SERVER)["servers"]
            return any(probe["parts"].get("accepts") == "on" for probe in server["probes"])

        self.product.wait_for("probe of the new launch", is_measured)

    def _counted(self, running: RunningRig) -> dict[int, int]:
        """Return drafts accepted by position, cycles at 0, when the product knows all that was counted."""
        settled(running)
        now = datetime.now(UTC)

        def has_caught_up() -> bool:
            [server] = self.product.get("/sources", server=SERVER)["servers"]
            [read] = [each["last_good"] for each in server["sources"] if each["source"] == "sglang_metrics"]
            return datetime.fromisoformat(read) > now

        self.product.wait_for("newer scrape", has_caught_up)
        asked = {"server": SERVER, "launch": "newest", **SPAN}
        groups = self.product.get("/acceptance/positions", **asked)["groups"]
        if not groups:
            return {}
        [group] = groups
        assert group["evidence"] == "draft_counters"
        return {0: group["cycles"], **{each["position"]: each["accepted"] for each in group["positions"]}}

    def drift(self, fault: str, reference: str = "right") -> Document:
        """Return what the product says of the states that a chapter's engine captured."""
        asked = {"reference": self.ids[reference], "boundaries": self.ids["boundaries"]}
        return self.product.get("/drift", server=SERVER, launch=self.launches[fault], **asked, **SPAN)


@pytest.fixture(scope="module")
def story(
    real_model: RealModel, probe_site: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Story]:
    """The product with its references; engines are started by the tests, in any order."""
    folder, port = tmp_path_factory.mktemp("story"), free_port()
    with serving(folder, {SERVER: f"http://127.0.0.1:{port}"}) as product:
        yield Story(product, real_model, probe_site, folder, port)


def assert_counted(story: Story, fault: str, tokens: int, least: float, most: float) -> None:
    """Compare what the product counted with the engine's own answers, exactly, and τ with what is known."""
    chapter = story.play(fault, tokens)
    histogram = chapter.histogram
    expected = {k: sum(count for drafts, count in histogram.items() if drafts >= k) for k in range(4)}
    assert story.counted[fault] == expected
    assert least <= chapter.accept_length <= most


@pytest.mark.parametrize(
    ("fault", "tokens", "least", "most"), [("embedding", 10, 1.1, 1.45), ("right", 16, 1.7, 2.5)]
)
def test_acceptance_is_what_the_engine_answers(
    story: Story, fault: str, tokens: int, least: float, most: float
) -> None:
    assert_counted(story, fault, tokens, least, most)


def test_the_embedding_is_named(story: Story) -> None:
    story.play("embedding", 10)
    found = story.drift("embedding")
    assert found["verdict"]["state"] == "bad"
    assert found["slots"][0]["fault"] == "embedding"
    assert "embedding" in story.findings["embedding"]
    assert [slot["captured_boundary"] for slot in found["slots"]] == [0, 2, 15]
    assert [slot["measured_boundary"] for slot in found["slots"]] == [0, 2, 15]


def test_the_right_layers_are_what_was_trained_on(story: Story) -> None:
    story.play("right", 16)
    found = story.drift("right")
    assert found["verdict"]["state"] == "ok"
    assert story.findings["right"] == [], "the detector fires when boundary 0 is captured, and only then"
    assert [slot["state"] for slot in found["slots"]] == ["same"] * 3
    assert [slot["measured_boundary"] for slot in found["slots"]] == list(BOUNDARIES)


def test_slots_in_another_order_are_named(story: Story) -> None:
    """The same engine, held against training data whose slots were put side by side the other way round."""
    story.play("right", 16)
    found = story.drift("right", "swapped")
    assert found["verdict"]["state"] == "bad"
    assert found["assignment"]["speaks"]
    pairs = {each["slot"]: each["training_slot"] for each in found["assignment"]["pairs"]}
    assert pairs == {0: 2, 1: 1, 2: 0}


@pytest.mark.benchmark
def test_a_head_that_expects_another_order_accepts_next_to_nothing(story: Story) -> None:
    assert_counted(story, "swapped", 8, 1.0, 1.12)
    assert story.drift("swapped")["verdict"]["state"] == "ok", "the states themselves are as trained"


@pytest.mark.benchmark
@pytest.mark.parametrize("fault", ["too_deep", "too_shallow"])
def test_one_layer_off_is_named(story: Story, fault: str) -> None:
    """What acceptance alone does not show: τ falls by a few hundredths."""
    step = {"too_deep": 1, "too_shallow": -1}[fault]
    story.play(fault, 10)
    found = story.drift(fault)
    assert found["verdict"]["state"] == "bad"
    assert [slot["fault"] for slot in found["slots"]] == ["wrong_boundary"] * 3
    assert [slot["measured_boundary"] for slot in found["slots"]] == [b + step for b in BOUNDARIES]
