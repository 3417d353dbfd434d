"""``/metrics`` in the Prometheus text format → canonical series, for every engine alike.

`parse` reads a body into raw samples, bounded and refusing line by line (`lines`, `sniff`). An engine's
`table` says which raw name is which canonical metric; `mapping` combines the raw samples (`labels`,
`parts`, `histograms`) into what is `mapped`.
"""
