"""Requests of a real engine, reported by a client and from SGLang's export: equal to the oracle, exactly."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import accumulate
from pathlib import Path

import httpx
import pytest
from tests.sglang_cpu.oracle import count_requests
from tests.support.product import Document, Product, serving
from tests.support.rig import Request, RunningRig

from specscope_collectors.report import Reporter

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

REQUESTS = [Request(f"Cup {index} of tea", 20 + 4 * index) for index in range(10)]


def positions(product: Product, server: str) -> Document:
    """Return the only group of acceptance by position."""
    [group] = product.get("/acceptance/positions", server=server, **{"from": "now-1h", "to": "now+1m"})[
        "groups"
    ]
    assert isinstance(group, dict)
    return group


def assert_equal(group: Document, histogram: tuple[int, ...]) -> None:
    """Compare offered and accepted of each position with the oracle's histogram."""
    reached = list(accumulate(reversed(histogram)))[::-1]
    assert group["cycles"] == reached[0]
    assert [point["offered"] for point in group["positions"]] == reached[:-1]
    assert [point["accepted"] for point in group["positions"]] == reached[1:]
    assert [point["survival"] for point in group["positions"]] == [k / reached[0] for k in reached[1:]]
    assert group["sums_to_accept_length"] is True
    assert group["num_steps"] == len(histogram) - 1


def test_answers_and_export_give_the_oracles_histogram(shared_rig: RunningRig, tmp_path: Path) -> None:
    engine, folder = shared_rig, shared_rig.export_folder
    assert folder is not None
    with serving(tmp_path, {"rig": engine.base_url}) as product:
        product.wait_for("good scrape", lambda: product.has_read("rig"))
        answers = engine.generate(REQUESTS, concurrency=4)
        expected = count_requests((answer["output_ids"] for answer in answers), engine.num_steps)
        with Reporter(product.base_url, "rig") as reporter:
            for answer in answers:
                reporter.report(answer, labels={"via": "answers"})
        assert (reporter.sent, reporter.refused, reporter.dropped) == (10, 0, 0)
        assert_equal(positions(product, "rig"), expected.histogram)

        page = product.get(
            "/requests", server="rig", label="via=answers", **{"from": "now-1h", "to": "now+1m"}
        )
        assert sum(item["verify_calls"] for item in page["requests"]) == expected.verify_calls
        assert sum(item["accepted_drafts"] for item in page["requests"]) == expected.accepted_drafts

        wanted = {answer["meta_info"]["id"] for answer in answers}
        lines = [line for path in folder.glob("*.log") for line in path.read_text("utf-8").splitlines()]
        ours = [line for line in lines if json.loads(line)["id"] in wanted]
        exported = tmp_path / "ours.log"
        exported.write_text("\n".join(ours) + "\n", "utf-8")
        command = [
            sys.executable,
            "-m",
            "specscope",
            "import",
            "requests",
            str(exported),
            "--server",
            "exported",
        ]
        subprocess.run([*command, "--database", f"sqlite:///{tmp_path / 'specscope.db'}"], check=True)
        assert len(ours) == 10
        assert_equal(positions(product, "exported"), expected.histogram)

        again = httpx.post(
            f"{product.base_url}/api/v1/requests", params={"server": "rig"}, json=answers, timeout=30.0
        )
        assert (again.json()["accepted"], again.json()["duplicates"]) == (0, 10)
