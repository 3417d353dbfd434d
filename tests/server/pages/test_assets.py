"""Static files: addresses with a hash may be kept for good, and nothing outside the folder is served."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs_version
from tests.server.client import Web

from specscope_server.kit.plotly_library import frontend_folder, plotly_library, read_library
from specscope_server.pages.assets import asset_url


@pytest.mark.parametrize("path", ["js/main.js", "css/tokens.css", "favicon.svg"])
def test_a_file_under_its_hash_is_immutable(lone_web: Web, path: str) -> None:
    answer = lone_web.get(asset_url(path))
    assert answer.status_code == 200
    assert answer.content == (frontend_folder() / "static" / path).read_bytes()
    assert "immutable" in answer.headers["cache-control"]


def test_a_file_under_an_old_hash_is_served_but_not_kept(lone_web: Web) -> None:
    answer = lone_web.get("/static/0000/js/main.js")
    assert answer.status_code == 200
    assert "immutable" not in answer.headers["cache-control"]


@pytest.mark.parametrize(
    "path", ["../templates/base.html", "%2e%2e/templates/base.html", "/etc/passwd", "js", "js/no.js"]
)
def test_nothing_else_is_served(lone_web: Web, path: str) -> None:
    assert lone_web.get(f"/static/0000/{path}").status_code == 404


def test_the_chart_library_is_served_packed_and_of_the_right_version(lone_web: Web) -> None:
    library = plotly_library()
    answer = lone_web.get(library.url, headers={"accept-encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]
    assert f"v{get_plotlyjs_version()}".encode() in answer.content[:400]
    assert int(answer.headers["content-length"]) < len(answer.content) / 2


def test_without_the_small_bundle_the_one_of_the_python_package_is_served(tmp_path: Path) -> None:
    library = read_library(tmp_path / "absent.js")
    assert library.path.name == "plotly.min.js"
    assert f"v{get_plotlyjs_version()}" in library.path.read_bytes()[:400].decode()
    assert library.style_ids


def test_a_page_names_the_library_and_stands_in_for_its_style_elements(lone_web: Web) -> None:
    text = lone_web.get("/").text
    assert f'<meta name="plotly" content="{plotly_library().url}">' in text
    for style_id in plotly_library().style_ids:
        assert f'id="{style_id}"' in text


def test_every_file_that_a_page_names_is_there(lone_web: Web) -> None:
    addresses = re.findall(r'(?:href|src|content)="(/static/[^"]+)"', lone_web.get("/").text)
    assert len(addresses) >= 9
    for address in addresses:
        assert lone_web.get(address).status_code == 200


def test_packing_keeps_the_content(lone_web: Web) -> None:
    address = asset_url("css/base.css")
    packed = lone_web.get(address, headers={"accept-encoding": "gzip"})
    plain = lone_web.get(address, headers={"accept-encoding": "identity"})
    assert packed.content == plain.content
    assert gzip.compress(plain.content)
