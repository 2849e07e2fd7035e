# `make run` shows what weft does, `make test` runs every check. Both set up .venv first, once per pyproject.toml.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.NOTPARALLEL:
.PHONY: run test setup types lint ruff imports typecheck lit pytest wheel bench

run: setup
	$(BIN)/python examples/run_mm_relu.py

test: lint lit pytest

setup: $(STAMP)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# Tools that read imports without running them cannot follow the editable install: they see this folder of links.
types:
	@mkdir -p .types/weft
	@ln -sfn $(addprefix ../../,$(wildcard api/*.py) api/py.typed) $(addprefix ../../,$(filter-out api,$(patsubst %/__init__.py,%,$(wildcard */__init__.py)))) .types/weft

lint: ruff imports typecheck

ruff: setup
	$(BIN)/ruff check --output-format=concise
	$(BIN)/ruff format --check

imports: setup types
	PYTHONPATH=.types $(BIN)/lint-imports --no-logo

typecheck: setup types
	$(BIN)/basedpyright

lit: setup
	$(BIN)/lit -j2 -sv tests/filecheck

pytest: setup
	$(BIN)/python -m pytest -n auto

wheel: setup
	$(BIN)/python -m build --no-isolation --outdir dist

bench: setup
	$(BIN)/python benchmarks/run.py
