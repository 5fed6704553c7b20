# Everything starts from nothing but Python >= 3.11 and make: each target creates the virtual environment it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUT ?= demo-output
DATA ?= auto

.PHONY: help demo test test-all lint bench clean install

help:
	@echo "make demo      run the main job and write $(OUT)/frontier.{csv,png,html}"
	@echo "make test      the tests (a few minutes)"
	@echo "make test-all  also the slow statistical, audit, dask and browser tests"
	@echo "make lint      ruff, import-linter, mypy"
	@echo "make bench     run every benchmark and render docs/benchmarks.md"

install: $(STAMP)

# torch is installed first and alone: with it in place, the open range in the metadata fetches nothing else.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt "$$(grep -i '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/python -m skfairdp demo --data $(DATA) --out $(OUT)

test: $(STAMP)
	$(BIN)/python -m pytest -m "not slow and not browser and not dask" -n 2 --dist loadfile

test-all: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/lint-imports --config setup.cfg
	$(BIN)/mypy --config-file setup.cfg

bench: $(STAMP)
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done
	$(BIN)/python benchmarks/render_docs.py

clean:
	rm -rf $(VENV) demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
