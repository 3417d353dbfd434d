"""States of alerts: how one label set of a rule goes from normal to firing and back. Pure.

1. `machine`: one step, from a state and a reading to the next state.
2. `identity`: what names a series, and what names one fire of it.
"""
