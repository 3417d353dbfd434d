"""Laws of reading ids, whatever they are."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from specscope_collectors.layer_ids import Question, System, resolve
from specscope_collectors.layer_ids.sglang import FAMILIES
from specscope_collectors.layer_ids.versions import ANY, span_of

CLASSES = sorted(name for family in FAMILIES for name in family.classes)
VERSIONS = ["0.4.6.post5", "0.5.8", "0.5.10", "0.5.15", "0.5.20", "0.5.23", "1.0.0", "0.5.3–0.5.14", "", "?"]
ids_lists = st.lists(st.integers(-5, 70), min_size=1, max_size=8).map(tuple)
questions = st.builds(
    Question,
    system=st.sampled_from(list(System)),
    ids=st.none() | ids_lists | st.lists(st.integers(), max_size=4).map(tuple),
    version=st.none() | st.sampled_from(VERSIONS) | st.text(max_size=20),
    model_class=st.none() | st.sampled_from(CLASSES) | st.text(max_size=20),
    layers=st.none() | st.integers(-1, 100),
)


@given(questions)
@example(Question(system=System.VLLM, ids=None, version=None, model_class=None, layers=3))
def test_every_question_has_an_answer_or_a_reason(question: Question) -> None:
    found = resolve(question)
    assert (found.boundaries is None) == bool(found.reason)
    if found.boundaries is None:
        return
    assert list(found.boundaries) == sorted(set(found.boundaries))
    assert all(place >= 0 for place in found.boundaries)
    if question.layers is not None:
        assert all(place <= question.layers for place in found.boundaries)
    assert len(found.boundaries) + len(set(found.dropped)) <= max(len(set(found.ids or (1, 2, 3, 4))), 1)


@given(ids_lists, st.sampled_from(CLASSES), st.sampled_from(["0.5.8", "0.5.15", "0.5.23"]))
def test_ids_are_moved_together(ids: tuple[int, ...], model_class: str, version: str) -> None:
    found = resolve(
        Question(system=System.SGLANG, ids=ids, version=version, model_class=model_class, layers=61)
    )
    assert found.boundaries is not None
    kept = sorted(set(ids) - set(found.dropped))
    shifts = {place - number for place, number in zip(found.boundaries, kept, strict=True)}
    assert shifts <= {0} or shifts <= {1}


@given(st.sets(st.integers(1, 50), min_size=1, max_size=5), st.randoms())
def test_order_changes_nothing_where_the_first_id_decides_nothing(numbers: set[int], random: object) -> None:
    ids = sorted(numbers)
    mixed = list(ids)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    ask = [
        Question(
            system=System.SGLANG, ids=tuple(each), version="0.5.23", model_class="LlamaForCausalLM", layers=61
        )
        for each in (ids, mixed)
    ]
    assert resolve(ask[0]).boundaries == resolve(ask[1]).boundaries


@given(ids_lists, st.sampled_from(CLASSES), st.integers(0, 40))
@example((60,), "MiniMaxM3SparseForCausalLM", 14)
def test_a_range_of_versions_never_says_more_than_its_ends(
    ids: tuple[int, ...], model_class: str, patch: int
) -> None:
    def answer(version: str) -> object:
        found = resolve(
            Question(system=System.SGLANG, ids=ids, version=version, model_class=model_class, layers=61)
        )
        return found.boundaries

    whole = answer(f"0.5.{patch}–0.5.{patch + 6}")
    if whole is not None:
        assert answer(f"0.5.{patch}") == answer(f"0.5.{patch + 6}") == whole


@given(st.text(max_size=60))
def test_versions_never_raise(text: str) -> None:
    span = span_of(text)
    assert span.low <= span.high


def test_versions() -> None:
    assert span_of("v0.5.8.post1").low == (0, 5, 8)
    assert span_of("0.5.15.dev1+gabc") == span_of("0.5.14–0.5.15")
    assert span_of("0.5.8 or later (from the metric names)").high > (9, 9, 9)
    assert span_of(None) == span_of("main") == span_of("0.6–0.5") == ANY


def test_no_class_stands_in_two_families() -> None:
    assert len(CLASSES) == len(set(CLASSES))
