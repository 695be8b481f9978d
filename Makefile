# Two commands do everything: `make run` and `make test`.
PYTHONS := python3.13 python3.12 python3.11 python3 python
PYTHON ?= $(shell for p in $(PYTHONS); do \
	if $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null; then echo $$p; break; fi; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
ARGS ?=
# tests/conftest.py says what runs in which process
PARALLEL ?= -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: run test check bench docs release-check screenshots lessons lock clean audit
.DEFAULT_GOAL := run

run: .venv/run.stamp
	$(BIN)/workbench app $(ARGS)

test: .venv/dev.stamp
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest $(PARALLEL) $(ARGS)

check: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A few costs beside a yardstick, appended to a history; `make bench ARGS=NAME` runs one of the benchmarks instead.
bench: .venv/dev.stamp
	$(BIN)/python -m benchmarks$(if $(ARGS), $(ARGS),.history)

screenshots: .venv/dev.stamp
	$(BIN)/python -m benchmarks.screenshots $(ARGS)

# The documentation site in build/site; warnings are errors, its notebook is executed.
docs: .venv/docs.stamp
	PLOTLY_RENDERER=png NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build $(ARGS)

# What must hold before a version is given away; on a fresh clone of what is committed.
release-check: .venv/docs.stamp
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m benchmarks.release $(ARGS)

# A real Label Studio in an environment of its own takes our tasks and gives them back. Its installation and its first
# start take some minutes each.
label-studio: .venv/dev.stamp
	@test -x .label-studio/bin/label-studio || { $(PYTHON) -m venv .label-studio && \
	  .label-studio/bin/pip --disable-pip-version-check install --quiet label-studio==1.23.2; }
	WORKBENCH_LABEL_STUDIO=$(CURDIR)/.label-studio/bin/label-studio \
	  $(BIN)/python -m pytest -m slow tests/exchange/test_label_studio.py $(ARGS)

# What the lessons show when they open; run it again when their computation changes.
lessons: .venv/dev.stamp
	$(BIN)/python -m workbench.app.lessons data/lessons.npz

# Known weaknesses of the pinned dependencies; asks a public database, so it needs the network.
audit: .venv/dev.stamp
	@$(BIN)/python -c 'import pip_audit' 2>/dev/null || { \
	  echo "make audit needs pip-audit, which is not installed: $(PIP) install pip-audit" >&2; exit 2; }
	@found=$$($(BIN)/python -m pip_audit --disable-pip --no-deps -r requirements.lock 2>&1); status=$$?; \
	missed=$$(echo "$$found" | grep -c 'could not be audited'); \
	echo "$$found" | grep -v 'could not be audited'; \
	if [ "$$missed" != 0 ]; then \
	  echo "$$missed pins could not be audited: the index of packages here does not know their weaknesses." >&2; exit 1; fi; \
	if [ "$$status" != 0 ]; then \
	  echo "Weak dependencies are listed above; if there is no list, the database could not be reached." >&2; exit 1; fi

# Writes exact pins of everything the extras pull in; names and versions only.
lock: .venv/dev.stamp
	$(PIP) freeze --all --exclude-editable | grep -v '^workbench\|^pip=\|^wheel=' | LC_ALL=C sort -f > requirements.lock

.venv/bin/python:
	@if [ -z "$(PYTHON)" ]; then \
	  echo "Workbench needs Python 3.11, 3.12 or 3.13 and found none of them on the PATH." >&2; \
	  echo "Install one, or name it: make $(firstword $(MAKECMDGOALS) run) PYTHON=/path/to/python3.12" >&2; exit 1; fi
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' || { \
	  echo "$(PYTHON) is not Python 3.11, 3.12 or 3.13." >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/run.stamp: pyproject.toml requirements.lock | .venv/bin/python
	$(PIP) install --quiet -c requirements.lock -e '.[maps,qr]'
	@touch $@

.venv/dev.stamp: pyproject.toml requirements.lock | .venv/bin/python
	$(PIP) install --quiet -c requirements.lock -e '.[dev]'
	@touch $@ .venv/run.stamp

.venv/docs.stamp: .venv/dev.stamp
	$(PIP) install --quiet -c requirements.lock -e '.[dev,docs]'
	@touch $@

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
