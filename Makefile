# CI and people call these words and no other. `release` is the optimised build behind bench and demo.
.PHONY: setup build release test core check bench docs demo all
.DEFAULT_GOAL := all
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell scripts/find-python)
NEXTEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo nextest run --status-level fail --final-status-level fail || echo test --lib)

# What the virtual environment holds is what pyproject.toml says; it is made again when that changes.
$(VENV)/.ready: pyproject.toml scripts/make-venv
	scripts/make-venv "$(PYTHON)" $(VENV)
	touch $@

setup: $(VENV)/.ready
	@command -v cargo >/dev/null || { echo "testgrad needs Rust: install it with rustup or your distribution"; exit 1; }

# A debug build in place, with the stub written beside it; CI fails when the committed stub is another.
build: setup
	rm -f python/testgrad/*.so
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --quiet --generate-stubs
	@if git rev-parse --git-dir >/dev/null 2>&1 && ! git diff --exit-code --stat -- python/testgrad/_testgrad.pyi; then \
		echo "the stub has changed: commit python/testgrad/_testgrad.pyi"; [ -z "$${CI:-}" ]; fi

# The same, optimised; what benchmarks and the demo use.
release: setup
	rm -f python/testgrad/*.so
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --quiet --release --generate-stubs

core:
	cargo $(NEXTEST)

test: build core
	$(BIN)/python -m pytest

check: build
	cargo fmt --check
	cargo clippy --quiet --all-targets -- -D warnings
	cargo clippy --quiet --all-targets --features python -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest testgrad._testgrad

bench: release
	$(BIN)/python benches/bench_core.py
	$(BIN)/python benches/bench_strategies.py --quick
	$(BIN)/python benches/bench_engine.py

docs: build
	$(BIN)/python docs/build.py

demo: release
	$(BIN)/testgrad demo

all: build check test
