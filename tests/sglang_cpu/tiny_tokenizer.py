"""A byte-level BPE tokenizer with exactly as many tokens as the tiny models have, for any text."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

SPECIAL_TOKENS = ["<|bos|>", "<|eos|>", "<|pad|>", "<|user|>", "<|assistant|>", "<|s5|>", "<|s6|>", "<|s7|>"]
LETTERS = "etaoinshrdlu"
CHAT_TEMPLATE = "{% for m in messages %}<|user|>{{ m['content'] }}{% endfor %}<|assistant|>"


def write_tokenizer(folder: Path, vocabulary_size: int) -> None:
    """Write tokenizer.json and tokenizer_config.json; the special tokens take the last ids."""
    tokenizer = Tokenizer(byte_pair_model(vocabulary_size - len(SPECIAL_TOKENS)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL_TOKENS)
    if tokenizer.get_vocab_size() != vocabulary_size:
        raise ValueError(
            f"the tokenizer has {tokenizer.get_vocab_size()} tokens instead of {vocabulary_size}"
        )
    tokenizer.save(str(folder / "tokenizer.json"))
    configuration = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": SPECIAL_TOKENS[0],
        "eos_token": SPECIAL_TOKENS[1],
        "pad_token": SPECIAL_TOKENS[2],
        "model_max_length": 4096,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(configuration))


def byte_pair_model(size: int) -> models.BPE:
    """Return a model of `size` tokens: all bytes, merges of frequent letters, then unreachable fillers."""
    vocabulary = {
        character: index for index, character in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))
    }
    merges: list[tuple[str, str]] = []
    pairs = [(first, second) for first in LETTERS for second in LETTERS] + [
        ("Ġ", letter) for letter in LETTERS
    ]
    for first, second in pairs:
        if len(vocabulary) < size and first + second not in vocabulary:
            vocabulary[first + second] = len(vocabulary)
            merges.append((first, second))
    for filler in range(size - len(vocabulary)):
        vocabulary[f"<u{filler}>"] = len(vocabulary)
    return models.BPE(vocab=vocabulary, merges=merges)
