"""Silences: nobody is told of some alerts for a while; who wanted that, why and until when is kept.

1. `matchers`: which labels a silence is about. 2. `service`: silences in the store. 3. `endpoints`: by REST.
"""
