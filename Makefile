# Everything here sets up .venv first; it needs Python 3.11 or newer, and nothing else.

# The first of these that runs and is new enough. `make PYTHON=...` takes another, and makes an
# environment anew that has not got it; without PYTHON=... one that is there stays as it is.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/set-up
PEERS := .venv-peers
LIBRARIES := .venv-libraries .venv-rllib .venv-agilerl

# One known release, installed before the rest so that nothing else picks another. A torch that is
# already in .venv (for a GPU, say) is left alone.
TORCH := torch==2.13.0

# $(call other_python,FOLDER) is `other-python` if PYTHON=... was given and the environment there has
# another one, else nothing.
IDENTITY := import sys; print(sys.version, sys.base_prefix)
other_python = $(if $(filter-out file,$(origin PYTHON)),$(shell test ! -x $1/bin/python \
	|| test "$$($1/bin/python -c '$(IDENTITY)' 2>&1)" = "$$($(PYTHON) -c '$(IDENTITY)' 2>&1)" \
	|| echo other-python))

MINUTES ?= 5
ifndef RUN
RUN := runs/$(shell date +%Y%m%d-%H%M%S)
endif
WORKERS ?= auto
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 4

define check-python
@$(or $(PYTHON),false) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	|| { echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python' >&2; exit 1; }
endef

.DEFAULT_GOAL := help
.PHONY: help other-python setup train test test-interpreted test-bounds test-lowest test-libraries \
	bench bench-yardstick bench-peers lint format clean

help:
	@echo 'make train             set up, play against itself for MINUTES=$(MINUTES), measure the policy;'
	@echo '                       RUN=FOLDER for the run, a new one named by the time without it'
	@echo 'make test              set up, run all tests'
	@echo 'make test-interpreted  the same rules as plain Python, without what needs compiled speed'
	@echo 'make test-bounds       compiled with bounds checks'
	@echo 'make test-lowest       with the lowest allowed versions of what the library itself needs'
	@echo 'make test-libraries    with the other libraries, installed into $(LIBRARIES) (4 GB)'
	@echo 'make bench             plays a second on this machine'
	@echo 'make bench-yardstick   the engine against plain C; needs a C compiler'
	@echo 'make bench-peers       the library next to others, installed into $(PEERS) (2 GB);'
	@echo '                       figures and a chart go to RESULTS=$(RESULTS)'
	@echo 'make lint              ruff and mypy'
	@echo 'make format            let ruff rewrite what it can'
	@echo 'make clean             remove .venv, caches and builds; runs/ stays'

setup: $(SETUP)

$(SETUP): pyproject.toml $(call other_python,$(VENV))
	$(check-python)
	@$(if $(filter other-python,$^),echo '$(VENV) has another Python and is made anew'; rm -rf $(VENV))
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -c 'import torch' 2>/dev/null || $(BIN)/python -m pip install '$(TORCH)'
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

train: $(SETUP)
	$(BIN)/python -m training.selfplay --minutes $(MINUTES) --run $(RUN)
	$(BIN)/pisti evaluate $(RUN) counting greedy random --first-only
	@echo
	@echo 'To use what was installed: source $(VENV)/bin/activate'

test: $(SETUP)
	$(PYTEST)

test-interpreted: $(SETUP)
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m 'not compiled and not learning'

# A build without checks would be taken from a shared cache in silence.
test-bounds: $(SETUP)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/.pytest_cache/numba-bounds \
		$(PYTEST) -m 'not learning'

# NumPy, Numba, Gymnasium and the like at their lowest; what only training and tests need is as new as
# in `make test`.
test-lowest:
	$(check-python)
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet '$(TORCH)'
	sed -n '/^dependencies = \[/,/^\]/s/.*"\(.*\)>=\(.*\)",/\1==\2/p' pyproject.toml \
		> .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install --quiet --constraint .venv-lowest/lowest.txt -e '.[train,test]'
	.venv-lowest/bin/python -m pip freeze | grep -iE '^(numpy|numba|gymnasium|pettingzoo|safetensors|tqdm)='
	.venv-lowest/bin/python -m pytest -n $(WORKERS) --maxprocesses 4 -m 'not learning'

.SECONDEXPANSION:

# RLlib and AgileRL each want older releases of what the others want newer.
.venv-libraries/set-up: EXTRAS := openspiel,sb3,supersuit,tianshou,torchrl,video
.venv-rllib/set-up: EXTRAS := rllib
.venv-agilerl/set-up: EXTRAS := agilerl
$(LIBRARIES:=/set-up): pyproject.toml $$(call other_python,$$(@D))
	$(check-python)
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet '$(TORCH)'
	$(@D)/bin/python -m pip install --quiet --editable '.[$(EXTRAS),test]'
	@touch $@

test-libraries: $(LIBRARIES:=/set-up)
	.venv-libraries/bin/python -m pytest -n $(WORKERS) --maxprocesses 4 $(addprefix \
		tests/libraries/test_,by_name.py openspiel.py sb3_maskable_ppo.py supersuit.py tianshou_dqn.py torchrl_ppo.py video.py)
	.venv-rllib/bin/python -m pytest tests/libraries/test_rllib_ppo.py tests/libraries/test_ray.py
	.venv-agilerl/bin/python -m pytest -n $(WORKERS) --maxprocesses 4 tests/libraries/test_agilerl_ppo.py

bench: $(SETUP)
	$(BIN)/pisti bench

bench-yardstick: $(SETUP)
	$(BIN)/python -m benchmarks.yardstick

# What the library is compared with, in an environment of its own: nobody else needs it.
$(PEERS)/set-up: pyproject.toml $(call other_python,$(PEERS))
	$(check-python)
	$(PYTHON) -m venv --clear $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet '$(TORCH)'
	$(PEERS)/bin/python -m pip install --quiet --editable '.[train]' matplotlib 'pettingzoo[classic]' \
		rlcard open-spiel==2.0.2 pgx jax svgwrite stable-baselines3==2.9.2 sb3-contrib==2.9.2
	@touch $@

# Into a folder that git ignores; RESULTS=benchmarks renews the figures and the chart of README.
RESULTS ?= runs/bench-peers

bench-peers: $(PEERS)/set-up
	@mkdir -p '$(RESULTS)'
	$(PEERS)/bin/python -m benchmarks.peers --json '$(RESULTS)/peers.json' --chart '$(RESULTS)/peers.svg'

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(SETUP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .venv-lowest $(LIBRARIES) $(PEERS) build dist .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
