# Two commands are enough: `make dev` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
# Without compiled modules, each of the processes that tests start compiles everything anew, and
# each worker rewrites every test.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## Show the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

$(STAMP): requirements-dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Koord needs Python 3.11 or newer; set PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: install
install: $(STAMP) ## Create .venv with the locked dependencies

.PHONY: dev
dev: $(STAMP) ## The whole system on an embedded control plane; Ctrl-C stops it
	@$(BIN)/koord dev $(ARGS)

# Three for each core of a small machine: tests of sockets and of processes often wait.
WORKERS ?= 6
# These tests call nobody outside. To read all authorities of the system at each import of aiohttp
# takes each process that they start a third of its time.
TRUSTING_NOBODY := SSL_CERT_FILE=/dev/null SSL_CERT_DIR=/dev/null

.PHONY: test
test: $(STAMP) ## Every test that needs neither root, Go, a cluster nor a network; WORKERS=6
	@$(BIN)/python -m tests.runner.compiling & $(TRUSTING_NOBODY) $(PYTEST) --workers $(WORKERS) tests; status=$$?; wait; exit $$status

.PHONY: test-newest
test-newest: $(STAMP) ## The same tests on the newest Python of this machine, in .venv-newest
	@if newest=$$($(BIN)/python -m tests.runner.pythons 2>&1); then \
	  exec $(MAKE) --no-print-directory test VENV=.venv-newest PYTHON=$$newest; \
	else echo "not run: $$newest"; fi

.PHONY: vectors
vectors: $(STAMP) ## The recorded cases of the reference alone; KOORD_VECTORS=DIR reads them from there
	$(PYTEST) -n 2 --dist worksteal -m vectors tests

.PHONY: explore
explore: $(STAMP) ## The property tests with new random examples, 1,000 each; make test always draws the same
	$(PYTEST) -n 2 --dist worksteal -m hypothesis --hypothesis-profile=explore tests

.PHONY: fuzz
fuzz: $(STAMP) ## 100,000 generated reviews, settings and objects of our kinds; KOORD_FUZZ=N sends N
	KOORD_FUZZ=$${KOORD_FUZZ:-100000} $(PYTEST) -n 2 --dist worksteal --durations=0 tests/webhook/hostile/test_fuzz.py tests/manager/test_hostile_objects.py tests/agent/test_hostile_objects.py tests/extender/test_hostile.py tests/cli/test_hostile.py

.PHONY: preview
preview: $(STAMP) ## 1,000 random clusters: what koord simulate quota says against what happens; KOORD_PREVIEW=N
	$(BIN)/python -m tests.preview --count $${KOORD_PREVIEW:-1000} --first $${KOORD_PREVIEW_FIRST:-0}

.PHONY: check
check: $(STAMP) ## Lint, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: docs
docs: $(STAMP) ## The manual as a site in build/site/VERSION beside other versions, with every link checked
	$(BIN)/python deploy/site/build.py

.PHONY: fmt
fmt: $(STAMP) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: schemas
schemas: $(STAMP) ## Take the simulator's schemas of built-in kinds from a real API server (needs what e2e needs)
	$(BIN)/python -m tests.e2e.openapi

.PHONY: e2e
e2e: $(STAMP) ## Scenarios on a real etcd, kube-apiserver, kube-scheduler (needs Go or KUBEBUILDER_ASSETS)
	$(BIN)/python -m tests.e2e.binaries
	$(BIN)/python -m tests.planes.install.chart helm
	KOORD_E2E=1 $(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder --plane=real --timeout=120 --timeout-method=signal $(ARGS) tests/e2e tests/scenarios tests/manager/test_real_plane.py tests/api/test_served.py tests/system/test_restarts.py

.PHONY: decide
decide: $(STAMP) ## 500 pods whose node filter chooses, against the log of the real scheduler (needs what e2e needs)
	KOORD_E2E=1 KOORD_DECIDE=$${KOORD_DECIDE:-500} $(PYTEST) --plane=real tests/e2e/scheduler/test_decides.py

.PHONY: soak
soak: $(STAMP) ## Every fault in full length with the shipped times (an hour; needs what e2e needs)
	KOORD_E2E=1 KOORD_SOAK=1 $(PYTEST) --plane=real --timeout=7200 tests/e2e/faults/test_takeover.py tests/e2e/faults/test_faults.py tests/e2e/faults/test_faults_manager.py tests/e2e/kills/test_quota_kills.py tests/e2e/kills/test_gang_kills.py tests/e2e/kills/test_gang_random_kills.py tests/e2e/kills/test_migration_kills.py
	KOORD_SOAK=1 $(PYTEST) --timeout=3600 tests/agent/loop/test_faults_churn.py tests/agent/loop/test_faults_disk.py tests/agent/loop/test_faults_host.py
	KOORD_SOAK=1 KOORD_NODE=1 $(PYTEST) -s tests/node/runtime/test_runtime.py tests/node/runtime/test_synchronisation.py tests/node/runtime/test_many_containers.py tests/node/runtime/test_runtime_proxy.py

.PHONY: e2e-all
e2e-all: $(STAMP) ## The same on every supported release, one after another, with a count for each
	$(BIN)/python -m tests.e2e.releases

.PHONY: host
host: $(STAMP) ## The node agent on this machine's own /proc and cgroups (needs root)
	KOORD_HOST=1 $(PYTEST) tests/host --timeout=120

.PHONY: host-v2
host-v2: $(STAMP) ## The same on cgroup v2, in an emulated machine (needs root and Debian; says what is missing)
	$(BIN)/python -m tests.planes.host.guest $(ARGS)

.PHONY: e2e-node
e2e-node: $(STAMP) ## Our image and the agent on a whole real node (needs root, Go and Debian; says what is missing)
	$(BIN)/python -m tests.planes.node.node_programs
	KOORD_NODE=1 $(PYTEST) tests/node

.PHONY: image
image: $(STAMP) ## The image as build/koord-image.tar, built without a daemon (needs root and Debian)
	$(BIN)/python deploy/image/build.py $(ARGS)

.PHONY: wheel-test
wheel-test: $(STAMP) ## Build the wheel, install it with pipx and run koord dev from it (needs a package index)
	$(BIN)/python deploy/release/try_wheel.py

.PHONY: release
release: $(STAMP) ## Everything that is published, in build/release: wheel, chart, image, krew, bills, provenance, checksums
	$(BIN)/python deploy/release/build.py $(ARGS)

.PHONY: browser
browser: $(STAMP) ## The web console in a real Chromium; KOORD_PICTURES=docs/console renews the manual's pictures
	KOORD_BROWSER=1 $(PYTEST) -n 2 --dist worksteal --timeout=120 tests/browser

.PHONY: prometheus
prometheus: $(STAMP) ## What commands and dashboards read from a real Prometheus, and the alerts; KOORD_PICTURES=docs/dashboards renews pictures
	$(BIN)/python -m tests.planes.programs.prometheus
	KOORD_PROMETHEUS=1 $(PYTEST) tests/prometheus tests/dashboards

.PHONY: bench
bench: $(STAMP) ## Benchmarks, as ratios in one run
	$(BIN)/python -m benchmarks $(ARGS)

.PHONY: manifests
manifests: $(STAMP) ## Write the plain manifests from the Helm chart (needs Go)
	$(BIN)/python -m tests.planes.install.chart

.PHONY: lock
lock: ## Renew the locks (needs uv)
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-strip-extras --no-emit-index-url --no-emit-find-links --no-header pyproject.toml -o requirements.lock
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-strip-extras --no-emit-index-url --no-emit-find-links --no-header --extra dev pyproject.toml -o requirements-dev.lock
	$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["gpu"], sep="\n")' \
	 | uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-strip-extras --no-emit-index-url --no-emit-find-links --no-header - -o requirements-gpu.lock

.PHONY: clean
clean: ## Remove what the other targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .dev build *.egg-info
