"""Profiler captures (Kineto and Chrome traces) read in bounded memory and reduced to a `TraceSummary`.

Needs NumPy, which comes with the extra ``server``; nothing else of the collectors imports this package.
"""
