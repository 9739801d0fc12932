# `make` lists the targets. Needs Python 3.11 or newer, make and git; everything else is set up inside the checkout.
PYTHON ?= python3
UV_VERSION := $(shell sed -n 's|^uv==\([0-9.]*\).*|\1|p' requirements.lock)

EVENTS ?= 5000000

# Airflow reads its own files in the encoding of the locale, and they are UTF-8.
export PYTHONUTF8 := 1
# The tests start many processes. Python keeps what it compiles for them, even if the environment says otherwise.
export PYTHONDONTWRITEBYTECODE :=

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
LOCK := requirements.lock
AZURITE := docker/azurite/node_modules/.installed
BROWSER := docker/browser/node_modules/.installed
CLASSES := .cache/classes.jsa
UV := $(BIN)/uv --no-config
# Temporary files, up to 1 GB, are in memory if 2 GB of it are free: otherwise, the tests wait for the disk.
IN_MEMORY := $(if $(TMPDIR),,$(shell df -kP /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 2000000 { print "TMPDIR=/dev/shm" }'))
# tests/lanes.py says which worker runs what: a file's tests share what they set up, and the longest files begin first.
PYTEST := $(IN_MEMORY) $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder --numprocesses
# Every test is in one of three lanes: services, spark or core.
SERVICES := airflow or browser or e2e or process or storage
SPARK := spark and not ($(SERVICES))
CORE := not (spark or $(SERVICES))
# make versions: the folder of an environment with other versions, such as .cache/versions/python3.12-pyspark-4.0.5
empty :=
OTHER := .cache/versions/$(notdir $(PYTHON))-$(subst $(empty) ,-,$(subst ==,-,$(strip $(WITH))))
LINT := $(BIN)/ruff check . && $(BIN)/ruff format --check --quiet . && $(BIN)/mypy && \
	$(BIN)/lint-imports --no-cache --no-logo
WITH_JAVA := JAVA_HOME=$$(PYTHONPATH=docker $(BIN)/python -m embedded.java)

.DEFAULT_GOAL := help
.PHONY: help backfill up unit test core spark services dist site deep check airflow versions format bench guard pictures performance chaos compose lock azurite browser version clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

backfill: $(INSTALLED) $(AZURITE) version ## Backfill six sample hours through a real Airflow, Spark and Azurite, and show the result
	@PYTHONPATH=docker $(BIN)/python -m embedded.main backfill

up: $(INSTALLED) $(AZURITE) version ## Leave Airflow and Azurite up with the sample hours; Ctrl-C stops them
	@PYTHONPATH=docker $(BIN)/python -m embedded.main up

unit: $(INSTALLED) version ## Test without Spark, services and processes, with fewer random examples; a minute
	@HYPOTHESIS_PROFILE=quick $(PYTEST) 2 -m unit

# Some tests wait for services: two cores are busy with three processes.
test: $(INSTALLED) version ## Check and run every test; eleven minutes
	@$(MAKE) --no-print-directory --jobs=2 $(CLASSES) $(AZURITE) $(BROWSER)
	@($(LINT)) & \
	$(WITH_JAVA) $(PYTEST) 3; tests=$$?; \
	wait $$! || { echo "make check fails: its output is above"; exit 1; }; exit $$tests

core: $(INSTALLED) version ## Run the tests that need neither Spark nor services; three minutes
	@$(PYTEST) 2 -m "$(CORE)" $(TESTS)

spark: $(CLASSES) version ## Run the tests that need Spark alone
	@$(WITH_JAVA) $(PYTEST) 2 -m "$(SPARK)" $(TESTS)

services: $(CLASSES) $(AZURITE) $(BROWSER) version ## Run the tests that start services or processes, or load Airflow
	@$(WITH_JAVA) $(PYTEST) 2 -m "$(SERVICES)" $(TESTS)

airflow: $(CLASSES) $(AZURITE) version ## Run the tests that load Airflow
	@$(WITH_JAVA) $(PYTEST) 2 -m "airflow and not (browser or e2e)" $(TESTS)

versions: $(OTHER)/requirements.lock ## Run a lane with other versions, such as LANE=spark WITH=pyspark==4.0.5
	@$(MAKE) --no-print-directory $(LANE) VENV=$(OTHER) LOCK=$(OTHER)/requirements.lock CLASSES=

dist: $(INSTALLED) version ## Build the wheel and the sdist, the constraints for Airflow and the bill of materials
	@rm -rf dist
	@$(UV) build --quiet --no-build-isolation --python $(BIN)/python
	@$(BIN)/python .github/release_files.py dist "$$($(BIN)/python -c 'import recapture; print(recapture.__version__)')"

site: $(INSTALLED) version ## Build the pages as a site in .cache/site, with those of earlier releases
	@$(BIN)/python docs/site/build.py .cache/site
	@echo "open .cache/site/index.html"

deep: $(CLASSES) $(AZURITE) version ## Test the properties with many more examples, and all queries as a run compiles them
	@HYPOTHESIS_PROFILE=deep $(PYTEST) 2 -m "property and unit"
	@$(WITH_JAVA) HYPOTHESIS_PROFILE=deep $(PYTEST) 2 -m "property and not unit or $(SPARK)"

check: $(INSTALLED) version ## Lint; check formatting, types and the direction of imports; a minute
	@$(LINT)

format: $(INSTALLED) ## Format the code, and mend what the linter can
	@$(BIN)/ruff check --fix --quiet --exit-zero .
	@$(BIN)/ruff format --quiet .

bench: $(INSTALLED) version ## Compare with plain Spark and the floor, in events per second; EVENTS=5000000
	@$(WITH_JAVA) $(BIN)/python -m benchmarks.run $(EVENTS)

guard: $(INSTALLED) version ## Fail if a stage has become slower; two minutes
	@$(WITH_JAVA) $(BIN)/python -m benchmarks.guard

pictures: $(INSTALLED) $(BROWSER) version ## Make the pictures of the README from the sample world
	@PYTHONPATH=docker:spark_jobs:. $(BIN)/python -m tests.pictures

performance: $(INSTALLED) version ## Measure every program of docs/performance.md; two hours
	@$(WITH_JAVA) $(BIN)/python -m benchmarks.performance

chaos: $(INSTALLED) $(AZURITE) version ## Fail the storage, kill the command and interleave publishers; half an hour
	@PYTHONPATH=docker:. $(BIN)/python -m tests.chaos $(CHAOS)

compose: $(INSTALLED) $(AZURITE) version ## Build the image and start its services without Docker; root and Linux only
	@PYTHONPATH=docker:. $(BIN)/python -m tests.compose .cache/compose

lock: $(BIN)/uv ## Resolve setup.cfg into requirements.lock anew
	@$(UV) pip compile --quiet --universal --generate-hashes --python-version 3.11 --all-extras \
		--custom-compile-command "make lock" --output-file requirements.lock setup.cfg

azurite: $(AZURITE) ## Install the storage emulator

browser: $(BROWSER) ## Install the browser of the tests

version: $(INSTALLED) # The version is that of the commit: write it down, as a run's digest covers it.
	@$(BIN)/python -m setuptools_scm --force-write-version-files >/dev/null

$(CLASSES): $(INSTALLED)
	@echo "Archiving the classes of Spark, from which the tests start faster …"
	@$(WITH_JAVA) $(BIN)/python -m tests.shared_classes

$(OTHER)/requirements.lock: .github/resolve.py requirements.lock setup.cfg | $(BIN)/uv
	$(BIN)/python .github/resolve.py $@ $(WITH)

clean: ## Remove what the other targets made, the environment included
	rm -rf $(VENV) .cache dist docker/azurite/node_modules docker/browser/node_modules *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/uv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv==$(UV_VERSION)

$(INSTALLED): $(BIN)/uv $(LOCK) setup.cfg pyproject.toml
	$(UV) pip sync --python $(BIN)/python --require-hashes $(LOCK)
	$(UV) pip install --python $(BIN)/python --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(AZURITE) $(BROWSER): docker/%/node_modules/.installed: docker/%/package-lock.json $(INSTALLED)
	PYTHONPATH=docker $(BIN)/python -m embedded.node docker/$*
	@touch $@
