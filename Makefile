# Everything a newcomer needs: `make demo`, `make test`. Set-up is done by both and quick the second time.

PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,$(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
BIN := .venv/bin
STAMP := .venv/installed
PACKAGES := problems evaluator state agents daemon evidence console
# The measuring tests run alone; the others share the cores.
TESTS := $(BIN)/pytest -q

.PHONY: demo test test-all setup sandbox lint types layers snapshots lock clean

demo: setup sandbox
	@$(BIN)/ratchet demo

test: setup sandbox lint types layers
	$(TESTS) -n 2 -m "not slow and not exclusive and not gpu"
	$(TESTS) -m "exclusive and not slow and not gpu"

test-all: setup sandbox lint types layers
	$(TESTS) -n 2 -m "not exclusive"
	$(TESTS) -m "exclusive"

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Ratchet needs Python 3.11 or newer (python3 with venv and headers)"; exit 3; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { echo "python3 cannot make an environment: apt-get install python3-venv python3-dev"; exit 3; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements.lock
	@$(BIN)/python -m compileall -q -j 0 .venv/lib >/dev/null || true  # on all cores, where pip takes one
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

# Candidates only ever run inside bubblewrap; without it nothing is evaluated.
sandbox:
	@command -v bwrap >/dev/null || { \
	  if [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq bubblewrap >/dev/null; \
	  elif sudo -n true 2>/dev/null; then sudo apt-get update -qq && sudo apt-get install -y -qq bubblewrap >/dev/null; fi; }
	@command -v bwrap >/dev/null || { echo "bubblewrap is missing; install it with:  sudo apt-get install bubblewrap"; exit 3; }

lint: setup
	$(BIN)/ruff check $(PACKAGES) tests
	$(BIN)/ruff format --check $(PACKAGES) tests

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

snapshots: setup
	$(TESTS) tests/console --snapshot-update

lock: setup
	$(BIN)/python -m pip freeze --all --exclude kernel-ratchet --exclude pip

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
