"""The team's story live, on a real model: acceptance falls, drift names each fault, and all is well again.

Three engines follow each other at one address, in the order of the tests: the right one, which is switched to
other faults while it runs; one that was started with wrong layers, and is then given its slots in another
order, and layers one too deep; and the right one again. States and counts are of their own forwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.product import Document, serving
from tests.support.real_model import BOUNDARIES, LAYERS, RealModel
from tests.support.rig import free_port
from tests.support.served import Asked, Served, Story
from tests.support.story import FORMATS, SERVER

from specscope_collectors.replays.engine import Engine

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

CANARY, FEW = Asked(is_canary=True), Asked()
LAUNCHES = ("right", "embedding", "right_again")
REPLAYED = 4
TOO_DEEP = tuple(boundary + 1 for boundary in BOUNDARIES)


class Chapters:
    """Plays what a test asks for, once; engines are started in their order."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self._launch = ""

    def launch(self, name: str) -> None:
        """Start an engine unless it runs."""
        if self._launch != name:
            self.story.launch("embedding" if name == "embedding" else "right", name)
            self._launch = name

    def served(self, name: str, asked: Asked = FEW) -> Served:
        """Return what was counted: of a launch as it was started, or of a situation it is switched to."""
        if name not in self.story.served:
            launch = {"swapped": "embedding", "too_deep": "embedding"}.get(
                name, name if name in LAUNCHES else "right"
            )
            self.launch(launch)
            self.story.serve(name, "as_started" if name in LAUNCHES else name, asked)
        return self.story.served[name]

    def drift(self, name: str) -> Document:
        """Return what the product says of the states of a situation."""
        self.served(name)
        return self.story.drift(name)


@pytest.fixture(scope="module")
def told(
    real_model: RealModel, probe_site: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Chapters]:
    """The product with its references; engines are started by the tests."""
    folder, port = tmp_path_factory.mktemp("story"), free_port()
    with serving(folder, {SERVER: f"http://127.0.0.1:{port}"}) as product:
        story = Story(product, real_model, probe_site, folder, port)
        try:
            yield Chapters(story)
        finally:
            story.end()


def slots_of(found: Document, what: str) -> list[object]:
    return [slot[what] for slot in found["slots"]]


def assert_counted(one: Served) -> None:
    """Compare what the product counted with the engine's own answers, exactly."""
    expected = {k: sum(count for drafts, count in one.histogram.items() if drafts >= k) for k in range(4)}
    assert one.counted == expected


def assert_off_by_one(told: Chapters, name: str, asked: Asked) -> None:
    """See that it is named, which acceptance alone does not: τ falls by a few hundredths."""
    assert_counted(told.served(name, asked))
    found = told.drift(name)
    boundaries = [boundary + (1 if name == "too_deep" else -1) for boundary in BOUNDARIES]
    assert found["verdict"]["state"] == "bad"
    assert f"one layer too {name[4:]}" in found["verdict"]["headline"]
    assert slots_of(found, "fault") == ["wrong_boundary"] * 3
    assert slots_of(found, "measured_boundary") == boundaries
    assert slots_of(found, "captured_boundary") == boundaries, "the probe reads them from the model"


def test_the_right_layers_are_what_was_trained_on(told: Chapters) -> None:
    one = told.served("right", CANARY)
    assert_counted(one)
    assert 1.9 <= one.accept_length <= 2.6
    found = told.drift("right")
    assert found["verdict"]["state"] == "ok"
    assert slots_of(found, "state") == ["same"] * 3
    assert slots_of(found, "measured_boundary") == list(BOUNDARIES)
    assert one.findings == (), "the detector of embeddings fires when boundary 0 is captured, and only then"


def test_slots_of_training_in_another_order_are_named(told: Chapters) -> None:
    """The same states, held against training data whose slots were put side by side the other way round."""
    told.served("right", CANARY)
    found = told.story.drift("right", "swapped")
    assert found["verdict"]["state"] == "bad"
    assert found["assignment"]["speaks"]
    pairs = {each["slot"]: each["training_slot"] for each in found["assignment"]["pairs"]}
    assert pairs == {0: 2, 1: 1, 2: 0}


def test_one_layer_too_shallow_is_named(told: Chapters) -> None:
    assert_off_by_one(told, "too_shallow", FEW)


def test_a_missing_residual_is_named(told: Chapters) -> None:
    assert_counted(told.served("un_residualed"))
    found = told.drift("un_residualed")
    assert found["verdict"]["state"] == "bad"
    assert slots_of(found, "fault") == ["gross_norm"] * 3
    assert "missing residual" in found["verdict"]["headline"]
    assert slots_of(found, "measured_boundary") == [None] * 3


def test_a_rotation_is_named_although_norms_are_the_same(told: Chapters) -> None:
    assert_counted(told.served("rotated"))
    found = told.drift("rotated")
    assert found["verdict"]["state"] == "bad"
    assert slots_of(found, "fault") == ["gross_direction"] * 3
    norms = [cell["gross_norm"] for cell in found["cells"] if cell["gross_norm"] is not None]
    right = [cell["gross_norm"] for cell in told.drift("right")["cells"] if cell["gross_norm"] is not None]
    assert max(norms) < max(*right, 0.12)


def test_a_state_behind_the_final_norm_is_named(told: Chapters) -> None:
    assert_counted(told.served("post_norm"))
    found = told.drift("post_norm")
    assert found["verdict"]["state"] == "bad"
    assert slots_of(found, "fault") == ["post_norm"] * 3


@pytest.mark.benchmark
def test_a_state_behind_its_layers_own_norm_is_found_by_its_size(told: Chapters) -> None:
    """Directions are near to the right boundary, so boundaries alone would say that all is well."""
    assert_counted(told.served("own_norm"))
    found = told.drift("own_norm")
    assert slots_of(found, "fault") == ["gross_norm"] * 3
    assert "behind a norm" in found["verdict"]["headline"]
    assert {pair["boundary"] for pair in found["assignment"]["pairs"]} == {None}


@pytest.mark.parametrize("name", [pytest.param("int8", marks=pytest.mark.benchmark), "int4"])
def test_a_quantised_target_is_no_fault(told: Chapters, name: str) -> None:
    assert_counted(told.served(name))
    found = told.drift(name)
    assert found["verdict"]["state"] == "ok"
    assert slots_of(found, "measured_boundary") == list(BOUNDARIES)


@pytest.mark.parametrize(
    ("situation", "verdicts", "boundaries"),
    [
        ("right", {"same"}, BOUNDARIES),
        ("too_deep", {"wrong_boundary"}, TOO_DEEP),
        ("rotated", {"rotated"}, None),
        ("post_norm", {"post_norm"}, BOUNDARIES),
        ("un_residualed", {"unlike"}, None),
        ("int4", {"quantised"}, BOUNDARIES),
    ],
)
def test_a_paired_replay_says_the_same(
    told: Chapters, situation: str, verdicts: set[str], boundaries: tuple[int, ...] | None
) -> None:
    """Training texts as token ids, row by row through the probe."""
    told.launch("right")
    rows = ("--rows", str(told.story.references.rows), "--requests", str(REPLAYED))
    found = told.story.replay(situation, "--spool", str(told.story.spool), *rows)
    assert {each["verdict"] for each in found["slots"]} == verdicts
    assert {each["requests"] for each in found["slots"]} == {REPLAYED}
    assert len(found["places"]) == LAYERS + 1
    assert found["captured"] == list(TOO_DEEP if situation == "too_deep" else BOUNDARIES)
    if boundaries is not None:
        assert [each["nearest_boundary"] for each in found["slots"]] == list(boundaries)
    assert not list(told.story.spool.glob("*replay*")), "rows stay nowhere"


def test_a_replay_without_the_probe_or_without_all_boundaries(told: Chapters) -> None:
    """SGLang's own return of states gives the same; the slots of training alone leave it unsure."""
    told.launch("right")
    rows = ("--rows", str(told.story.references.rows))
    found = told.story.replay("too_deep", *rows, "--requests", "2")
    assert found["way"] == "engine"
    assert [each["nearest_boundary"] for each in found["slots"]] == list(TOO_DEEP)
    found = told.story.replay("too_deep", "--spool", str(told.story.spool), "--requests", "2")
    assert found["compared_with"] == "slots"
    assert {each["verdict"] for each in found["slots"]} == {"unsure"}


def test_other_requests_leave_no_rows(told: Chapters) -> None:
    told.launch("right")
    assert told.story.running is not None
    engine = Engine(told.story.running.base_url)
    too_long = "specscope-replay-" + "a" * 40 + "-1"
    for request_id in ("specscope-replay-", "specscope-replay-zz-1", "anything", too_long):
        engine.prefill([5, 6, 7, 8, 9, 10], request_id)
    engine.close()
    assert not list(told.story.spool.glob("*replay*"))


def test_the_embedding_is_named(told: Chapters) -> None:
    one = told.served("embedding", Asked(40, 10))
    assert_counted(one)
    found = told.drift("embedding")
    assert found["verdict"]["state"] == "bad"
    assert found["slots"][0]["fault"] == "embedding"
    assert "embedding" in one.findings
    for what in ("captured_boundary", "measured_boundary"):
        assert slots_of(found, what) == [0, 2, 15]
    assert "capture [-1, 1, 14], trained [1, 14, 26]" in found["assignment"]["words"]


def test_swapped_slots_are_named(told: Chapters) -> None:
    assert_counted(told.served("swapped", Asked(40, 8)))
    found = told.drift("swapped")
    assert found["verdict"]["state"] == "bad"
    assert "the right layers in another order" in found["verdict"]["headline"]
    assert slots_of(found, "measured_boundary") == [27, 15, 2]


def test_one_layer_too_deep_is_named(told: Chapters) -> None:
    assert_off_by_one(told, "too_deep", CANARY)


@pytest.mark.parametrize("written", FORMATS)
def test_training_data_in_any_format_give_the_same_verdict(told: Chapters, written: str) -> None:
    """Files of these writers name no layers: which ones they are of is told by the states themselves."""
    told.served("right", CANARY)
    told.served("too_deep", CANARY)
    assert told.story.drift("right", written)["verdict"]["state"] == "ok"
    found = told.story.drift("too_deep", written)
    assert slots_of(found, "trained_boundary") == list(BOUNDARIES)
    assert slots_of(found, "measured_boundary") == list(TOO_DEEP)
    assert "one layer too deep" in found["verdict"]["headline"]


def test_an_off_by_one_is_confirmed_by_paired_prompts_and_not_by_the_mean(told: Chapters) -> None:
    """The same prompts in two launches: both answer with the same text, so cycles can be compared."""
    told.served("right", CANARY)
    told.served("too_deep", CANARY)
    found = told.story.paired("right", "too_deep")
    assert found["outputs_changed"] == 0
    assert found["state"] == "bad"
    [change] = [each for each in found["changes"] if each["name"] == "accept_length"]
    assert change["pairs"] == len(told.story.model.prompts())
    assert change["is_shown"]
    assert -0.15 < change["low"] < change["high"] < 0
    assert found["a"]["launch_ids"] != found["b"]["launch_ids"]
    means = [told.story.summary(name)["accept_length"] for name in ("too_deep", "right")]
    assert means[0]["high"] > means[1]["low"], "intervals of means over requests overlap"


def test_acceptance_falls_and_recovers_after_the_fix(told: Chapters) -> None:
    """2.15, then 1.26, then 1.05, then 2.15 again; each interval stands clear of the next."""
    plan = {"right": CANARY, "embedding": Asked(40, 10), "swapped": Asked(40, 8), "right_again": Asked(40, 8)}
    counted = {name: told.served(name, asked) for name, asked in plan.items()}
    assert_counted(counted["right_again"])
    shown = {name: told.story.summary(name)["accept_length"] for name in plan}
    assert shown["right"]["low"] > 1.7 > 1.45 > shown["embedding"]["high"]
    assert shown["embedding"]["low"] > 1.12 > shown["swapped"]["value"]
    assert shown["embedding"]["low"] > shown["swapped"]["high"]
    assert shown["right_again"]["low"] > 1.7
    for name, one in counted.items():
        assert shown[name]["value"] == pytest.approx(one.accept_length, abs=0.005)
    assert len({one.launch for one in counted.values()}) == len(LAUNCHES)
    assert told.drift("right_again")["verdict"]["state"] == "ok"


@pytest.mark.benchmark
def test_a_head_that_expects_another_order_accepts_next_to_nothing(told: Chapters) -> None:
    """The states themselves are as trained: it is the head that was put together wrongly."""
    told.story.launch("swapped", "swapped_head")
    one = told.story.serve("swapped_head", asked=Asked(40, 8))
    assert one.accept_length <= 1.12
    assert told.story.drift("swapped_head")["verdict"]["state"] == "ok"
