# Two commands do everything: `make run` and `make test`.
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
PYTHONS := python3.13 python3.12 python3.11 python3 python
PYTHON ?= $(shell for p in $(PYTHONS); do if $$p -c '$(SUPPORTED)' 2>/dev/null; then echo $$p; break; fi; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
ARGS ?=
# Three processes on two cores, because two of them wait for browsers; tests/conftest.py says what runs in which
PARALLEL ?= -n 3 --dist loadfile --no-loadscope-reorder

# What to do when a step of the installation fails, in words; what failed stands above.
NOT_INSTALLED = { echo "The dependencies could not be installed; the lines above say why." >&2; \
	echo "If they speak of connections or retries and you are behind a proxy: HTTPS_PROXY=http://proxy:port make $(firstword $(MAKECMDGOALS) run)." >&2; \
	echo "Without a network: a folder with the wheels of the lock, PIP_NO_INDEX=1 PIP_FIND_LINKS=folder." >&2; exit 1; }
# A Python that has gone takes its packages with it, and a checkout that has moved is not where they look for it.
$(shell [ ! -d .venv ] || $(BIN)/python -c '' 2>/dev/null || rm -f .venv/*.stamp; \
	for s in .venv/*.stamp; do [ ! -s "$$s" ] || [ "$$(cat "$$s")" = "$(CURDIR)" ] || rm -f "$$s"; done)

# What `make coverage` counts: tests of some folders, lines of the same folders of the package
COVERED ?= policies metrics store sessions

.PHONY: run test check coverage bench docs release-check screenshots lessons lock clean audit
.DEFAULT_GOAL := run

run: .venv/run.stamp
	$(BIN)/python -m workbench app $(ARGS)

test: .venv/dev.stamp
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest $(PARALLEL) $(ARGS)

check: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy

# Which lines the fast tests of some folders reach, the poorest module first; in one process, so that none is missed.
comma := ,
empty :=
coverage: .venv/dev.stamp
	$(BIN)/python -m coverage run --source=$(subst $(empty) $(empty),$(comma),$(COVERED:%=workbench/%)) -m pytest -q $(COVERED:%=tests/%) $(ARGS)
	$(BIN)/python -m coverage report --sort=cover --skip-covered

# `make bench ARGS=NAME` runs one of the benchmarks; alone it lists them.
bench: .venv/dev.stamp
	$(BIN)/python -m benchmarks $(ARGS)

screenshots: .venv/dev.stamp
	$(BIN)/python -m benchmarks.screenshots $(ARGS)

# The documentation site in build/site; warnings are errors, its notebook is executed.
docs: .venv/dev.stamp
	PLOTLY_RENDERER=png NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build $(ARGS)

# What must hold before a version is given away; on a fresh clone of what is committed.
release-check: .venv/dev.stamp
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m benchmarks.release $(ARGS)

# A real Label Studio in an environment of its own takes our tasks and gives them back. Its installation and its first
# start take some minutes each.
label-studio: .venv/dev.stamp
	@test -x .label-studio/bin/label-studio || { $(PYTHON) -m venv .label-studio && \
	  .label-studio/bin/pip --disable-pip-version-check install --quiet label-studio==1.23.2; }
	WORKBENCH_LABEL_STUDIO=$(CURDIR)/.label-studio/bin/label-studio \
	  $(BIN)/python -m pytest -m slow tests/exchange/test_label_studio.py $(ARGS)

# What the lessons show when they open, and the examples of empty pages; run it again when their computation changes.
lessons: .venv/dev.stamp
	$(BIN)/python -m benchmarks.lessons data/lessons.npz
	$(BIN)/python -m benchmarks.examples

# Known weaknesses of the pinned dependencies; asks a public database, so it needs the network.
audit: .venv/dev.stamp
	@$(BIN)/python -c 'import pip_audit' 2>/dev/null || { \
	  echo "make audit needs pip-audit, which is not installed: $(PIP) install pip-audit" >&2; exit 2; }
	@found=$$($(BIN)/python -m pip_audit --disable-pip --no-deps -r requirements-dev.lock 2>&1); status=$$?; \
	missed=$$(echo "$$found" | grep -c 'could not be audited'); \
	echo "$$found" | grep -v 'could not be audited'; \
	if [ "$$missed" != 0 ]; then \
	  echo "$$missed pins could not be audited: the index of packages here does not know their weaknesses." >&2; exit 1; fi; \
	if [ "$$status" != 0 ]; then \
	  echo "Weak dependencies are listed above; if there is no list, the database could not be reached." >&2; exit 1; fi

# Exact pins with wheels for every platform and Python that pyproject.toml allows; names, versions and markers only.
# `make lock ARGS=--upgrade` takes newer versions; without it what stands there stays.
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --only-binary :all: --no-header --no-annotate $(ARGS) pyproject.toml
INSTALLED = cluster gibbs maps qr
lock: .venv/dev.stamp
	$(LOCK) $(addprefix --extra ,$(INSTALLED) login postgresql dev docs) -o requirements-dev.lock
	$(LOCK) -c requirements-dev.lock $(addprefix --extra ,$(INSTALLED)) -o requirements.lock

.venv/bin/python:
	@if [ -z "$(PYTHON)" ]; then \
	  echo "Workbench needs Python 3.11, 3.12 or 3.13 and found none of them on the PATH." >&2; \
	  echo "Install one, or name it: make $(firstword $(MAKECMDGOALS) run) PYTHON=/path/to/python3.12" >&2; exit 1; fi
	@$(PYTHON) -c '$(SUPPORTED)' || { \
	  echo "$(PYTHON) is not Python 3.11, 3.12 or 3.13." >&2; exit 1; }
	@[ -w . ] || { \
	  echo "This folder cannot be written to, and the environment of Workbench would lie in it: $(CURDIR)/.venv" >&2; \
	  echo "Copy or clone it to a place of your own, and say make $(firstword $(MAKECMDGOALS) run) there." >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv || { rm -rf .venv; exit 1; }

SOUND = $(BIN)/python -c '$(SUPPORTED)' || { \
	echo "The folder .venv holds $$($(BIN)/python -V 2>&1), not Python 3.11, 3.12 or 3.13." >&2; \
	echo "Remove it (make clean) and say make $(firstword $(MAKECMDGOALS) run) again." >&2; exit 1; }

# The lock is the whole list: nothing is resolved, so what a package asks for by another name elsewhere
# (GPflow's tensorflow-macos on Apple silicon) is not looked for.
INSTALL = $(PIP) install --quiet --no-deps -e . -r

.venv/run.stamp: pyproject.toml requirements.lock | .venv/bin/python
	@$(SOUND)
	$(INSTALL) requirements.lock || $(NOT_INSTALLED)
	@echo "$(CURDIR)" > $@

.venv/dev.stamp: pyproject.toml requirements-dev.lock | .venv/bin/python
	@$(SOUND)
	$(INSTALL) requirements-dev.lock || $(NOT_INSTALLED)
	@echo "$(CURDIR)" | tee $@ > .venv/run.stamp

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
