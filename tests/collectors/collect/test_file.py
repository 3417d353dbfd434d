"""The collectors' file: what it means, and everything that is wrong with it in one message."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from specscope_collectors.collect_file import MAX_FILE_BYTES, CollectFile, CollectFileError, load_collect_file
from specscope_collectors.config import CollectorOptions, parse_target
from specscope_collectors.jobs import job_kinds
from specscope_collectors.plan import CollectPlan, watching_all
from specscope_collectors.tables import interpolate

GOOD = """
name = "gpu-host-1"

[options]
scrape_interval_seconds = 2
api_key_env = "ENGINE_KEY"

[[target]]
url = "http://gpu1:30000/metrics"
name = "left"
labels = { rack = "r7" }

[[target]]
url = "https://gpu2:30000"
api_key_file = "KEYFILE"
tls_verify = false

[[discover]]
kind = "static"
targets = ["gpu3:30000", "gpu4=gpu4:30000"]
"""


def load(folder: Path, text: str) -> CollectPlan:
    path = folder / "collect.toml"
    path.write_text(text, encoding="utf-8")
    return load_collect_file(path)


def problems(folder: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(CollectFileError) as caught:
        load(folder, text)
    assert all(each.startswith(str(folder / "collect.toml")) for each in caught.value.problems)
    return tuple(each.removeprefix(f"{folder / 'collect.toml'}") for each in caught.value.problems)


def test_a_good_file_is_a_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_KEY", "k1")
    (tmp_path / "key").write_text("k2\n")
    plan = load(tmp_path, GOOD.replace("KEYFILE", str(tmp_path / "key")))
    left, right = plan.targets
    assert (plan.name, plan.collector.name) == ("gpu-host-1", "collector:gpu-host-1")
    assert (left.target.name, left.target.base_url) == ("left", "http://gpu1:30000")
    assert (left.options.scrape_interval_seconds, left.options.api_key) == (2, "k1")
    assert left.labels == {"rack": "r7"}
    assert (right.target.name, right.options.api_key, right.options.tls_verify) == ("gpu2:30000", "k2", False)
    assert [each.kind.name for each in plan.discoveries] == ["static"]
    assert "k1" not in repr(plan)
    assert "k2" not in repr(plan)


def test_an_empty_file_collects_nothing(tmp_path: Path) -> None:
    plan = load(tmp_path, "")
    assert (plan.targets, plan.jobs, plan.discoveries) == ((), (), ())


def test_all_errors_are_said_at_once(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        """
        target_ = 1
        [options]
        scrape_intervall_seconds = 3
        concurrency = "many"
        [[target]]
        name = "x"
        [[target]]
        url = "ftp://gpu1"
        [[target]]
        url = "http://user:secret@gpu1:30000"
        [[discover]]
        kind = "dsn"
        [[discover]]
        names = []
        [[discover]]
        kind = "file_sd"
        files = ["targets.txt"]
        """,
    )
    text = "\n".join(found)
    for words in (
        "no table 'target_'. Did you mean 'target'?",
        "[options]: there is no key 'scrape_intervall_seconds'. Did you mean 'scrape_interval_seconds'?",
        "[options]: concurrency = 'many': expected `int | null`, got `str`",
        "[[target]] 1: the key 'url' is missing",
        "[[target]] 2: url = 'ftp://gpu1': scheme 'ftp' cannot be watched; use http:// or https://",
        "[[target]] 3: url = http://…@gpu1:30000: credentials in the URL are not accepted",
        "[[discover]] 1: there is no kind 'dsn'. Did you mean 'dns'?",
        "[[discover]] 2: the key 'kind' is missing",
        "[[discover]] 3: files: 'targets.txt' does not end in .json, .yml or .yaml",
    ):
        assert words in text
    assert len(found) == 9
    assert "secret" not in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[target]]\nurl = 'a:1'\n[[target]]\nurl = 'http://a:1/'", "two servers are named 'a:1'"),
        (
            "[[target]]\nurl = 'a:1'\n[[target]]\nurl = 'a:1'\nname = 'b'",
            "http://a:1 is watched already as 'a:1'",
        ),
        ("[target]\nurl = 'a:1'", "target must be a list of tables: write [[target]]"),
        ("[[options]]\nconcurrency = 1", "[options] must be one table"),
        ("name = 3", "a collector's name is text"),
        ("[options]\nscrape_interval_seconds = inf", "scrape_interval_seconds = inf: must be"),
        ("[options]\nscrape_interval_seconds = 0", "scrape_interval_seconds = 0.0: must be greater than 0"),
        ("[options]\nca_file = '/no/such'", "ca_file = '/no/such' cannot be read"),
        ("[[target]]\nurl = 'a:1'\nname = ' '", "name is empty"),
        ("[[target]]\nurl = 'a:1'\napi_key = 'sk-123'", "there is no key 'api_key'. Did you mean 'api_key_"),
        ("[[target]]\nurl = 'a:1'\napi_key_env = 'NOT_SET_HERE'", "this environment variable is not set"),
        ("[[target]]\nurl = 'a:1'\napi_key_file = '/no/such'", "cannot be read (No such file or directory)"),
        ("[[target]]\nurl = 'a:1'\napi_key_file = 'k'\napi_key_env = 'K'", "leave one of them out"),
        ("[[target]]\nurl = '${NOT_SET_HERE}:1'", "the environment variable NOT_SET_HERE is not set"),
        ("[[discover]]\nkind = 'dns'\nnames = ['a']\ntype = 'A'", "A and AAAA need a port"),
        ("[[discover]]\nkind = 'dns'\nnames = ['a']\nresolvers = ['ns1']", "'ns1' is no ADDRESS"),
        ("[[discover]]\nkind = 'static'\ntargets = ['a']\ninterval_seconds = 0.1", "at least 1"),
        ("[[discover]]\nkind = 'static'\ntargets = ['a']\ninterval_seconds = inf", "and finite"),
        ("[[discover]]\nkind = 'sglang_router'\nurl = 'http://k@r:1'", "credentials in the URL"),
        ("nonsense", "is not TOML"),
        ("a" + "[" * 100_000, "is not TOML"),
    ],
)
def test_each_mistake_has_its_words(tmp_path: Path, text: str, words: str) -> None:
    found = problems(tmp_path, text)
    assert [each for each in found if words in each], found
    assert "sk-123" not in "".join(found)


def test_files_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(CollectFileError, match="cannot be read"):
        load_collect_file(tmp_path / "none.toml")
    with pytest.raises(CollectFileError, match="cannot be read"):
        load_collect_file(tmp_path)
    (tmp_path / "large.toml").write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(CollectFileError, match="split it"):
        load_collect_file(tmp_path / "large.toml")
    (tmp_path / "marked.toml").write_bytes(b"\xef\xbb\xbfname = 'a'")  # as some editors save it
    assert load_collect_file(tmp_path / "marked.toml").name == "a"
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CollectFileError, match="is not TOML"):
        load_collect_file(tmp_path / "binary.toml")


def test_every_kind_of_job_has_a_table(tmp_path: Path) -> None:
    assert job_kinds()
    for source in job_kinds():
        (first, *_) = problems(tmp_path, f"[[{source}]]\nno_such_key = 1")
        assert first.startswith(f": [[{source}]] 1: there is no key 'no_such_key'")


def test_the_base_holds_where_the_file_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "collect.toml"
    path.write_text("[options]\nscrape_timeout_seconds = 3\n[[target]]\nurl = 'a:1'")
    base = CollectorOptions(scrape_interval_seconds=7, api_key="k", loopback_name="host1")
    also = watching_all((parse_target("b:1"),), base)
    plan = load_collect_file(path, base, also)
    assert [each.target.name for each in plan.targets] == ["b:1", "a:1"]
    options = plan.targets[1].options
    assert (options.scrape_interval_seconds, options.scrape_timeout_seconds, options.api_key) == (7, 3, "k")
    path.write_text("[[target]]\nurl = 'localhost:5'\n[[target]]\nurl = 'b:1'\nname = 'again'")
    with pytest.raises(CollectFileError, match="b:1 is watched already as 'b:1'"):
        load_collect_file(path, base, also)
    path.write_text("[[target]]\nurl = 'localhost:5'")
    assert load_collect_file(path, base).targets[0].target.name == "host1:5"


def test_variables_are_put_in_after_toml_was_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOST_NAME", "gpu9'\n[[target]]\nurl='evil")
    assert interpolate("a$$b ${HOST_NAME}", "x", []) == "a$b gpu9'\n[[target]]\nurl='evil"
    monkeypatch.setenv("HOST_NAME", "gpu9")
    assert load(tmp_path, "[[target]]\nurl = '${HOST_NAME}:1'").targets[0].target.name == "gpu9:1"


@given(st.text(alphabet="ab$ {}", max_size=12))
def test_text_without_variables_stays(text: str) -> None:
    assert interpolate(text.replace("$", "$$"), "x", []) == text


def test_the_fingerprint_follows_the_file_and_what_it_names(tmp_path: Path) -> None:
    path, key = tmp_path / "collect.toml", tmp_path / "key"
    path.write_text(f"[[target]]\nurl = 'a:1'\napi_key_file = '{key}'")
    file = CollectFile(path=path)
    seen = [file.fingerprint()]
    for change in (lambda: key.write_text("k1"), lambda: key.write_text("k2"), key.unlink, path.unlink):
        change()
        seen.append(file.fingerprint())
    assert len(set(seen[:4])) == 3
    assert seen[3] == seen[0]
    assert seen[4] not in seen[:4]


def test_other_authorities_in_the_same_file_are_other_options(tmp_path: Path) -> None:
    pem = tmp_path / "ca.pem"
    text = f"[[target]]\nurl = 'https://a:1'\nca_file = '{pem}'"
    seen = []
    for _ in range(2):
        trustme.CA().cert_pem.write_to_path(str(pem))
        seen += [load(tmp_path, text).targets[0], load(tmp_path, text).targets[0]]
    assert seen[0] == seen[1] != seen[2] == seen[3]
