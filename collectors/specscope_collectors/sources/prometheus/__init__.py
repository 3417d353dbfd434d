"""History and follow from a Prometheus-compatible API: what another scraper already stored.

The raw samples of one scrape carry one time, so the scrape can be put together again and goes through the
same mapping as a scrape of our own. `api` asks, `chunks` says how much at once, `scrapes` puts answers
together, `replay` turns scrapes into observations, `segment` and `history` do one server, `job` all of them.
"""

SOURCE = "prometheus"
