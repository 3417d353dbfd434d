"""Paired replays: training samples are sent to the engine as token ids, and rows compared one with one.

`samples` reads them from a dump, `engine` sends them, `spooled` and `returned` get the states that the engine
had (through the probe, or through SGLang's own return where it can be trusted), `pairing` puts rows side by
side, `comparing` has the arithmetic, `verdicts` the words.
"""
