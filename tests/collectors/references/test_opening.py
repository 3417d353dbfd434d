"""One file: every container that writers use is opened; what is damaged or hostile is refused in words."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.support.dumps import T, archive, bfloat16, safetensors_bytes, tensor, torch_bytes, widened, write

from specscope_collectors.references.errors import DumpError
from specscope_collectors.references.inspecting import inspect
from specscope_collectors.references.opening import DumpFile, open_dump
from specscope_collectors.references.reading import states_of
from specscope_collectors.references.shapes import classify

FIXTURES = Path(__file__).parent / "fixtures"
IDS = tensor(np.arange(6) + 3)
STATES = np.random.default_rng(3).normal(size=(6, 8)).astype(np.float32)
SAMPLE: dict[str, Any] = {"input_ids": IDS, "hidden_states": [tensor(STATES * k) for k in (1, 2, 3, 4)]}
GOOD = torch_bytes(SAMPLE)
LAYERS = tensor(np.stack([STATES * k for k in (1, 2, 3, 4)], axis=1))
GOOD_SAFETENSORS = safetensors_bytes({"hidden_states": LAYERS, "token_ids": IDS})


def opened(tmp_path: Path, content: bytes, name: str = "data_0.pt") -> DumpFile:
    """Open a file with this content."""
    return open_dump(write(tmp_path / name, content))


def refusal(tmp_path: Path, content: bytes, name: str = "data_0.pt") -> str:
    """Return why a file is refused; the text names it."""
    path = write(tmp_path / name, content)
    with pytest.raises(DumpError) as caught:
        classify(open_dump(path))
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


@pytest.mark.parametrize(
    "name", ["specforge.ckpt", "specforge.ckpt.gz", "speculators-v1.pt", "views.pt", "angelslim.ckpt"]
)
def test_files_of_torch_itself_are_read_as_torch_reads_them(name: str) -> None:
    expected = json.loads((FIXTURES / "expected.json").read_text())
    seen = inspect(FIXTURES / name)
    assert [state.place for state in seen.states] == ["slot 0", "slot 1", "slot 2", "last"]
    assert seen.token_ids == expected["ids"]
    assert seen.answer_tokens == sum(expected["mask"])
    tolerance = 2e-3 if "angelslim" in name else 1e-5  # six digits
    norms = np.array([state.norms for state in seen.states])
    np.testing.assert_allclose(norms, expected["norms"], rtol=tolerance)
    first = np.array([state.first_values for state in seen.states])
    np.testing.assert_allclose(first, expected["first_values"], rtol=2e-3 if "angelslim" in name else 1e-5)


@pytest.mark.parametrize(("packed", "suffix"), [("", ""), ("gzip", ".gz"), ("zstd", ".zst")])
@pytest.mark.parametrize(("content", "kind"), [(GOOD, ".ckpt"), (GOOD_SAFETENSORS, ".safetensors")])
def test_packed_or_not_the_states_are_the_same(
    content: bytes, kind: str, packed: str, suffix: str, tmp_path: Path
) -> None:
    made = {"": bytes, "gzip": gzip.compress, "zstd": zstandard.ZstdCompressor().compress}[packed](content)
    found = opened(tmp_path, made, f"data_0{kind}{suffix}")
    rows = np.array([1, 4])
    states = list(states_of(found, classify(found), rows))
    assert found.compression == (packed or "none")
    for k, each in enumerate(states, start=1):
        np.testing.assert_array_equal(each, widened(bfloat16(STATES * k))[rows])


def test_the_content_decides_and_not_the_suffix(tmp_path: Path) -> None:
    assert opened(tmp_path, GOOD_SAFETENSORS, "a.pt").container == "safetensors"
    assert opened(tmp_path, gzip.compress(GOOD), "b.ckpt").compression == "gzip"


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_every_type_of_states_is_read_in_float32(dtype: str, tmp_path: Path) -> None:
    found = opened(tmp_path, torch_bytes({"ids": IDS, "states": [tensor(STATES, dtype)] * 4}))
    [first, *_] = states_of(found, classify(found), np.arange(6))
    assert first.dtype == np.float32
    np.testing.assert_allclose(first, STATES, rtol=1e-2, atol=1e-3)


def test_views_of_one_storage_are_honoured(tmp_path: Path) -> None:
    big = bfloat16(np.arange(6 * 4 * 8).reshape(6, 4, 8))
    views = [T(big, "bfloat16", 8 * layer, (6, 8), (32, 1)) for layer in range(4)]
    found = opened(tmp_path, torch_bytes({"input_ids": IDS, "hidden_states": views}))
    for layer, states in enumerate(states_of(found, classify(found), np.arange(6))):
        np.testing.assert_array_equal(states, widened(big[:, layer]))
    assert {each.storage_bytes for each in found.tensors[1:]} == {big.nbytes}


def test_a_slice_that_carries_its_parent_is_the_slice(tmp_path: Path) -> None:
    parent = bfloat16(np.arange(100 * 8).reshape(100, 8))
    part = T(parent, "bfloat16", 40 * 8, (6, 8), (8, 1))
    found = opened(tmp_path, torch_bytes({"input_ids": IDS, "hidden_states": [part] * 4}))
    [first, *_] = states_of(found, classify(found), np.arange(6))
    np.testing.assert_array_equal(first, widened(parent[40:46]))


class Evil:
    """Runs a command when it is unpickled in the ordinary way."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> Any:
        return self.call, self.arguments


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("call", [os.system, eval, getattr, __import__])
def test_a_hostile_pickle_is_refused_by_the_name_it_wants(call: Any, protocol: int, tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    pickled = pickle.dumps({"input_ids": Evil(call, f"touch {witness}")}, protocol=protocol)
    words = refusal(tmp_path, archive(pickled, []))
    assert call.__name__ in words
    assert "refused" in words
    assert not witness.exists()


DOUBLED = b")" + b"".join(b"q%ch%c\x86" % (place, place) for place in range(60))
"""Tuples that each hold the last one twice: to hash one takes 2**60 steps."""
NESTED = b")" + b"\x85" * 300_000


@pytest.mark.parametrize(
    ("pickled", "words"),
    [
        (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\nq\x00}X\x01\x00\x00\x00aK\x01sb.", "BUILD"),
        (b"(S'touch x'\nios\nsystem\n.", "refused"),
        (b"\x80\x02\x88r\xff\xff\xff\x7f.", "memo"),
        (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(K\x01K\x02K\x03K\x04tR.", "numbers"),
        (b"\x80\x02X\x04\x00\x00\x00evilQ.", "storage"),
        (b"\x80\x02}", "damaged"),
        (b"", "damaged"),
        (b"\x80\x02" + b"]" * 400_000 + b".", "no token ids"),
        (b"\x00" * (2 << 20), "over"),
        (b"\x80\x02ctorch\nsize\n.", "torch.size"),
        (b"\x80\x02}" + DOUBLED + b"K\x01s.", "a key of the type tuple"),
        (b"\x80\x02}(" + DOUBLED + b"K\x01u.", "a key of the type tuple"),
        (b"\x80\x02}" + NESTED + b"K\x01s.", "a key of the type tuple"),
        (b"\x80\x02ccollections\nOrderedDict\n](" + NESTED + b"K\x01\x86e\x85R.", "damaged"),
        (b"\x80\x02}NK\x01s.", "a key of the type NoneType"),
        (b"\x80\x02]K\x01K\x02s.", "no dict"),
        (b"\x80\x02}X\x01\x00\x00\x00actorch._utils\n_rebuild_tensor_v3\n(K\x01tRs.", "float8"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{len(value)} bytes",
)
def test_what_a_pickle_can_do_wrong_is_refused(pickled: bytes, words: str, tmp_path: Path) -> None:
    assert words in refusal(tmp_path, archive(pickled, []))


def test_a_pickle_that_multiplies_itself_is_bounded(tmp_path: Path) -> None:
    laughs: list[Any] = ["ha"]
    for _ in range(60):
        laughs = [laughs, laughs]
    assert "more than a sample" in refusal(tmp_path, torch_bytes({"a": laughs}))


def test_an_empty_file_says_so(tmp_path: Path) -> None:
    assert "0 bytes" in refusal(tmp_path, b"")


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.99])
@pytest.mark.parametrize(
    "content",
    [GOOD, GOOD_SAFETENSORS, gzip.compress(GOOD), zstandard.compress(GOOD)],
    ids=["torch", "safetensors", "gzip", "zstd"],
)
def test_a_truncated_file_is_refused(content: bytes, share: float, tmp_path: Path) -> None:
    words = refusal(tmp_path, content[: int(len(content) * share)])
    assert content[:2] not in (b"\x1f\x8b", b"\x28\xb5") or "copy or make it again" in words
    assert any(word in words for word in ("cut off", "no end", "neither", "damaged"))


def test_other_files_are_refused_in_words(tmp_path: Path) -> None:
    legacy = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + b"x" * 100
    assert "before 1.6" in refusal(tmp_path, legacy)
    assert "neither" in refusal(tmp_path, b"<html>not found</html>" * 10)
    assert "data.pkl" in refusal(tmp_path, archive(b"", [], "x").replace(b"data.pkl", b"data.txt"))
    assert "compressed" in refusal(tmp_path, archive(pickle.dumps({}, 2) + b" " * 200, [], packed=True))


def test_a_bomb_is_bounded(tmp_path: Path) -> None:
    path = write(tmp_path / "a.ckpt.gz", gzip.compress(b"\0" * 5_000_000))
    with pytest.raises(DumpError, match="unpacks to more than 1000000"):
        open_dump(path, 1_000_000)


def test_a_tensor_beyond_its_storage_is_refused(tmp_path: Path) -> None:
    raw = bfloat16(STATES)
    for wrong in (T(raw, "bfloat16", 1, (6, 8), (8, 1)), T(raw, "bfloat16", 0, (6, 8), (9, 1))):
        assert "reaches beyond" in refusal(tmp_path, torch_bytes({"input_ids": IDS, "hidden_states": wrong}))


@pytest.mark.parametrize(
    "header",
    [
        {"a": {"dtype": "BF16", "shape": [6, 8], "data_offsets": [0, 9_999]}},
        {"a": {"dtype": "BF16", "shape": [6, 80], "data_offsets": [0, 96]}},
        {"a": {"dtype": "BF16", "shape": [-6, 8], "data_offsets": [0, 96]}},
        {"a": {"dtype": "BF16", "shape": [6, 8], "data_offsets": [96, 0]}},
        {"a": {"dtype": "BF16", "shape": "big", "data_offsets": [0, 96]}},
        {"a": {"dtype": "BF16", "shape": [2**48 - 1] * 20_000, "data_offsets": [0, 96]}},
        {"a": 5},
    ],
    ids=lambda header: json.dumps(header)[:60],
)
def test_a_header_of_safetensors_that_cannot_be_is_refused(header: Any, tmp_path: Path) -> None:
    words = refusal(tmp_path, with_header(header), "a.safetensors")
    assert len(words) < len(str(tmp_path)) + 200


def with_header(header: Any) -> bytes:
    """Return a file of safetensors with this header and 96 bytes of data."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"\1" * 96


@pytest.mark.parametrize("dtype", ["F8_E4M3", "I8"])
def test_states_of_types_that_are_not_read_are_shown_and_told_the_remedy(dtype: str, tmp_path: Path) -> None:
    entries = {
        "input_ids": {"dtype": "I64", "shape": [4], "data_offsets": [0, 32]},
        "hidden_states": {"dtype": dtype, "shape": [4, 16], "data_offsets": [32, 96]},
    }
    seen = inspect(write(tmp_path / "a.safetensors", with_header(entries)))
    name = {"F8_E4M3": "F8_E4M3", "I8": "int8"}[dtype]
    assert f"hidden_states [4, 16] is {name}" in seen.trouble
    assert "torch.bfloat16" in seen.trouble
    assert any(each.key == "hidden_states" and name in each.dtype for each in seen.tensors)


def repeated(size: tuple[int, ...], dtype: str = "int64") -> T:
    """Return a tensor that repeats one element, as `expand` of torch makes it."""
    return T(tensor(np.array([5.0]), dtype).storage, dtype, 0, size, (0,) * len(size))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"input_ids": repeated((1 << 28,))}, "no sample has so many tokens"),
        ({"input_ids": repeated((1 << 45,))}, "no sample has so many tokens"),
        ({f"mask_{place}": repeated((1 << 22,)) for place in range(5)}, "more than a sample does"),
        ({"hidden_states": [repeated((6, 1 << 24), "bfloat16")] * 4}, "repeats the same 2 bytes"),
        ({"hidden_states": [repeated((6, 1 << 40), "bfloat16")] * 4}, "wide"),
        ({"hidden_states": repeated((6, 1 << 40, 8), "bfloat16")}, "repeats the same 2 bytes"),
        ({"hidden_states": [tensor(np.zeros((6, 65_537), np.float32))] * 4}, "over 65536"),
    ],
    ids=["ids", "more ids", "masks", "wide", "wider", "layers", "hidden size"],
)
def test_small_files_of_large_tensors_are_refused(changed: Any, words: str, tmp_path: Path) -> None:
    assert words in refusal(tmp_path, torch_bytes({**SAMPLE, **changed}))


def test_want_of_memory_is_told_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "array_equal", _without_memory)
    both = {**SAMPLE, "more_ids": tensor(np.arange(6) + 4)}
    assert "more memory" in refusal(tmp_path, torch_bytes(both))


def _without_memory(*_: Any) -> bool:
    raise MemoryError


def test_halves_of_characters_become_question_marks(tmp_path: Path) -> None:
    half = "\ud800".encode("utf-8", "surrogatepass")
    pickled = b"\x80\x02}(X\x04\x00\x00\x00a" + half + b"X\x03\x00\x00\x00" + half + b"u."
    assert opened(tmp_path, archive(pickled, [])).values == {"a?": "?"}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_damage_anywhere_is_read_or_refused_but_never_another_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(data.draw(st.sampled_from([GOOD, GOOD_SAFETENSORS])))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = write(tmp_path_factory.getbasetemp() / "damaged" / "a.pt", bytes(content))
    try:
        found = open_dump(path)
        list(states_of(found, classify(found), np.arange(2)))
    except DumpError as error:
        assert str(path) in str(error)  # noqa: PT017 — both ends are right


@given(hnp.arrays(np.float32, (5, 12), elements=st.floats(-(2.0**90), 2.0**90, width=32)))
@settings(max_examples=30, deadline=None)
def test_float32_states_come_back_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, values: np.ndarray[Any, np.dtype[np.float32]]
) -> None:
    content = torch_bytes({"input_ids": tensor(np.arange(5) + 2), "states": [tensor(values, "float32")] * 4})
    found = open_dump(write(tmp_path_factory.getbasetemp() / "bits" / "a.pt", content))
    for states in states_of(found, classify(found), np.arange(5)):
        np.testing.assert_array_equal(states, values)
