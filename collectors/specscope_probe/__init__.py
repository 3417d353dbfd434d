"""Specscope's probe: measures speculative decoding from inside SGLang's scheduler processes.

It needs nothing but the standard library and what SGLang itself brings (torch, prometheus_client), and it
imports these only when it is switched on with ``SPECSCOPE_PROBE=1``.
"""
