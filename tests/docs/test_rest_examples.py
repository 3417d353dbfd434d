"""The examples of the REST guide and of README run, against a real server with data in it."""

from __future__ import annotations

import shlex

import httpx
import pytest
from tests.docs.pages import Block, blocks, commands, read

DOCUMENTED = "http://127.0.0.1:8200"
WRONG_ON_PURPOSE = ("metric=request.running",)


def python_blocks() -> list[str]:
    """Return the Python examples of the guide."""
    return [block.text for block in blocks(read("docs/guide/rest.md")) if block.language == "python"]


def curl_lines() -> list[str]:
    """Return the curl examples of the guide and of README."""
    lines = [line for page in ("docs/guide/rest.md", "README.md") for line in commands(read(page))]
    return [line for line in lines if line.startswith("curl")]


def run(example: str, base_url: str) -> None:
    """Run one Python example against ``base_url``; a busy machine may take its time."""
    patient = example.replace(DOCUMENTED, base_url).replace("httpx.Client(", "httpx.Client(timeout=60, ")
    exec(compile(patient, "rest.md", "exec"), {})


def url_of(line: str) -> str:
    """Return the URL of a curl command; other words must be flags that change only what is printed."""
    words = shlex.split(line)[1:]
    urls = [word for word in words if word.startswith("http")]
    assert len(urls) == 1, line
    assert set(words) - set(urls) <= {"-s", "-i"}, line
    return urls[0]


@pytest.mark.parametrize("line", curl_lines())
def test_curl_examples_answer(line: str, seeded_server: str) -> None:
    answer = httpx.get(url_of(line).replace(DOCUMENTED, seeded_server), timeout=60)
    if any(part in line for part in WRONG_ON_PURPOSE):
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
    else:
        assert answer.status_code == 200, answer.text
    assert answer.content


@pytest.mark.parametrize("example", python_blocks())
def test_python_examples_run(example: str, seeded_server: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(example, seeded_server)
    assert capsys.readouterr().out.strip()


def test_the_summary_example_shows_what_was_seeded(
    seeded_server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(python_blocks()[0], seeded_server)
    out = capsys.readouterr().out
    assert out.startswith("ok 2.8")
    assert "from counters" in out


def test_closed_ranges_are_cached(seeded_server: str) -> None:
    url = f"{seeded_server}/api/v1/series/query?metric=requests.running&from=now-100m&to=2100-01-01"
    assert httpx.get(url, timeout=60).headers["cache-control"] == "no-store"
    closed = url.replace("to=2100-01-01", "to=now-90m").replace("from=now-100m", "from=now-119m")
    assert httpx.get(closed, timeout=60).headers["etag"]


def test_blocks_are_found() -> None:
    assert Block("python", "import httpx\n") in blocks("```python\nimport httpx\n```\n")
    assert len(python_blocks()) >= 4
    assert len(curl_lines()) >= 8
