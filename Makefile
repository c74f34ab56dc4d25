# The four commands of the project. Each works on a fresh clone; python 3.11+ and a C library are all they need.
PYTHON ?= python3
EXTRA ?= cpu
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt

.PHONY: run test test-needs check check-types check-style web web-packages check-web test-web screenshots gpu-check bench-engine bench-retrieval bench-ingest bench-tables faults-ingest faults-power bench-ledger faults-ledger mutate-ledger fuzz faults scale mutate adapter reader evidence-reader evidence-pack evidence-reader-gpu judge lock image-locks release-images sbom format
.DEFAULT_GOAL := run

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -U 'pip>=26'

# Stamps keep the second start off the network.
$(VENV)/.installed-$(EXTRA): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP_INSTALL) -e '.[$(EXTRA)]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/.installed-$(EXTRA)
	$(PIP_INSTALL) -e '.[$(EXTRA),postgres,oidc,mcp,otel,s3]' --group dev
	@touch $@

# A bucket for the tests. moto wants an older python-dateutil than the constraints have, so it lives apart.
$(VENV)/moto/.installed: tests/moto.txt | $(VENV)/bin/python
	$(PYTHON) -m venv $(VENV)/moto
	$(VENV)/moto/bin/python -m pip install -q --disable-pip-version-check --no-deps -r tests/moto.txt
	@touch $@

$(VENV)/.models: | $(VENV)/.installed-$(EXTRA)
	$(BIN)/footnote models fetch
	@touch $@

run: $(VENV)/.installed-$(EXTRA) $(VENV)/.models
	@$(BIN)/footnote serve

test-needs: $(VENV)/.installed-dev $(VENV)/moto/.installed $(VENV)/.models web-packages

# More workers than cores: half of a worker's time goes to servers that start, stop and are killed.
WORKERS ?= 4
# ARGS are pytest's. --exhaustive runs also what repeats other tests at length, and properties with all their examples. Tests that need
# something this machine does not have (a browser, npm's packages, LibreOffice) are skipped by name and reason.
test: test-needs
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

check: $(VENV)/.installed-dev
	@$(MAKE) --no-print-directory -j2 --output-sync=target check-types check-style

check-types: $(VENV)/.installed-dev
	$(BIN)/mypy

check-style: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/contracts

# The page is committed as it is built, so that nobody who installs it needs node.
WEB := app/web
WEB_PACKAGES := $(WEB)/node_modules/.package-lock.json

$(WEB_PACKAGES): $(WEB)/package-lock.json
	cd $(WEB) && npm install --no-save --no-audit --no-fund # not ci: it wants every other system's binaries in the lock
	@touch $@

web: $(VENV)/.installed-dev $(WEB_PACKAGES)
	$(BIN)/python -m tests.web.contract
	cd $(WEB) && npm run --silent types && npm run --silent check && npm run --silent test && npm run --silent build

# What npm brings for the tests and checks of the page, where npm is installed. Without it the page is taken as it was built.
web-packages:
	@if ! command -v npm >/dev/null; then echo "npm is not installed: tests that need the page's packages are skipped." >&2; \
	elif ! $(MAKE) --no-print-directory $(WEB_PACKAGES); then \
	echo "npm install failed: tests that need the page's packages are skipped." >&2; fi

check-web: web-packages
	@if command -v npm >/dev/null && test -e $(WEB_PACKAGES); then cd $(WEB) && npm run --silent check && npm run --silent test; \
	else echo 'The page is not type-checked.' >&2; fi

test-web: check-web $(VENV)/.installed-dev
	$(BIN)/python -m pytest tests/web $(ARGS)

# The README's pictures, of real documents where they are (DOCUMENTS) and of the default models where they are fetched.
screenshots: $(VENV)/.installed-dev
	$(BIN)/python -m tests.web.screenshots --documents $(DOCUMENTS) --out docs/screens
	$(BIN)/python -m tests.web.screenshots --changes --out docs/screens

# Does the engine work on this machine's GPU, and how fast? Needs no model: it makes its own. ARGS=--tiny tries it on the processor.
gpu-check: $(VENV)/.installed-$(EXTRA)
	$(BIN)/python -m tests.bench.gpu --out build/gpu.json $(ARGS)

bench-engine: $(VENV)/.installed-dev $(VENV)/.models
	$(BIN)/python -m tests.bench.engine --out docs/benchmarks/engine.json $(ARGS)

# Question sets lie in the folder SETS names, one folder each in the BEIR layout.
SETS ?= ../shared/data
bench-retrieval: $(VENV)/.installed-dev $(VENV)/.models
	$(BIN)/python -m tests.bench.retrieval.vectors --vectors 1000000 --flat --out docs/benchmarks/vectors.json
	$(BIN)/python -m tests.bench.retrieval.pgvector --out docs/benchmarks/pgvector.json
	$(BIN)/python -m tests.bench.retrieval.lexical --chunks 1000000 --out docs/benchmarks/lexical.json
	$(BIN)/python -m tests.bench.retrieval.hybrid --chunks 1000000 --out docs/benchmarks/hybrid.json
	$(BIN)/python -m tests.bench.retrieval.embedding $(SETS)/squad2-dev/corpus.jsonl --out docs/benchmarks/embedding.json

# Real documents lie in DOCUMENTS, one folder a format, with the texts they are known to hold.
DOCUMENTS ?= $(SETS)/documents
EMBEDDER_TOKENIZER = $$($(BIN)/python -c 'from app.settings import *; print(load_settings().models_dir / DEFAULT_EMBEDDER / "tokenizer.json")')
bench-ingest: $(VENV)/.installed-dev $(VENV)/.models
	$(BIN)/python -m tests.bench.ingest.fidelity $(DOCUMENTS) --out docs/benchmarks/fidelity.json
	$(BIN)/python -m tests.bench.ingest.parsing $(DOCUMENTS)/pdf --tokenizer $(EMBEDDER_TOKENIZER)
	$(BIN)/python -m tests.bench.ingest.chunk_spans $(SETS)/chroma-chunking --tokenizer $(EMBEDDER_TOKENIZER)
	$(BIN)/python -m tests.bench.ingest.throughput $(SETS)/squad2-dev
	$(BIN)/python -m tests.bench.ingest.many --documents 20000
	$(BIN)/python -m tests.bench.ingest.readiness --chunks 100000

# Twenty questions about real tables, each answered by one cell, by quotes.
bench-tables: $(VENV)/.installed-dev $(VENV)/.models
	$(BIN)/python -m tests.bench.service.table_questions $(DOCUMENTS) $(ARGS)

# A year of ten million calls; writing one; what the tokenizer, the engine, the answer, the ledger and the report say of many.
bench-ledger: $(VENV)/.installed-dev $(VENV)/.models
	$(BIN)/python -m tests.bench.ledger.rows --out docs/benchmarks/ledger-rows.json
	$(BIN)/python -m tests.bench.ledger.settle
	$(BIN)/python -m tests.bench.ledger.share
	$(BIN)/python -m tests.bench.ledger.requests --requests 100000
	$(BIN)/python -m tests.bench.ledger.requests --requests 2000 --real

# Kills a server under a mixed load, and compares everything that was acknowledged with its ledger.
faults-ledger: $(VENV)/.installed-dev
	$(BIN)/python -m tests.faults.ledger --kills 200 --out docs/benchmarks/faults-ledger.json $(ARGS)

# Ten bugs that books have had, planted one by one: each must fail a test.
mutate-ledger: $(VENV)/.installed-dev
	$(BIN)/python -m tests.mutations.ledger $(ARGS)

# Cuts the power at random changes that a server makes on disk, drops what no fsync made durable, and looks at what is left.
faults-power: $(VENV)/.installed-dev
	$(BIN)/python -m tests.faults.power --cuts 200 --out docs/benchmarks/faults-power.json $(ARGS)

# Kills a server that ingests, at named points and at random moments, and looks at everything it had acknowledged.
faults-ingest: $(VENV)/.installed-dev
	$(BIN)/python -m tests.faults.ingestion --kills 200 --out docs/benchmarks/faults-ingest.json $(ARGS)

# Sends 50,000 requests made from the API's description and from grammars; the event loop may never be held for more than 100 ms.
# A case of a grammar that fails is written into tests/fuzz/seeds, to be committed.
fuzz: $(VENV)/.installed-dev
	$(BIN)/python -m tests.fuzz --requests 50000 $(ARGS)

# Every fault of docs/RELIABILITY.md at length: kills, power cuts, full disks, hostile requests and documents.
faults: faults-ledger faults-ingest faults-power
	$(MAKE) test ARGS='--exhaustive tests/faults'

# Several processes on one PostgreSQL, killed and stopped, at length.
scale: $(VENV)/.installed-dev
	$(MAKE) test ARGS='--exhaustive tests/scale'

# Faults that Footnote has had, planted one by one: each must fail a test.
mutate: mutate-ledger
	$(BIN)/python -m tests.mutations.deliveries $(ARGS)
	$(BIN)/python -m tests.mutations.jobs $(ARGS)
	$(BIN)/python -m tests.mutations.presence $(ARGS)
	$(BIN)/python -m tests.mutations.security $(ARGS)
	$(BIN)/python -m tests.mutations.stores $(ARGS)
	$(BIN)/python -m tests.mutations.tables $(ARGS)

# Trains the default generator's adapter; goes on where it stopped.
ADAPTER ?= build/grounded-smollm2-135m
adapter: $(VENV)/.installed-dev $(VENV)/.models
	$(BIN)/python -m app.tuning.adapter.run $(SETS) $(ADAPTER) $(ARGS)

# Trains the default embedder's span reader; goes on where it stopped.
READER ?= build/span-minilm-l6
reader: $(VENV)/.installed-dev $(VENV)/.models
	$(BIN)/python -m app.tuning.span_reader.run $(SETS) $(READER) $(ARGS)

# Trains the reader that ships, which starts from the one above and tags evidence too, in three passes: the mixture, pairs
# of questions that people wrote, the mixture again; goes on where it stopped.
EVIDENCE_READER ?= build/evidence-minilm-l6
EVIDENCE_TRAINING = $(BIN)/python -m app.tuning.evidence_reader.run $(SETS)
evidence-reader: $(VENV)/.installed-dev $(VENV)/.models
	$(EVIDENCE_TRAINING) $(EVIDENCE_READER)/mixture --reader $(READER) --passes 0.2 --groups 24 $(ARGS)
	$(EVIDENCE_TRAINING) $(EVIDENCE_READER)/pairs --reader $(EVIDENCE_READER)/mixture/trained.safetensors --pairs --near 2 --passes 1 --seed 17 --groups 24 $(ARGS)
	$(EVIDENCE_TRAINING) $(EVIDENCE_READER)/training --reader $(EVIDENCE_READER)/pairs/trained.safetensors --near 2 --passes 0.2 --seed 29 --groups 24 $(ARGS)
	$(BIN)/python -m app.tuning.evidence_reader.publish $(EVIDENCE_READER)/training $(SETS) $(EVIDENCE_READER) --before $(EVIDENCE_READER)/mixture $(EVIDENCE_READER)/pairs --reader $(notdir $(READER))

# Trains that reader on one GPU: first a pack of what it reads, a few megabytes, then trainings from it, on a machine with
# torch, transformers and the folder of the embedder alone. Each stage is a folder that `publish` takes.
PACK ?= build/evidence.pack
BASE ?= $(HOME)/.cache/footnote/models/all-MiniLM-L6-v2
STAGES ?= --stage pairs 2 1e-4 --stage mixture,pairs 4 1e-4
evidence-pack: $(VENV)/.installed-dev $(VENV)/.models
	@mkdir -p $(dir $(PACK))
	$(BIN)/python -m app.tuning.evidence_reader.pack $(SETS) $(PACK) $(ARGS)
evidence-reader-gpu:
	python3 -m app.tuning.evidence_reader.from_pack $(PACK) $(EVIDENCE_READER) --base $(BASE) --reader retrieval/readers/evidence-minilm-l6 $(STAGES) $(ARGS)

# Trains the judge of candidates that ships; goes on where it stopped.
JUDGE ?= build/candidates-smollm2-135m
judge: $(VENV)/.installed-dev $(VENV)/.models
	$(BIN)/python -m app.tuning.candidate_judge.run $(SETS) $(JUDGE)/training $(ARGS)
	$(BIN)/python -m app.tuning.candidate_judge.publish $(JUDGE)/training $(SETS) $(JUDGE)

# The packages that would be installed on this kind of machine, with the hashes of their files (docs/OPERATIONS.md).
lock: | $(VENV)/bin/python
	@mkdir -p build
	$(PIP_INSTALL) --dry-run --ignore-installed --report build/lock.json '.[$(EXTRA)]'
	$(BIN)/python docker/lock.py build/lock.json > build/requirements.lock

# The locks of the container images, made where they run: Python 3.11 on Linux. PyTorch's index has torch without CUDA.
IMAGE_EXTRAS := postgres,oidc,mcp,otel,s3
LOCKS := docker/locks
MACHINE := $(shell uname -m)
WITHOUT_CUDA := PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu $(MAKE) --no-print-directory lock
image-locks: | $(VENV)/bin/python
	$(WITHOUT_CUDA) EXTRA=cpu,$(IMAGE_EXTRAS)
	$(BIN)/python docker/lock.py build/lock.json --without torch > $(LOCKS)/cpu.$(MACHINE).lock
	$(WITHOUT_CUDA) EXTRA=cpu,$(IMAGE_EXTRAS),ocr
	$(BIN)/python docker/lock.py build/lock.json --without torch --beyond $(LOCKS)/cpu.$(MACHINE).lock > $(LOCKS)/ocr.$(MACHINE).lock
	$(MAKE) --no-print-directory lock EXTRA=gpu,$(IMAGE_EXTRAS)
	cp build/requirements.lock $(LOCKS)/gpu.$(MACHINE).lock
	$(PIP_INSTALL) --dry-run --ignore-installed --no-deps --report build/lock.json setuptools
	$(BIN)/python docker/lock.py build/lock.json > $(LOCKS)/build.lock

# The images of a release, from a base that is named by digest: make release-images PYTHON_IMAGE=name:tag@sha256:…
PYTHON_IMAGE ?= python:3.11-slim-bookworm
release-images:
	$(PYTHON) docker/check_base.py "$(PYTHON_IMAGE)"
	docker build -f docker/Dockerfile --build-arg PYTHON_IMAGE="$(PYTHON_IMAGE)" --target cpu -t footnote:cpu .
	docker build -f docker/Dockerfile --build-arg PYTHON_IMAGE="$(PYTHON_IMAGE)" --target cuda -t footnote:cuda .

# What is installed: a bill of materials (CycloneDX) and every licence. The tools live apart, so as not to be on it.
AUDIT := build/audit-venv/bin
sbom: | $(VENV)/bin/python
	$(PYTHON) -m venv build/audit-venv
	$(AUDIT)/python -m pip install -q --disable-pip-version-check -c constraints.txt cyclonedx-bom pip-licenses
	$(AUDIT)/cyclonedx-py environment --pyproject pyproject.toml --of JSON -o build/sbom.cdx.json $(BIN)/python
	$(AUDIT)/pip-licenses --python $(BIN)/python --from=mixed --order=license --format=markdown --output-file=build/licences.md

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
