# Everything starts from nothing but Python >= 3.11 and make: each target creates the virtual environment it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUT ?= demo-output
DATA ?= auto

.PHONY: help demo test test-long test-all test-kernels coverage lint package minimum bench bench-check docs clean install

help:
	@echo "make demo      a frontier in $(OUT)/frontier.{csv,png,html}, and the README's first example"
	@echo "make test      the tests (about five minutes on two cores)"
	@echo "make test-long what takes more than a second or so; CI runs it as well"
	@echo "make test-all  also the slow statistical, audit, dask and browser tests"
	@echo "make test-kernels  what trains, under the instructions of an older processor"
	@echo "make coverage  the tests, and which lines of the package none of them reaches"
	@echo "make lint      ruff (rules and format), import-linter, mypy"
	@echo "make package   build wheel and sdist, install the wheel elsewhere and use it"
	@echo "make minimum   install the lowest supported versions elsewhere and use them: needs a package index"
	@echo "make bench     measure again what is stale, for many hours, and render docs/benchmarks"
	@echo "make bench-check  say which stored results are stale, and which fits have become slower or larger"
	@echo "make docs      guide, reference and the gallery of examples, into docs/_build/html; QUICK=1 leaves the examples unrun"

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
	$(BIN)/python docs/readme_example.py $(OUT)

# Compiled tests are kept, whatever the shell says: rewriting their assertions anew takes each worker ten seconds.
test test-long test-all coverage: export PYTHONDONTWRITEBYTECODE =
# Two workers on two cores: pools of their own inside would wait for each other.
test test-long test-all coverage test-kernels: export OMP_NUM_THREADS ?= 1

FAST := not slow and not long and not browser and not dask and not spark
LONG := long and not slow and not browser and not dask and not spark
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile
test: $(STAMP)
	$(PYTEST) -m "$(FAST)" --durations=20

test-long: $(STAMP)
	$(PYTEST) -m "$(LONG)" --durations=20

# Users have other processors: frozen fits, proofs of gradients and sums hold to the tolerance on any of them.
KERNELS := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=AVX2 OPENBLAS_CORETYPE=Haswell
test-kernels: $(STAMP)
	$(KERNELS) $(PYTEST) -m "not slow" tests/test_golden.py tests/networks

# Properties are tried on other examples each time. Each layer says how long it took; the second runs whatever the first says.
test-all: $(STAMP)
	$(PYTEST) -m "$(FAST)" --hypothesis-profile=fresh --durations=20; fast=$$?; \
	$(PYTEST) -m "not ($(FAST))" --hypothesis-profile=fresh --durations=50 && exit $$fast

coverage: $(STAMP)
	$(PYTEST) -m "$(FAST) or $(LONG)" --cov=skfairdp --cov-report=term-missing:skip-covered

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --config setup.cfg
	$(BIN)/mypy --config-file setup.cfg

# Wheel and sdist, built, installed and used where no checkout is near.
package: $(STAMP)
	.ci/package $(CURDIR)/$(BIN)/python

# The lowest versions that pyproject.toml admits, in an environment of their own.
minimum:
	.ci/minimum $(PYTHON)

bench: $(STAMP)
	-$(BIN)/python benchmarks/measure.py
	$(BIN)/python benchmarks/figures.py
	$(BIN)/python benchmarks/render_docs.py

bench-check: $(STAMP)
	$(BIN)/python benchmarks/check.py
	$(BIN)/python benchmarks/bench_scaling.py --check --sizes 100000

# Warnings are errors, and so are names and links that lead nowhere. The gallery runs every example; they need no data file.
DOCS_STAMP := $(VENV)/.installed-docs
$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[docs]"
	@touch $(DOCS_STAMP)

docs: $(DOCS_STAMP)
	$(BIN)/python -m sphinx -W --keep-going -b html $(if $(QUICK),-D sphinx_gallery_conf.plot_gallery=0) docs docs/_build/html
	$(BIN)/python docs/links.py docs/_build/html

clean:
	rm -rf $(VENV) docs/_build docs/auto_examples docs/reference demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
