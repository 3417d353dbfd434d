"""A real engine is scraped, and its log and request export are followed: one launch, nothing twice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.sglang_cpu.oracle import count_requests
from tests.support.product import Document, Product, serving
from tests.support.rig import Request, RigFactory, RunningRig

pytestmark = [pytest.mark.rig, pytest.mark.xdist_group("rig")]

REQUESTS = [Request(f"Cup {index} of tea", 40) for index in range(8)]


@pytest.fixture
def exporting(rig: RigFactory, tmp_path: Path) -> tuple[RunningRig, Path]:
    """An engine that exports what each request did, and the folder that it writes to."""
    folder = tmp_path / "export"
    folder.mkdir()
    return rig(extra=["--export-metrics-to-file", "--export-metrics-to-file-dir", str(folder)]), folder


def collect_file(folder: Path, engine: RunningRig, export: Path) -> Path:
    """Write what to follow."""
    path = folder / "collect.toml"
    path.write_text(
        f'[[sglang_log]]\npath = "{engine.log_path}"\nserver = "rig"\nfrom_beginning = true\n'
        f'[[requests]]\ndirectory = "{export}"\nserver = "rig"\n'
    )
    return path


def requests(product: Product, names: set[str]) -> list[Document]:
    """Return what is stored of the requests of these names."""
    found = product.get("/requests", server="rig", **{"from": "now-1h", "to": "now+1m"})["requests"]
    return [each for each in found if each["request_id"] in names]


def events(product: Product) -> list[str]:
    """Return the kinds of all events."""
    found = product.get("/events", server="rig", **{"from": "now-1h", "to": "now+1m"})
    return sorted(event["kind"] for event in found["events"])


def series(product: Product, metric: str) -> list[dict[str, str]]:
    """Return the labels of each series of a metric."""
    answer = httpx.get(
        f"{product.base_url}/api/v1/series/query",
        params={"server": "rig", "metric": metric, "from": "now-1h", "to": "now+1m", "step": "1m"},
        timeout=30.0,
    )
    return [one["labels"] for one in answer.json()["series"]]


def test_a_scraped_engine_whose_log_and_export_are_followed(
    exporting: tuple[RunningRig, Path], tmp_path: Path
) -> None:
    engine, export = exporting
    config = collect_file(tmp_path, engine, export)
    with serving(tmp_path, {"rig": engine.base_url}, "--collect", str(config)) as product:
        product.wait_for("good scrape", lambda: product.has_read("rig"))
        answers = engine.generate(REQUESTS, concurrency=4)
        total = count_requests((answer["output_ids"] for answer in answers), engine.num_steps)
        names = {answer["meta_info"]["id"] for answer in answers}
        product.wait_for("all requests", lambda: len(requests(product, names)) == len(REQUESTS))
        product.wait_for("definition", lambda: "rate_definition" in events(product))
        found = requests(product, names)
        assert sum(each["verify_calls"] for each in found) == total.verify_calls
        assert sum(each["accepted_drafts"] for each in found) == total.accepted_drafts
        (launch, *others) = product.get("/servers/rig/launches")["launches"]
        assert others == []
        assert launch["engine_version"] == "0.5.23"
        assert {each["launch_id"] for each in found} == {launch["id"]}
        assert len(series(product, "requests.running")) == 1
        assert len(series(product, "spec.accept_length")) == 1
        assert product.source_state("rig", "sglang_log") in ("ok", "partial")
        assert product.source_state("rig", "requests") == "ok"
        before = (events(product), series(product, "throughput.generated"))
        imported = subprocess.run(
            [
                sys.executable, "-m", "specscope", "import", "log", str(engine.log_path), "--server", "rig",
                "--database", f"sqlite:///{tmp_path / 'specscope.db'}",
            ],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        assert "left out" in imported.stderr
        assert (events(product), series(product, "throughput.generated")) == before
        assert len(product.get("/servers/rig/launches")["launches"]) == 1
