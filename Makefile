# Everything runs in .venv, which is made on first use. Python 3.11 or newer and PyPI are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
PROTOS := protos/intone/v1/tts.proto protos/intone/v1/voices.proto protos/intone/v1/status.proto
STUBS ?= protos
BASE ?= $(shell git describe --tags --abbrev=0 2>/dev/null)

MINUTES ?= 20

.PHONY: help demo test test-system soak lint proto vectors image-lock check-manifests bench clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# One stamp for each set of packages: what is installed already is not asked for again.
$(VENV)/%.stamp: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[$*]'
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

demo: $(VENV)/builtin.stamp  ## Start a server, say a sentence into hello.wav, stop the server
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python examples/demo.py

test: $(VENV)/test.stamp  ## Install what the tests need and run them all
	$(BIN)/python -m pytest -m "not system" -n 2 --dist loadfile

test-system: $(VENV)/test.stamp  ## Tests that need Debian packages (.ci/run says which)
	$(BIN)/python -m pytest -m system -n 2 --dist loadfile

soak: $(VENV)/test.stamp  ## 20 minutes of full load, 10,000 random sessions, 100,000 malformed calls
	PYTHONPATH=tests $(BIN)/python tests/soak.py --minutes $(MINUTES) --output benchmarks/results/soak.json
	PYTHONPATH=tests $(BIN)/python tests/sessions_machine.py 10000
	PYTHONPATH=tests $(BIN)/python tests/mutations.py 100000

lint: $(VENV)/lint.stamp $(VENV)/builtin.stamp  ## ruff, mypy, import rules, buf, stub drift
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	@for released in tests/vectors/*/contract.binpb $(if $(BASE),'.git#tag=$(BASE)'); do \
	  echo "buf breaking --against $$released"; \
	  $(BIN)/buf breaking --against "$$released" || exit 1; \
	done
	@drift=$$(mktemp -d) && trap 'rm -rf "$$drift"' EXIT && \
	  $(MAKE) --no-print-directory proto STUBS="$$drift" && \
	  for stub in "$$drift"/intone/v1/*; do \
	    cmp "$$stub" "protos/intone/v1/$$(basename "$$stub")" || { echo "stale stubs: run 'make proto'"; exit 1; }; \
	  done

proto: $(VENV)/lint.stamp  ## Make the committed stubs from protos/
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m grpc_tools.protoc -I protos \
	  --python_out=$(STUBS) --pyi_out=$(STUBS) --grpc_python_out=$(STUBS) \
	  --mypy_grpc_out=quiet:$(STUBS) $(PROTOS)

vectors: $(VENV)/test.stamp $(VENV)/lint.stamp  ## Record the contract of a release: make vectors VERSION=0.2.0
	PYTHONPATH=tests $(BIN)/python tests/record_vectors.py $(VERSION)

image-lock:  ## Pin what goes into the image, with hashes (needs pip-tools)
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet pip-tools==7.6.2
	$(VENV)-lock/bin/python image/lock.py

check-manifests:  ## Scan the production overlays with checkov (needs kubectl; 300 MB, an environment of its own)
	@command -v kubectl >/dev/null || { echo "check-manifests needs kubectl"; exit 1; }
	$(PYTHON) -m venv $(VENV)-manifests
	$(VENV)-manifests/bin/python -m pip install --quiet --disable-pip-version-check checkov==3.3.30
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	  for overlay in production production-shared; do \
	    kubectl kustomize "k8s/overlays/$$overlay" > "$$folder/$$overlay.yaml" || exit 1; \
	  done && \
	  $(VENV)-manifests/bin/checkov --directory "$$folder" --framework kubernetes --compact --quiet --skip-download

bench: $(VENV)/bench.stamp  ## Compare with the library and pocket-tts serve (50 minutes)
	$(BIN)/python -m benchmarks

clean:  ## Remove what make made
	rm -rf $(VENV) hello.wav benchmarks/results
