# Everything a person or a CI run needs; each target sets up what it uses.
PORT ?= 8501
PYTHON ?= python3
BIN := .venv/bin
# The matrices are small and many people share the machine: more threads only cost.
export OMP_NUM_THREADS ?= 1

PYTEST := $(BIN)/python -m pytest -q
# One process a core; the browser has a server of its own and comes after.
TOGETHER := -n auto --dist loadfile
ONCE := tests/ui/test_figures.py tests/ui/test_settings.py "tests/ui/test_pages.py::test_an_empty_folder_teaches"

.PHONY: help setup run test quick test-all chaos check bench clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

.venv/.run: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; name it with PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing packages into .venv (a few minutes the first time)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.venv/.dev: requirements-dev.txt .venv/.run
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

setup: .venv/.run  ## make .venv with what the app needs

run: .venv/.run  ## start the app on PORT (default 8501)
	@exec $(BIN)/python -m app --server.port $(PORT)

test: .venv/.dev browser  ## all tests but the slow ones and the chaos
	@$(PYTEST) $(TOGETHER) -m "not slow and not browser and not chaos"
	@$(PYTEST) -m "browser and not slow and not chaos"

quick: .venv/.dev  ## the 90-second part: the library, and every page once
	@$(PYTEST) $(TOGETHER) -m "not slow and not browser" tests/core tests/test_*.py $(ONCE)

test-all: .venv/.dev browser  ## every test
	@$(PYTEST) $(TOGETHER) -m "not browser and not chaos"
	@$(PYTEST) -m "browser and not chaos"
	@$(MAKE) --no-print-directory chaos

chaos: .venv/.dev browser  ## kill, race and fill: jobs on one machine and on several
	@$(PYTEST) -m chaos

check: .venv/.dev  ## lint, format, types, dead links
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@$(BIN)/python .ci/check_links.py

bench: .venv/.dev  ## measure the speed claims, as ratios in one run
	@PYTHONPATH=. $(BIN)/python bench/training_step.py
	@PYTHONPATH=. $(BIN)/python bench/ablation.py
	@PYTHONPATH=. $(BIN)/python bench/microgpt.py
	@PYTHONPATH=. $(BIN)/python bench/app_start.py
	@PYTHONPATH=. $(BIN)/python bench/pages.py
	@PYTHONPATH=. $(BIN)/python bench/workers.py

.PHONY: browser
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	  || command -v google-chrome >/dev/null || .ci/install_chromium

clean:  ## remove what the targets made
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis
