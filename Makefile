# Every target does the setup that it needs: `make demo` and `make test` work from a clean clone.
# `make help` lists the targets. All paths are relative: use `make -C DIR` from elsewhere.

# The main job: live, on the embedded ZooKeeper server.
DEMO = .venv/bin/isr run shrink-and-expand

PYTHON_BIN = .venv/bin/python
PYTEST = $(PYTHON_BIN) -m pytest
# More for pytest, as in `make test ARGS="-k shrink -x"`.
ARGS =
# pytest's exit code 5, no test found, is a failure unless ARGS chose the tests.
OR_NONE = $(if $(strip $(ARGS)),|| test $$? = 5)
JOBS = 2
# The files with tests of a marker: to import all the others takes each worker 8 s.
MARKED = $(shell grep -rlE '\bmark\.$(1)\b' --include='test_*.py' tests)
# Recordings of real Kafka, for `make fidelity`.
RECORDINGS = $(or $(wildcard ../shared/recordings ../shared/recordings-unmatched),tests/recordings)

export HYPOTHESIS_STORAGE_DIRECTORY = .venv/cache/hypothesis
# Compiled modules are kept also where the environment says otherwise, as images for containers do:
# half of what a short command takes is compiling, and the tests start thousands.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test test-all test-rest test-live test-live-patient test-live-alone test-slow test-slow-plays test-slow-processes \
        test-slow-alone test-spark test-fuzz test-containers test-clients test-kafka test-shared check check-format check-lint check-spelling check-types check-imports \
        check-house format docs fidelity fidelity-kafka fidelity-mixed paths pages hazards bench mutants soak audit lock clean

help: ## This list
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1|\2/p' Makefile | \
		while IFS='|' read -r name what; do printf '%-21s%s\n' "$$name" "$$what"; done

setup: ## Python packages into .venv/, Java where it is missing; nothing when all is there
	@.ci/setup

demo: setup ## Run the main job: an ISR shrinks and expands, on a real ZooKeeper
	$(DEMO)

# What is run after each change: the tests without a marker of units, interactions and the
# specification, and the demo on a real server. The house rules are in `make check`, everything
# else is in test-all.
NEAR = tests/unit tests/interaction tests/spec
PLAIN = not live and not shared and not slow and not soak and not spark and not containers and not kafka
test: setup ## The tests to run after each change
	$(PYTEST) -n $(JOBS) --dist worksteal -m "demo or ($(PLAIN))" tests/live/test_demo.py $(NEAR) $(ARGS) $(OR_NONE)

test-all: setup ## All tests that CI runs, what waits beside what computes
	@.ci/test-all

test-rest: setup ## The tests without a marker that `make test` leaves out: scenarios, commands, races
	$(PYTEST) -n $(JOBS) --dist worksteal -m "$(PLAIN)" $(NEAR:%=--ignore=%) --ignore=tests/test_house.py $(ARGS) $(OR_NONE)

# What starts a real ZooKeeper server: first the tests that other tests beside them do not spoil, then
# those that play as fast as the machine can, which get it alone.
PATIENT = tests/cli tests/conformance tests/live tests/races
TIMED = tests/live/test_both_worlds.py tests/live/test_many_brokers.py tests/bench
LIVE = "live and not shared and not slow and not soak and not demo"
test-live: test-live-patient test-live-alone ## The tests that start a real ZooKeeper server

# They wait for sessions and lags of their own clusters, hardly for the processor: a worker per file.
WAITING = -n 4 --dist loadfile
test-live-patient: setup
	$(PYTEST) $(WAITING) -m $(LIVE) $(TIMED:%=--ignore=%) $(PATIENT) $(ARGS) $(OR_NONE)

test-live-alone: setup
	$(PYTEST) -m $(LIVE) $(TIMED) $(ARGS) $(OR_NONE)

# The longer ones: those that compute, those that wait, and one that gets the machine alone.
SLOW = slow and not shared and not soak
ALONE = tests/live/test_conform_live.py
test-slow: test-slow-plays test-slow-processes test-slow-alone ## Longer ones: thousands of plays, a recording live, long stalls

test-slow-plays: setup
	$(PYTEST) -n $(JOBS) --dist worksteal -m "$(SLOW) and not live" $(call MARKED,slow) $(ARGS) $(OR_NONE)

test-slow-processes: setup
	$(PYTEST) $(WAITING) -m "$(SLOW) and live" --ignore=$(ALONE) tests/live tests/conformance $(ARGS) $(OR_NONE)

test-slow-alone: setup
	$(PYTEST) -m "$(SLOW)" $(ALONE) $(ARGS) $(OR_NONE)

test-spark: setup ## The tests that start Spark
	$(PYTEST) -m "spark and not soak" tests/spark tests/bench $(ARGS) $(OR_NONE)

# Fresh seeds, other ones each time: a failure is reduced and kept below .venv/fuzz.
FUZZ_TIME = 100s
test-fuzz: setup ## Play fresh random worlds for FUZZ_TIME (100s), each version in turn
	.venv/bin/isr fuzz --every-version --time $(FUZZ_TIME) --jobs $(JOBS) --shrink --out .venv/fuzz $(ARGS)

test-containers: setup ## The tests that need containers; starts a Docker engine and makes images where missing
	@.ci/containers $(PYTEST) $(WAITING) -m "containers and not soak" tests/containers $(ARGS) $(OR_NONE)

test-clients: setup ## Clients of other houses through a leader's death (Java's by Maven, franz-go by Go), a short soak: 6 minutes
	$(PYTEST) -m clients tests/clients $(ARGS) $(OR_NONE)

test-kafka: setup ## Scenarios on real Kafka, in real time (fetched with Maven): about 4 minutes
	$(PYTEST) -m kafka tests/kafka $(ARGS) $(OR_NONE)

test-shared: setup ## Tests that need ../shared beside the clone
	$(PYTEST) -n $(JOBS) --dist worksteal -m "shared and not soak" $(call MARKED,shared) $(ARGS) $(OR_NONE)

check: check-format check-lint check-spelling check-types check-imports check-house ## All checks (-k: go on)

check-format: setup
	.venv/bin/ruff format --check

check-lint: setup
	.venv/bin/ruff check --output-format concise

check-spelling: setup
	.venv/bin/codespell

check-types: setup
	.venv/bin/mypy

check-imports: setup
	.venv/bin/lint-imports --no-logo --cache-dir .venv/cache/import-linter

check-house: setup
	$(PYTEST) -q tests/test_house.py

format: setup ## Format, and repair what the linter can
	.venv/bin/ruff format
	.venv/bin/ruff check --fix

docs: setup ## Build the site into .venv/site, strictly: no broken link, no page left out
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet --strict -f tools/pages/mkdocs.yml

# Half an hour on two cores: what is given, the stories of every version, and random scripts.
fidelity: setup ## Play all recordings, and write docs/fidelity.md: 30 minutes
	$(PYTHON_BIN) -m tools.fidelity $(RECORDINGS) --jobs $(JOBS) $(ARGS)

fidelity-kafka: setup ## Record the shipped scenarios on real Kafka, in real time; its section of that page
	$(PYTHON_BIN) -m tools.fidelity.shipped $(ARGS)

fidelity-mixed: setup ## Play stories with real Kafka in some roles and ours in others, in real time; its section
	$(PYTHON_BIN) -m tools.fidelity.mixed $(ARGS)

paths: setup ## Measure both propagation paths, and write the tables of docs/zk-vs-rpc.md
	$(PYTHON_BIN) -m tools.paths $(RECORDINGS) $(ARGS)

pages: setup ## Run what pages show, fill in what it prints, and draw the pictures
	$(PYTHON_BIN) -m tools.pages $(ARGS)

hazards: setup ## Play the hazard catalogue, and write docs/hazards.md
	$(PYTHON_BIN) -m tools.documents.hazard_catalogue $(ARGS)

bench: setup ## Measure, and print ratios (ARGS=NAME one of them, ARGS=--tiny all in a minute)
	$(PYTHON_BIN) -m tools.bench $(ARGS)

mutants: setup ## Break the core in one place at a time and see which tests notice (a sample)
	$(PYTHON_BIN) -m tools.mutants --jobs $(JOBS) $(ARGS)

soak: setup ## The long tests
	$(PYTEST) -m "soak and not containers" $(ARGS) $(OR_NONE)
	@.ci/containers $(PYTEST) -m "soak and containers" tests/containers $(ARGS) $(OR_NONE)

audit: setup ## Known vulnerabilities and licences of all dependencies
	.ci/audit
	$(PYTHON_BIN) -m tools.licences

lock: setup ## Renew requirements.lock from pyproject.toml
	.ci/lock

clean: ## Remove .venv/ and caches; runs/ is yours and stays
	rm -rf .venv .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find emulator zk tests -name __pycache__ -type d -prune -exec rm -rf {} +
