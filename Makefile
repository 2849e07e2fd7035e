# `make run` shows what weft does, `make test` runs the first tier of tests, `make test-all` everything: also the tests
# marked `slow`, planted bugs, and tests as other hosts would see them. All set up .venv first, once per pyproject.toml:
# `make run` with what weft needs, the others with the tools of developers too.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.installed-core
STAMP := $(VENV)/.installed

.PHONY: run test test-all test-light test-changed docs docs-version checks setup types lint ruff imports typecheck lit pytest pytest-all planted-bugs host-cpus wheel bench generated vscode

run: $(CORE)
	$(BIN)/python examples/run_mm_relu.py

test: checks
	$(MAKE) --no-print-directory pytest

test-all: checks
	$(MAKE) --no-print-directory pytest-all
	$(MAKE) --no-print-directory planted-bugs
	$(MAKE) --no-print-directory host-cpus
	$(MAKE) --no-print-directory docs

# The core in about a minute: no PyTorch, LightGBM or PoCL, not even installed. `.venv-light` has what it needs.
LIGHT := .venv-light
LIGHT_TESTS := tests/unit/interp tests/unit/passes tests/unit/texpr tests/schedule/test_traces.py \
    tests/schedule/test_primitives.py tests/schedule/test_names.py

test-light: $(LIGHT)/.installed
	$(LIGHT)/bin/lit -j2 -sv tests/schedule tests/filecheck/tir tests/filecheck/te
	$(LIGHT)/bin/python -m pytest -n auto --dist worksteal $(LIGHT_TESTS)

$(LIGHT)/.installed: pyproject.toml
	$(PYTHON) -m venv $(LIGHT)
	$(LIGHT)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[light]'
	@touch $@

# The tests that cover what differs from BASE: `make test-changed BASE=HEAD~1`; `python tests/changed.py --list` says why.
BASE ?= main

test-changed: setup
	$(BIN)/python tests/changed.py --base $(BASE)

# The site, in build/site. The gallery runs; links and the API are checked.
docs: $(VENV)/.installed-docs types
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# A version of the site on the branch gh-pages, with the name of the latest one: `make docs-version VERSION=0.1`.
docs-version: $(VENV)/.installed-docs types
	PATH="$(CURDIR)/$(BIN):$$PATH" NO_MKDOCS_2_WARNING=1 mike deploy --update-aliases $(VERSION) latest

$(VENV)/.installed-docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

# The type checker has one thread: the lit tests run beside it.
checks: setup types
	$(MAKE) --no-print-directory -j2 lint lit

setup: $(STAMP)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(CORE): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(CORE) $@

# Tools that read imports without running them cannot follow the editable install: they see this folder of links.
types:
	@mkdir -p .types/weft
	@ln -sfn $(addprefix ../../,$(wildcard api/*.py api/*.pyi) api/py.typed) $(addprefix ../../,$(filter-out api,$(patsubst %/__init__.py,%,$(wildcard */__init__.py)))) .types/weft

lint: ruff imports typecheck

ruff: setup
	$(BIN)/ruff check --output-format=concise
	$(BIN)/ruff format --check

imports: setup types
	PYTHONPATH=.types $(BIN)/lint-imports --no-logo

typecheck: setup types
	$(BIN)/basedpyright

lit: setup
	$(BIN)/lit -j2 -sv tests/filecheck tests/schedule

pytest: setup
	$(BIN)/python -m pytest -n auto --dist worksteal

pytest-all: setup
	$(BIN)/python -m pytest -n auto --dist worksteal -m ''

planted-bugs: setup types
	$(BIN)/python tests/planted_bugs.py

# Tests that depend on the host's CPU: they choose for it, or compile for it. Code runs where this machine can run it.
CPU_TESTS := $(foreach name,contraction_tiles convolution_tiles default_contractions default_convolutions default_schedules \
    dot_products elementary_expressions elementary_functions export exported_programs foreign_code lane_masks lane_reductions \
    llvm_compile llvm_kernels llvm_ops other_cpus runtime_call runtime_library target,$(wildcard tests/*/*/test_$(name).py))
HOST_CPUS := $(if $(filter x86_64,$(shell uname -m)),x86-64-v2 haswell znver4)

host-cpus: $(addprefix host-cpu-,$(HOST_CPUS))

host-cpu-%: setup
	WEFT_HOST_CPU=$* $(BIN)/python -m pytest -n auto --dist worksteal -m '' $(CPU_TESTS)
	WEFT_HOST_CPU=$* $(BIN)/lit -j2 -sv tests/filecheck/llvm tests/filecheck/low tests/filecheck/default-schedule tests/filecheck/tir tests/schedule

# Pages and files that are made from definitions.
generated: setup
	$(BIN)/python docs/generators/dialect_docs.py
	$(BIN)/python docs/generators/pass_docs.py > docs/passes.md
	$(BIN)/python docs/generators/primitive_docs.py > docs/primitives.md
	$(BIN)/python docs/generators/operator_docs.py > docs/operators.md
	$(BIN)/python docs/generators/error_docs.py > docs/errors.md
	$(BIN)/python docs/generators/contrib_docs.py > docs/onnx-contrib.md
	$(BIN)/python docs/generators/file_docs.py > docs/files.md
	$(BIN)/python docs/generators/gpu_docs.py --write
	$(BIN)/python docs/generators/textmate_grammar.py > editors/vscode/syntaxes/mlir.tmLanguage.json
	$(BIN)/python docs/generators/schedule_methods.py > schedule/schedule.py.new && mv schedule/schedule.py.new schedule/schedule.py

# The extension of VS Code. npm writes into the copy only.
vscode:
	rm -rf build/vscode && mkdir -p build && cp -r editors/vscode build/vscode
	cd build/vscode && npm install --silent --no-audit --no-fund && npx vsce package --skip-license --allow-missing-repository

wheel: setup
	$(BIN)/python -m build --no-isolation --outdir dist

bench: setup
	$(BIN)/python benchmarks/run.py
