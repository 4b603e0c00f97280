SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo archives test test-parts test-whole unit check soak mutants test-rck test-pyiceberg lock clean bench-append bench-upsert bench-mirror bench-sql prerequisites

help:            ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 16

prerequisites:
	@PYTHON=$(PYTHON) scripts/prerequisites.sh

setup: prerequisites .venv/.ready .jars/.ready    ## install Python packages into .venv and jars into .jars

.venv/.ready: requirements.lock pyproject.toml | prerequisites
	@echo "installing Python packages into .venv"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.jars/.ready: jars/pom.xml jars/spark/pom.xml jars/broker/pom.xml jars/s3proxy/pom.xml | prerequisites
	@echo "fetching jars into .jars"
	@rm -rf .jars
	@mvn --quiet --batch-mode --strict-checksums --file jars/pom.xml -Dheadgate.jars=$(CURDIR)/.jars process-resources
	@touch $@

demo: setup      ## start everything, generate orders, and query the tables with three engines
	@$(BIN)/python scripts/demo.py

archives: setup .jars/.archives    ## have JVMs write down their classes: each starts in half the work afterwards

.jars/.archives: .jars/.ready .venv/.ready
	@$(BIN)/python scripts/archives.py
	@touch $@

test: setup check archives    ## everything that CI runs: checks, unit, integration, end to end, faults
	@$(BIN)/python -m pytest --numprocesses=2 tests/unit
	@$(MAKE) --no-print-directory --jobs=2 test-parts test-whole

# Two lanes side by side: much of either is waiting for processes to start.
test-parts:
	@$(BIN)/python -m pytest tests/integration

test-whole:
	@$(BIN)/python -m pytest tests/e2e tests/faults

unit: setup      ## the tests that need neither Spark nor a network
	@$(BIN)/python -m pytest --numprocesses=2 tests/unit

check: setup     ## ruff and mypy
	@$(BIN)/ruff check src tests bench scripts
	@$(BIN)/ruff format --check src tests bench scripts
	@$(BIN)/mypy

soak: setup archives    ## the drills of the test suite at their full counts
	@HEADGATE_SOAK=1 $(BIN)/python -m pytest tests/faults tests/integration tests/e2e -m soak

mutants: setup archives    ## break the most dangerous lines one at a time: each must fail its named test
	@$(BIN)/python -m scripts.mutants

test-rck: setup .rck/.ready    ## Iceberg's REST compatibility kit against our catalog; takes some minutes
	@$(BIN)/python -m scripts.rck .rck/rck

test-pyiceberg: setup .rck/pyiceberg/.ready    ## PyIceberg's own tests of catalogs against ours
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

bench-append: setup    ## rows per second of `table sync` beside plain Spark, as a ratio
	@$(BIN)/python -m bench.append

bench-upsert: setup    ## seconds for a batch of random keys on growing tables, beside MERGE INTO
	@$(BIN)/python -m bench.upsert

bench-mirror: setup    ## what the Delta log adds to a table's time and bytes
	@$(BIN)/python -m bench.mirror

bench-sql: setup       ## rows per second of statements beside the same by hand in PySpark
	@$(BIN)/python -m bench.sql

lock: setup      ## resolve requirements.lock anew from pyproject.toml
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --all-extras --upgrade \
		--no-annotate --no-header --no-emit-index-url --no-emit-find-links -o requirements.lock pyproject.toml

clean:           ## remove what setup and runs left behind, the embedded data included
	@rm -rf .venv .jars .rck .headgate .pytest_cache .mypy_cache .ruff_cache build dist
