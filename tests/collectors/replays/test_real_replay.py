"""A real engine, a real draft, a real dump: one layer too deep is named, through the probe and without it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.probe import variables
from tests.support.real_model import BOUNDARIES, LAYERS, RealEngineFactory, RealModel
from tests.support.rig import RunningRig

from specscope_collectors.references.training_rows import read_rows
from specscope_collectors.replays.engine import Engine, new_run
from specscope_collectors.replays.pairing import compare
from specscope_collectors.replays.samples import Sample, Training
from specscope_collectors.replays.spooled import through_probe
from specscope_collectors.replays.verdicts import Verdict
from specscope_server.cli.reference import main

# With `make bench`: another engine and another pass through the model would make the default run too long.
pytestmark = [pytest.mark.rig, pytest.mark.benchmark, pytest.mark.xdist_group("rig")]
COLLECTORS = Path(__file__).resolve().parents[3] / "collectors"
DRIVER = Path(__file__).with_name("rows_driver.py")
REQUESTS = 4
TOO_DEEP = tuple(boundary + 1 for boundary in BOUNDARIES)


@dataclass(frozen=True, slots=True)
class Deep:
    """The engine with the layers one too deep, the spool of its probe, and what it is compared with."""

    running: RunningRig
    spool: Path
    dump: Path
    rows: Path

    def replayed(self, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, dict[str, Any], str]:
        """Run the command; return its exit status, what it printed, and its complaints."""
        options = ["--server", self.running.base_url, "--dump", str(self.dump), "--requests", str(REQUESTS)]
        status = main(["replay", *options, "--format", "json", *more])
        said = capsys.readouterr()
        return status, json.loads(said.out or "{}"), said.err


@pytest.fixture(scope="module")
def deep(
    real_engine: RealEngineFactory, real_model: RealModel, probe_site: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Deep:  # fmt: skip
    """Started once; nothing of it is sampled but what asks for it."""
    folder = tmp_path_factory.mktemp("replays")
    rows, dump = folder / "real.rows.npz", real_model.dump()
    command = [
        str(real_model.rig.python),
        str(DRIVER),
        str(real_model.target),
        str(dump),
        str(rows),
        str(REQUESTS),
    ]
    environment = os.environ | {"PYTHONPATH": str(COLLECTORS), "HF_HUB_OFFLINE": "1"}
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert answer.returncode == 0, answer.stderr[-3000:]
    own = variables(probe_site, folder, SPECSCOPE_SPOOL=str(folder / "spool"), SPECSCOPE_PROBE_REPLAY="1")
    running = real_engine("too_deep", own, ["--enable-return-hidden-states"])
    return Deep(running, folder / "spool", dump, rows)


def test_one_layer_too_deep_is_named_through_the_probe(
    deep: Deep, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found, _ = deep.replayed(capsys, "--spool", str(deep.spool), "--rows", str(deep.rows))
    assert status == 3
    assert found["captured"] == list(TOO_DEEP)
    assert (found["way"], found["compared_with"], len(found["places"])) == ("probe", "boundaries", LAYERS + 1)
    for slot, each in enumerate(found["slots"]):
        assert (each["verdict"], each["nearest_boundary"]) == ("wrong_boundary", TOO_DEEP[slot])
        assert each["claimed"] == f"boundary {BOUNDARIES[slot]}"
        assert each["requests"] == REQUESTS
        assert each["at_nearest"]["relative_l2"] < 0.03
        assert each["at_claimed"]["relative_l2"] > 0.15
        assert each["runner_up_ratio"] > 5
        assert each["votes"] == 1
    assert not list(deep.spool.glob("*replay*")), "rows stay nowhere"


def test_sglangs_own_return_gives_the_same(deep: Deep, capsys: pytest.CaptureFixture[str]) -> None:
    status, found, _ = deep.replayed(capsys, "--rows", str(deep.rows))
    assert (status, found["way"]) == (3, "engine")
    assert [each["nearest_boundary"] for each in found["slots"]] == list(TOO_DEEP)


def test_with_the_slots_of_training_alone_it_is_unsure(
    deep: Deep, capsys: pytest.CaptureFixture[str]
) -> None:
    status, found, _ = deep.replayed(capsys, "--spool", str(deep.spool))
    assert (status, found["compared_with"]) == (4, "slots")
    assert {each["verdict"] for each in found["slots"]} == {"unsure"}


def test_a_draft_that_was_trained_there_sees_the_same(deep: Deep) -> None:
    """The same engine is right for a dump of the boundaries that it captures."""
    rows = read_rows(deep.rows)[:2]
    samples = []
    for each in rows:
        states = np.zeros((len(TOO_DEEP), len(each.token_ids), each.states.shape[2]), np.float32)
        states[:, each.positions] = each.states[list(TOO_DEEP)]
        samples.append(Sample(each.name, each.token_ids, states))
    training = Training(tuple(samples), rows[0].states.shape[2], 3, False, False, TOO_DEEP, None)
    engine = Engine(deep.running.base_url)
    gathered = through_probe(engine, training, new_run(), deep.spool)
    engine.close()
    compared = compare(training, gathered.served, rows)
    assert {each.verdict for each in compared.slots} == {Verdict.SAME}
    assert [each.nearest_boundary for each in compared.slots] == list(TOO_DEEP)


def test_other_requests_leave_nothing(deep: Deep) -> None:
    engine = Engine(deep.running.base_url)
    for request_id in (
        "specscope-replay-",
        "specscope-replay-zz-1",
        "anything",
        "specscope-replay-" + "a" * 40 + "-1",
    ):
        engine.prefill([5, 6, 7, 8, 9, 10], request_id)
    engine.close()
    assert not list(deep.spool.glob("*replay*"))
