# Everything a developer does, one word each. `make` alone lists the words.
# Only Python >= 3.11, git and make are assumed; the rest is put into .venv.
#   PYTHON=/path/to/python3.12   the interpreter to make .venv with (default: the first suitable one on PATH)
#   JOBS=4                       test processes
#   ARGS='-k ingest'             more arguments for pytest or the demo

SHELL := /bin/sh
VENV ?= .venv
JOBS ?= 2
ARGS ?=
BIN := $(VENV)/bin
PYTHON ?= $(shell scripts/find-python)
BUNDLE := frontend/static/vendor
PINS := pyproject.toml requirements/constraints.txt scripts/bootstrap.py

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo demo-real check test bench drift-study docs constraints clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.setup-dev ## make .venv with the product and the developers' tools, and fetch the chart library

demo: $(VENV)/.setup-run ## demo engines and the dashboard; prints one URL, Ctrl-C stops it all
	@exec $(BIN)/specscope demo $(ARGS)

demo-real: $(VENV)/.setup-dev ## a real model on this CPU, served with wrong layers and then the right ones; prints the URL
	@exec $(BIN)/python -m tests.real_model.demo $(ARGS)

check: $(VENV)/.setup-dev ## style, types, import rules, generated docs
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/docs.py --check

test: $(VENV)/.setup-dev ## all tests, against a real engine, databases and browser (set up on first use)
	$(BIN)/python -m tests.sglang_cpu.install --or-explain
	$(BIN)/python -m tests.real_model.install --or-explain
	$(BIN)/pytest -n $(JOBS) --dist loadgroup -m "not benchmark" $(ARGS)

bench: $(VENV)/.setup-dev ## benchmarks: ratios measured in one run
	$(BIN)/pytest -m benchmark -s tests/benchmarks tests/e2e tests/demo tests/faults tests/probe tests/collectors/replays $(ARGS)

drift-study: $(VENV)/.setup-dev ## how often the drift rules are wrong, on a real model: an hour the first time
	$(BIN)/python -m tests.benchmarks.drift_study

docs: $(VENV)/.setup-dev ## write the generated pages of docs/ anew
	$(BIN)/python scripts/docs.py

constraints: $(VENV)/.setup-dev ## write requirements/constraints.txt from what .venv holds
	$(BIN)/python scripts/freeze.py

clean: ## remove what these commands made (the rig's cache in ~/.cache/specscope stays)
	rm -rf $(VENV) $(BUNDLE) build dist test-artefacts .mypy_cache .ruff_cache .pytest_cache .hypothesis \
		.import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A killed set-up leaves no stamp, so the next one runs again.
$(VENV)/.setup-run: $(PINS)
	$(or $(PYTHON),$(error no Python >= 3.11 found on PATH; install one, or give PYTHON=/path/to/python3)) \
		scripts/bootstrap.py --venv $(VENV)
	@touch $@

$(VENV)/.setup-dev: $(PINS)
	$(or $(PYTHON),$(error no Python >= 3.11 found on PATH; install one, or give PYTHON=/path/to/python3)) \
		scripts/bootstrap.py --venv $(VENV) --dev
	@touch $(VENV)/.setup-run $@
