SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
# Bytecode of our modules is written once: hundreds of short processes read it.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help console check-console setup test-setup demo archives test integration unit-coverage lane-of-sql lane-of-parts lane-of-stacks lane-of-kills e2e faults one services services-stop unit check fix soak mutants test-times test-rck test-pyiceberg lock clean prerequisites console-test screenshots
.PHONY: bench-append bench-console bench-datagen bench-doors bench-export bench-history bench-latency bench-live bench-mirror bench-query bench-sql bench-upsert

help:            ## what can be made
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 16

prerequisites:
	@PYTHON=$(PYTHON) scripts/prerequisites.sh

setup: prerequisites .venv/.ready .jars/.ready console    ## what the demo needs: Python packages into .venv, jars into .jars, the console

test-setup: setup .venv/.tests-ready .jars/.tests-ready    ## what checks, tests and benchmarks need beside that

.venv/.ready: requirements.lock pyproject.toml | prerequisites
	@$(PYTHON) scripts/setup.py packages demo
	@touch $@

.jars/.ready: jars/pom.xml jars/spark/pom.xml jars/broker/pom.xml | prerequisites
	@$(PYTHON) scripts/setup.py jars demo
	@touch $@

# Node comes with the Python packages. The built files are a part of the package, and not in git.
CONSOLE := src/headgate/server/console/index.html
CONSOLE_SOURCES := $(shell find console -type f -not -path '*/node_modules/*' -not -path 'console/tests/*' \
	-not -name '*.md' -not -name 'openapi.json' -not -name 'schema.d.ts')

console: $(CONSOLE)    ## build the web pages, if their sources have changed

console/node_modules/.ready: console/package.json console/package-lock.json console/.npmrc .venv/.ready | prerequisites
	@$(PYTHON) scripts/setup.py console packages
	@touch $@

$(CONSOLE): $(CONSOLE_SOURCES) console/node_modules/.ready
	@$(PYTHON) scripts/setup.py console build
	@touch $@

.venv/.tests-ready: requirements-dev.lock pyproject.toml | .venv/.ready
	@$(PYTHON) scripts/setup.py packages tests
	@touch $@

.jars/.tests-ready: jars/pom.xml jars/s3proxy/pom.xml jars/postgres/pom.xml | .jars/.ready
	@$(PYTHON) scripts/setup.py jars tests
	@touch $@

demo: setup      ## start everything, run the orders world, and query its tables with three engines
	@$(BIN)/headgate demo orders

archives: test-setup .jars/.archives    ## have JVMs write down their classes: each starts in half the work afterwards

.jars/.archives: .jars/.ready .venv/.tests-ready
	@$(BIN)/python scripts/archives.py
	@touch $@

# `unit-coverage` says how much of the code the unit tests reach, and takes a quarter more.
UNIT ?= unit

test: test-setup archives    ## everything that CI runs: checks, unit, integration, end to end, faults
	@$(MAKE) --no-print-directory --jobs=2 check $(UNIT)
	@$(MAKE) --no-print-directory --jobs=4 lane-of-sql lane-of-parts lane-of-stacks lane-of-kills
	@$(MAKE) --no-print-directory console-test

unit-coverage: test-setup
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run -m pytest --numprocesses=2 tests/unit
	@$(BIN)/python -m coverage combine --quiet
	@echo "coverage: the unit tests reach $$($(BIN)/python -m coverage report --format=total) % of the lines in src"

# Four lanes side by side: much of each is waiting, for processes to start and for records to come through. What
# the last one does alone is time in which a core idles, so each has about as many processor seconds as the others
# (`make test-times` tells), and two files that start all of Headgate for themselves are where there is room. What
# `make services` keeps is for `make one`: these start everything themselves, as CI does.
test integration e2e faults console-test lane-of-sql lane-of-parts lane-of-stacks lane-of-kills soak: export TEST_WARM :=

integration: test-setup    ## one part each with the real thing it talks to
	@$(BIN)/python -m pytest tests/integration

LANE_OF_SQL := $(addprefix tests/integration/,sql statements maintain) tests/e2e/test_access.py
LANE_OF_KILLS := tests/faults tests/e2e/test_restart.py

lane-of-sql: test-setup
	@$(BIN)/python -m pytest $(LANE_OF_SQL)

lane-of-parts: test-setup
	@$(BIN)/python -m pytest tests/integration $(addprefix --ignore=,$(LANE_OF_SQL))

lane-of-stacks: test-setup
	@$(BIN)/python -m pytest tests/e2e $(addprefix --ignore=,$(LANE_OF_SQL) $(LANE_OF_KILLS))

lane-of-kills: test-setup
	@$(BIN)/python -m pytest $(LANE_OF_KILLS)

e2e: test-setup       ## `headgate up` and the commands a user types
	@$(BIN)/python -m pytest tests/e2e

# After the lanes: what a user waits for in a browser is timed, and should not wait for a core as well.
console-test: test-setup console    ## the web pages in a real browser, as a user works in them
	@$(BIN)/python -m pytest -rs tests/console

screenshots: test-setup console    ## docs/images/*.png anew, from a Headgate that has something to show
	@$(BIN)/python -m scripts.screenshots

faults: test-setup    ## engines killed, replies lost, scratch wiped
	@$(BIN)/python -m pytest tests/faults

one: test-setup       ## the tests that T names (T=tests/integration/…), on the services that are kept, if there are any
	@test -n "$(T)" || { echo "Name a test: make one T=tests/integration/sql/test_rows.py::test_aggregates" >&2; exit 2; }
	@TEST_WARM=.services $(BIN)/python -m pytest $(T)

services: test-setup    ## keep a broker, a server and Spark's JVM up between runs of `make one`
	@$(BIN)/python -m tests.support.warm start .services

services-stop:   ## end what `make services` started
	@$(BIN)/python -m tests.support.warm stop .services

unit: test-setup      ## the tests that need neither Spark nor a network
	@$(BIN)/python -m pytest --numprocesses=2 tests/unit

check: test-setup check-console    ## ruff and mypy; ESLint, type check and Vitest of the console
	@$(BIN)/ruff check src tests bench scripts
	@$(BIN)/ruff format --check src tests bench scripts
	@$(BIN)/mypy

NPM := $(BIN)/python scripts/npm.py

# The console's types are made from the server's routes: one that changes fails here.
check-console: test-setup
	@$(BIN)/python -m scripts.openapi > console/src/api/openapi.json
	@$(NPM) run --silent types
	@$(NPM) run --silent typecheck
	@$(NPM) run --silent lint
	@$(NPM) run --silent test

fix: test-setup       ## ruff's format, and what ruff can mend by itself
	@$(BIN)/ruff format src tests bench scripts
	@$(BIN)/ruff check --fix src tests bench scripts

soak: test-setup archives    ## the drills of the test suite at their full counts
	@HEADGATE_SOAK=1 $(BIN)/python -m pytest tests/faults tests/integration tests/e2e -m soak

mutants: test-setup archives    ## break the most dangerous lines one at a time: each must fail its named test
	@$(BIN)/python -m scripts.mutants

TIMES ?= .test-times

test-times:      ## where the time goes: `make test` with a line per test, added up by folder, file and test
	@rm -rf $(TIMES)
	@TEST_TIMES=$(abspath $(TIMES)) $(MAKE) --no-print-directory test || true
	@$(BIN)/python -m tests.support.times $(TIMES)

test-rck: test-setup .rck/.ready    ## Iceberg's REST compatibility kit against our catalog; takes some minutes
	@$(BIN)/python -m scripts.rck .rck/rck

test-pyiceberg: test-setup .rck/pyiceberg/.ready    ## PyIceberg's own tests of catalogs against ours
	@$(BIN)/python -m scripts.pyiceberg_kit .rck/pyiceberg/source .rck/pyiceberg/packages

# With the same version as the package that we read with, and what its tests import.
.rck/pyiceberg/.ready: pyproject.toml | .rck/.ready
	@echo "fetching PyIceberg's tests into .rck/pyiceberg"
	@rm -rf .rck/pyiceberg
	@$(BIN)/python -m pip download --quiet --no-deps --no-binary :all: --no-build-isolation \
		--dest .rck/pyiceberg "pyiceberg==$$($(BIN)/python -c 'import pyiceberg; print(pyiceberg.__version__)')"
	@mkdir .rck/pyiceberg/source
	@tar -xzf .rck/pyiceberg/pyiceberg-*.tar.gz --strip-components=1 -C .rck/pyiceberg/source
	@$(BIN)/python -m pip install --quiet --no-deps --target .rck/pyiceberg/packages \
		pytest-lazy-fixtures==1.4.1 requests-mock==1.12.1 thrift==0.25.0
	@touch $@

.rck/.ready: jars/pom.xml jars/rck/pom.xml | prerequisites
	@echo "fetching the compatibility kit into .rck"
	@rm -rf .rck
	@mvn --quiet --batch-mode --strict-checksums --file jars/rck/pom.xml -Dheadgate.jars=$(CURDIR)/.rck process-resources
	@touch $@

bench-append: test-setup    ## rows per second of `table sync` beside plain Spark, as a ratio
	@$(BIN)/python -m bench.append

bench-history: test-setup   ## seconds for a page of a table's history, with 200 tables and 100,000 snapshots
	@$(BIN)/python -m bench.history

bench-upsert: test-setup    ## seconds for a batch of random keys on growing tables, beside MERGE INTO
	@$(BIN)/python -m bench.upsert

bench-mirror: test-setup    ## what the Delta log adds to a table's time and bytes
	@$(BIN)/python -m bench.mirror

bench-console: test-setup console    ## seconds until each page shows something: 500 topics, 200 tables, 100,000 snapshots
	@$(BIN)/python -m bench.console

bench-doors: test-setup     ## catalog loads and commits a second, alone and with doors, limits and the audit trail
	@$(BIN)/python -m bench.doors

bench-live: test-setup      ## the catalog's 99th percentile beside 20 live streams and without
	@$(BIN)/python -m bench.live

bench-query: test-setup     ## large results in flat memory, and seconds of a warm SELECT count(*)
	@$(BIN)/python -m bench.query

bench-export: test-setup    ## a file of many rows: memory beside that of fewer, and rows per second beside df.write.csv
	@$(BIN)/python -m bench.export

bench-datagen: test-setup   ## records per second of made-up data, encoded and produced, beside a bare producer
	@$(BIN)/python -m bench.datagen

bench-sql: test-setup       ## rows per second of statements beside the same by hand in PySpark
	@$(BIN)/python -m bench.sql

bench-latency: test-setup   ## seconds from a record to its result and its row, and the processor time of each process
	@$(BIN)/python -m bench.latency

# One resolution of everything; the demo's packages are a part of it, with the same versions.
COMPILE = $(BIN)/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 \
	--no-annotate --no-header --no-emit-index-url --no-emit-find-links

lock: setup      ## resolve requirements-dev.lock from pyproject.toml again, and requirements.lock as its part
	@$(BIN)/python -m pip install --quiet uv
	@$(COMPILE) --all-extras --upgrade -o requirements-dev.lock pyproject.toml
	@$(COMPILE) --extra build --extra readers --upgrade -c requirements-dev.lock -o requirements.lock pyproject.toml

clean:           ## remove what setup and runs left behind, the embedded data included
	@test ! -e .services/services.json || $(MAKE) --no-print-directory services-stop
	@rm -rf .coverage* .venv .jars .rck .services .test-times .headgate .pytest_cache .mypy_cache .ruff_cache build dist \
		console/node_modules console/src/api/openapi.json console/src/api/schema.d.ts $(dir $(CONSOLE))
