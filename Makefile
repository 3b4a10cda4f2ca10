# Each target sets up what it needs in a virtual environment; python3, make and a package registry are enough.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: help study test test-fast soak lint bench bench-peers clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'braided needs Python 3.11 or later: make PYTHON=python3.12 …'; exit 1; }
	@echo 'Setting up .venv (one to two minutes) …'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

study: $(READY)  ## the paper's experiment on embedded real data, and a report
	$(BIN)/braided study

test: $(READY)  ## all tests, then the compiled functions' tests once more without the compiler
	$(BIN)/python -m pytest -q -n auto
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q tests/compiled --cov=braided._compiled --cov-fail-under=100

test-fast: $(READY)  ## most tests, for the loop of writing: no soak, no browser, no kills
	$(BIN)/python -m pytest -q -n auto -m 'not slow' --ignore=tests/soak --ignore=tests/browser

soak: $(READY)  ## the soak tests in their long form: many samples, every parameter, the worst inputs
	BRAIDED_SOAK=1 $(BIN)/python -m pytest -q -n auto tests/soak

lint: $(READY)  ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: bench-peers $(READY)  ## speed beside peers, against size, first use, files, many streams; precision, forgetting, wild values, Auto
	$(BIN)/python benchmarks/scale.py --figure docs/performance.svg
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/cold_start.py
	$(BIN)/python benchmarks/throughput.py
	$(BIN)/python benchmarks/many.py
	$(BIN)/python benchmarks/precision.py
	$(BIN)/python benchmarks/forgetting.py
	$(BIN)/python benchmarks/robustness.py
	$(BIN)/python benchmarks/auto.py
	$(BIN)/python benchmarks/intervals.py

bench-peers: .venv-bench/ready  ## speed and accuracy beside other packages, installed in an environment of their own
	.venv-bench/bin/python benchmarks/peers.py

.venv-bench/ready: benchmarks/peers.txt constraints.txt pyproject.toml
	$(PYTHON) -m venv --clear .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt -r benchmarks/peers.txt --editable .
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --no-deps krls==0.0.4
	touch $@

clean:  ## remove the environment and all caches
	rm -rf .venv .venv-bench braided-study braided-run .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage htmlcov build dist src/*.egg-info
	find . -name __pycache__ -type d -exec rm -rf {} +
