"""Which forwards are still sampled when the device has too much to do with them."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

from specscope_probe.parts import Part
from specscope_probe.states.counts import StateCounts
from specscope_probe.states.options import StateOptions
from specscope_probe.states.serving import CHECK_EVERY, SPARSEST, ServingSampler


class Taking:
    """A sampler of prefills and of another mode that alternate; it keeps which prefills it takes."""

    def __init__(self, *, is_speaker: bool = True) -> None:
        self.taken: list[int] = []
        self.turn = 0
        pipeline: Any = SimpleNamespace(begin=lambda *_: self.taken.append(self.turn))
        torch = SimpleNamespace(inference_mode=contextlib.nullcontext)
        options = StateOptions(prefill_every=1, verify_every=1)
        self.sampler = ServingSampler(
            torch, Part("states"), options, StateCounts(), lambda width: pipeline,
            is_tree=False, is_speaker=is_speaker, is_capturing=lambda: False,
        )  # fmt: skip

    def forwards(self, count: int) -> list[int]:
        """Run so many prefills, each followed by a verify forward; return which of them were taken."""
        self.taken.clear()
        for self.turn in range(count):
            for mode in ("EXTEND", "TARGET_VERIFY"):
                batch = SimpleNamespace(
                    forward_mode=SimpleNamespace(name=mode), extend_prefix_lens_cpu=[0],
                    extend_seq_lens_cpu=[8], input_ids=None, positions=None,
                    spec_info=SimpleNamespace(draft_token_num=4),
                )  # fmt: skip
                states = SimpleNamespace(shape=(8, 16))
                result = SimpleNamespace(hidden_states=states)
                self.sampler._after_forward(0, result, (batch,), {})
        return list(self.taken)


def test_each_step_takes_half_as_many_of_each_mode_and_those_that_ranks_compare() -> None:
    taking = Taking()
    assert taking.forwards(64) == list(range(64))
    compared = set(range(0, 64, CHECK_EVERY // 2))
    for every in (2, 4, 8, 16):
        assert taking.sampler.thin()
        assert set(taking.forwards(64)) == set(range(0, 64, every)) | compared
    assert every == SPARSEST
    assert not taking.sampler.thin(), "that is the least"


def test_other_ranks_take_what_is_compared_whatever_the_first_one_takes() -> None:
    assert Taking(is_speaker=False).forwards(64) == list(range(0, 64, CHECK_EVERY // 2))
