"""Each server is watched once, under one name; whoever comes first keeps it, and the other is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specscope_collectors.config import CollectorOptions
from specscope_collectors.observations import Target
from specscope_collectors.plan import Watching
from specscope_collectors.roster import Roster, merge

OPTIONS = CollectorOptions()


def watching(name: str, url: str, origin: str = "") -> Watching:
    return Watching(target=Target(name=name, base_url=f"http://{url}"), options=OPTIONS, origin=origin)


def test_a_server_listed_twice_alike_is_no_conflict() -> None:
    merged = merge({"file": [watching("a", "a:1")], "dns": [watching("a", "a:1")]})
    assert ([each.target.name for each in merged.targets], merged.refused) == (["a"], {})


def test_conflicts_are_told_to_who_came_later() -> None:
    merged = merge(
        {
            "file": [watching("a", "a:1", "f.toml")],
            "dns": [watching("a", "b:1"), watching("c", "a:1"), watching("d", "d:1")],
        }
    )
    assert [each.target.name for each in merged.targets] == ["a", "d"]
    assert merged.refused == {
        "dns": (
            "the name 'a' is taken by http://a:1 (listed by f.toml)",
            "http://a:1 is watched as 'a' (listed by f.toml)",
        )
    }


def test_only_changes_are_passed_on_and_strangers_are_not_heard() -> None:
    told: list[list[str]] = []
    roster = Roster(lambda targets: told.append([each.target.name for each in targets]))
    roster.set_order(("file", "dns"))
    roster.set("dns", [watching("b", "b:1")])
    roster.set("file", [watching("a", "a:1")])
    roster.set("file", [watching("a", "a:1")])
    roster.set("stranger", [watching("x", "x:1")])
    roster.set_order(("file",))
    roster.set("dns", [watching("b", "b:1")])
    assert told == [["b"], ["a", "b"], ["a"]]


ENTRIES = st.lists(
    st.builds(watching, st.sampled_from("abc"), st.sampled_from(["u:1", "v:1", "w:1"])), max_size=5
)


@given(st.dictionaries(st.sampled_from(["one", "two", "three"]), ENTRIES))
def test_names_and_addresses_are_unique_and_nothing_is_lost_silently(
    lists: dict[str, list[Watching]],
) -> None:
    merged = merge(lists)
    kept = [each.target for each in merged.targets]
    assert len({target.name for target in kept}) == len({target.base_url for target in kept}) == len(kept)
    for origin, listed in lists.items():
        left_out = [each for each in listed if each.target not in kept]
        assert len(merged.refused.get(origin, ())) == len(left_out)
