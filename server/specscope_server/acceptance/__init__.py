"""Accept length, draft acceptance and the engine's own rate of a server over a window.

How an answer comes about, each step in a file of its own:

1. `windows`: how finely to read. `gather`: series into arrays per launch and rank (`activity`: when an engine
   only looks busy). `requests`: sums over finished requests.
2. `statistics`: the formulas. `measure`: counts, ratios and the best evidence of the whole window.
   `engine_rates`: which definition a printed rate has.
3. The summary: `numbers` words each headline number (`context`: what they share), `doubts` says what keeps it
   from being believed, `verdict` checks and judges, `service` puts them together.
4. The trend: `trend` makes a point a bucket, `printed_rates` keeps the rates of different definitions apart.

`schemas`, `examples` and `endpoints` are the API; `figures` draws a trend, `panels` offers figures by name.
"""
