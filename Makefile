# make demo and make test do all their own set-up: a virtual environment in .venv; for the tests CPU torch, too.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.ready-dev
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# What `pip install kraq-dspy` gives, without any extra, and pytest.
DEFAULT_VENV ?= .venv-default
DEFAULT := $(DEFAULT_VENV)/.ready
# Where pip finds CPU builds of torch, if not where it looks anyway: make test TORCH_INDEX=URL
TORCH_INDEX ?=
SOURCES := kraq_dspy tests benchmarks examples scripts
# Where it is set, each of the many processes of a run would compile DSPy and this package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-lm test test-default test-long test-explore test-benchmarks golden golden-check scope test-kill test-lm test-vllm test-browser check docs docs-test format lint types clean
help:
	@echo "make demo       index the bundled passages, ask three questions, print recall and gold in answer"
	@echo "make demo-lm    the same on a few passages with real language models in this process: 590 MB, up to 15 minutes"
	@echo "make test       run the tests, but for those of tests/long.txt"
	@echo "make test-long  the tests of tests/long.txt, which take some seconds each: minutes"
	@echo "make test-default  every command of the pages without an extra, in .venv-default"
	@echo "make check      format, lint, types, and tests with and without the extras"
	@echo "make test-explore  properties with examples drawn anew: minutes"
	@echo "make test-benchmarks  what the scripts of benchmarks/ compute: minutes"
	@echo "make golden-check  what commands say over small corpora is what tests/golden holds; make golden writes it: minutes"
	@echo "make scope      who may read what, with ten thousand canaries: many minutes"
	@echo "make test-kill  kill -9 at fifty moments, and a full disk: some minutes"
	@echo "make test-lm    the contract with a real language model in this process: minutes, 98 MB"
	@echo "make test-browser  every view of the page in a Chromium that is installed"
	@echo "make test-vllm  the contract with a real vLLM, in an environment of its own: minutes, 2 GB"
	@echo "make docs       build the site of docs/ with the API in build/site; fails on any warning"
	@echo "make docs-test  run the tutorials of docs/tutorials from top to bottom: minutes"
	@echo "make format     rewrite the sources in the project's format"
	@echo "make clean      remove the virtual environment and what the runs left"

# Without compiling: Python does that for what is imported, and pip would for everything, a third of its time.
$(READY): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "No $(PYTHON) found: install Python 3.11 or newer, or set PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; $(PYTHON) is older. Set PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) (once, about a minute)"
	@$(PIP) install --no-compile -e .
	@touch $@

# torch first and by pip: what needs torch is then content with it, and nothing pulls gigabytes of CUDA.
$(DEV): $(READY)
	@echo "Adding what the tests need (once)"
	@$(BIN)/python -c 'import torch' 2>/dev/null \
		|| $(PIP) install 'torch==2.13.0+cpu' $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) 2>/dev/null \
		|| $(PIP) install 'torch==2.13.0'
	@$(PIP) install -e '.[dev]'
	@touch $@

demo: $(READY)
	@$(BIN)/kraq demo

# Another model, or a file that is here already: make demo-lm LM=gguf/models/m.gguf
LM ?=
demo-lm: $(READY)
	@$(BIN)/python -c 'import xllamacpp' 2>/dev/null || $(PIP) install -e '.[local]'
	@$(if $(LM),,$(BIN)/kraq lm get qwen2.5-coder-0.5b && $(BIN)/kraq lm get smollm2-135m)
	@$(BIN)/kraq demo --first 2 $(if $(LM),--lm $(LM),--config examples/local-models.toml) --out demo-lm.kraq

$(DEFAULT): pyproject.toml
	@test -x $(DEFAULT_VENV)/bin/python || $(PYTHON) -m venv $(DEFAULT_VENV)
	@echo "Setting up $(DEFAULT_VENV) (once, about a minute)"
	@$(DEFAULT_VENV)/bin/python -m pip --disable-pip-version-check --quiet install --no-compile -e . pytest
	@touch $@

test-default: $(DEFAULT)
	@$(DEFAULT_VENV)/bin/python -m pytest --confcutdir tests/default_install -p no:cacheprovider tests/default_install

# What needs minutes or more than this machine has a command of its own; tests/long.txt lists what takes seconds.
ELSEWHERE := not slow and not vllm and not lm and not browser
# One worker more than two cores: while tests of servers and processes wait, others compute.
WORKERS := -n 3

test: $(DEV)
	@$(BIN)/python -m pytest -m "$(ELSEWHERE) and not long" $(WORKERS)

test-long: $(DEV)
	@$(BIN)/python -m pytest -m "$(ELSEWHERE) and long" $(WORKERS)

# make test draws the same examples in each run; here they are drawn anew.
test-explore: $(DEV)
	@$(BIN)/python -m pytest tests --hypothesis-profile=exploring -m hypothesis -n 2

test-benchmarks: $(DEV)
	@$(BIN)/python -m pytest tests/benchmarks -m slow

test-kill: $(DEV)
	@$(BIN)/python -m pytest tests/killed -m slow -s

golden: $(DEV)
	@$(BIN)/python scripts/golden.py

golden-check: $(DEV)
	@$(BIN)/python scripts/golden.py --check

scope: $(DEV)
	@KRAQ_CANARIES=10000 $(BIN)/python -m pytest tests/scope tests/asset/test_scope.py tests/indexing/view -s

test-lm: $(DEV)
	@$(BIN)/kraq lm get smollm2-135m
	@$(BIN)/python -m pytest tests/lm -m lm -s

test-vllm: $(DEV)
	@PYTHON=$(PYTHON) scripts/vllm_env.sh
	@$(BIN)/python -m pytest -m vllm tests/vllm

# Debian: apt-get install chromium
test-browser: $(DEV)
	@$(BIN)/python -m pytest tests/apps/serve -m browser -rs

# Types and the default install each take one core, the tests take two.
check: lint
	@$(MAKE) --no-print-directory -j2 types test-default
	@$(MAKE) --no-print-directory test

# The tests of make check follow every link of docs/; this builds the site too, with packages of its own.
docs: $(READY)
	@$(BIN)/python -c 'import material, mkdocstrings, mkdocs_jupyter' 2>/dev/null || $(PIP) install -e '.[docs]'
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "Open build/site/index.html"

docs-test: $(DEV)
	@$(BIN)/python -m pytest tests/test_tutorials.py -m slow

format: $(DEV)
	@$(BIN)/ruff format $(SOURCES)
	@$(BIN)/ruff check --fix $(SOURCES)

lint: $(DEV)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/ruff check $(SOURCES)

types: $(DEV)
	@$(BIN)/mypy

clean:
	rm -rf $(VENV) $(DEFAULT_VENV) .pytest_cache .mypy_cache .ruff_cache build runs demo.kraq demo-lm.kraq
