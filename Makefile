# Every verb is one line here; the work is in scripts/ and CMakeLists.txt.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON := /usr/bin/python3

.PHONY: help
help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run build test check format bench fuzz doc test-vm asan tsan coverage clean
run: build ## install what is needed, build, look at this host, take the tour, and serve until Ctrl-C
	@build/caisson doctor
	@scripts/tour.sh

build: ## build/caisson with release flags
	@scripts/install.sh build
	@scripts/build.sh release

test: ## all tests and checks; ends with "N passed, N failed" (root runs all, a user what a user can)
	@scripts/install.sh test
	@$(PYTHON) scripts/test.py

check: ## style: layers, docs, formatting, clang-tidy
	@scripts/install.sh test
	@$(PYTHON) scripts/check.py

format: ## rewrite the sources as clang-format has them
	@scripts/check_format.sh --fix

bench: ## Engine and server beside the bare kernel, bwrap, docker and a plain HTTP server; writes build/bench.json
	@scripts/install.sh bench
	@scripts/build.sh release
	@$(PYTHON) bench/run.py $(ARGS)

fuzz: ## every fuzz target for SECONDS each (default 60), or TARGET alone
	@scripts/install.sh test
	@$(PYTHON) scripts/fuzz.py --seconds $(or $(SECONDS),60) $(TARGET)

doc: build ## regenerate docs/reference from the tables in the program
	@$(PYTHON) scripts/doc.py

test-vm: ## limits under cgroup v2 and Landlock in an emulated machine (minutes; not part of test)
	@scripts/install.sh vm
	@scripts/build.sh release
	@tests/vm/run.sh $(ARGS)

asan: ## unit and functional tests under AddressSanitizer and UBSan
	@scripts/install.sh test
	@$(PYTHON) scripts/test.py --only asan

tsan: ## unit tests and the server's functional tests under ThreadSanitizer
	@scripts/install.sh test
	@$(PYTHON) scripts/test.py --only tsan

coverage: ## line coverage of the unit tests; report in build/coverage
	@scripts/install.sh test
	@scripts/coverage.sh

clean: ## remove build/
	rm -rf build
