# Every target sets up what it needs in .venv; nothing else is touched.
PYTHON ?= python3
ifeq ($(OS),Windows_NT)
BIN := .venv/Scripts
else
BIN := .venv/bin
endif
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help walk lab book book-jupyter class grade dev lint fix one test soak conformance removals mutants record bench clean
help:
	@echo "make walk   a real matrix product through the kernel, every bit checked"
	@echo "make lab    JupyterLab with the notebooks, from 00"
	@echo "make book   the site, into book/_build/html; needs no network once set up"
	@echo "make class  the notebooks without solutions, into class/student"
	@echo "make grade  FILES=folder of answered notebooks; scores as JSON"
	@echo "make test   formatting, types, import rules and all tests"
	@echo "make dev    set up .venv with the tools that a change needs"
	@echo "make lint   formatting, types and import rules: what make test runs first"
	@echo "make fix    put right what ruff can put right"
	@echo "make one    T=tests/numerics/test_formats.py::NAME; one test, file or folder"
	@echo "make soak   the long tests: thousands of seeds, shapes and bit flips"
	@echo "make conformance  other people's kernels on the emulated SM; rewrites the table"
	@echo "make removals  leave out each synchronisation operation; rewrites the table"
	@echo "make mutants  random changes of the rules, each against its tests; goes on where it was"
	@echo "make record  what CUTLASS and ptxas say, for the errata; rewrites the record"
	@echo "make bench  speed, beside what you would use instead"
	@echo "make clean  remove .venv and caches"

.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  (echo "fp4ref needs Python 3.11 or newer; say make PYTHON=python3.12" && exit 1)
	$(PYTHON) -m venv .venv
	@touch $@

.venv/core: .venv/made pyproject.toml
	@echo "setting up: installing fp4ref"
	@$(PIP) install --editable .
	@touch $@

.venv/lab: .venv/core pyproject.toml
	@echo "setting up: installing JupyterLab"
	@$(PIP) install --editable '.[lab]'
	@touch $@

.venv/book: .venv/core pyproject.toml
	@echo "setting up: installing the book's tools"
	@$(PIP) install --editable '.[book]'
	@touch $@

.venv/dev: .venv/core pyproject.toml
	@echo "setting up: installing the test tools"
	@$(PIP) install --editable '.[dev,cutlass,cuda]'
	@touch $@

walk: .venv/core
	@$(BIN)/fp4ref walk

# No question about news, and no request for them, stands before the first page.
LAB := jupyterlab --LabApp.app_settings_dir=notebooks/settings

# The class edition: Run All answers nothing. What was answered stays from day to day.
lab: .venv/lab
	@$(BIN)/python -m fp4ref.lessons.classroom student --keep
	$(BIN)/python -m $(LAB) class/student/00_start_here.ipynb

book: .venv/book
	@echo "building the site; its notebooks run, about a minute the first time"
	@$(BIN)/sphinx-build -W --keep-going -n -q -d book/_build/doctrees -b html book book/_build/html
	@echo "open book/_build/html/index.html"

# Jupyter Book's own engine on the same sources; needs Node.js.
book-jupyter: .venv/book
	@$(PIP) install 'jupyter-book>=2.1,<3'
	$(BIN)/python book/check_jupyter_book.py --execute

class: .venv/lab
	@$(BIN)/python -m fp4ref.lessons.classroom student $(if $(FORCE),--force)

FILES ?= class/student
grade: .venv/lab
	@$(BIN)/python -m fp4ref.lessons.classroom grade $(FILES) --json

dev: .venv/dev
	@echo "the tools are in .venv; CONTRIBUTING.md says what to do with them"

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Without T nothing is set up: the answer comes at once.
one: $(if $(T),.venv/dev)
	@test -n "$(T)" || { echo "say which: make one T=tests/numerics, or T=FILE::NAME"; exit 2; }
	$(BIN)/python -m pytest "$(T)"

# Two workers on two cores: more threads of BLAS would wait for each other.
test soak: export OPENBLAS_NUM_THREADS = 1

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadgroup

# SCHEDULER=tcp://host:8786 gives them to a Dask cluster in pieces.
soak: .venv/dev
	$(if $(SCHEDULER),$(BIN)/python tests/soak_pieces.py --scheduler $(SCHEDULER),$(BIN)/python -m pytest -n 2 -m soak)

# Triton is large and needed by nothing else.
conformance: .venv/dev
	@$(PIP) install 'triton>=3.9,<3.10'
	$(BIN)/python conformance/run.py
	$(BIN)/python conformance/triton_table.py
	$(BIN)/python conformance/triton_table.py --mutants
	$(BIN)/python conformance/record/epilogues.py
	$(BIN)/python conformance/record/callback_order.py

removals: .venv/dev
	$(BIN)/python -m fp4ref.evidence.removals

# Only a new draw needs Cosmic Ray: add --draw SEED.
mutants: export OPENBLAS_NUM_THREADS = 1
mutants: .venv/dev
	@$(PIP) install 'cosmic-ray>=8.7,<9'
	$(BIN)/python tests/mutants/run.py $(MUTANTS)

record: .venv/dev
	$(BIN)/python conformance/record/make.py

bench: .venv/core
	@$(BIN)/fp4ref bench
	@$(BIN)/fp4ref bench --threads 1 --threads 2
	$(BIN)/python benchmarks/bench_emulator.py
	$(BIN)/python benchmarks/bench_player.py

clean:
	rm -rf .venv build dist book/_build book/_generated book/notebooks .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
