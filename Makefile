# Every command of the project; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(abspath $(BIN)):$(PATH)
# Processes that tests start would compile all of the compiler's Python anew, a second each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help dev demo test test-machine lint types imports package docs bench bench-programs bench-training bench-gradients bench-sizes bench-against bench-peers limits figures note-figures sanitize clean
help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/.ready: pyproject.toml setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

dev: $(BIN)/.ready  ## make the development environment in .venv

demo: dev  ## classify handwritten digits with a compiled network, and train one
	$(BIN)/python examples/digits/classify.py
	$(BIN)/python examples/digits/learn.py

test: dev  ## run every test
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

MACHINE := neon, 8 cores
SCHEDULED := column_sums matrix_vector odd_programs scales stencils threads
CHOSEN := bands dots packed_operands reread_operands
test-machine: dev  ## the fast tests of what schedules compute, as on another machine (MACHINE="avx2, 8 cores")
	STEPWELL_MACHINE="$$($(BIN)/python -m stepwell.testing.machines '$(MACHINE)')" $(BIN)/python -m pytest -q -n 2 \
	    $(SCHEDULED:%=test/end_to_end/test_%.py) $(CHOSEN:%=test/unit/test_%.py) test/frontend/test_numpy.py \
	    test/frontend/test_control.py -k "not interpreter and not opencl"

sanitize: dev  ## run emitted C under sanitizers (SANITIZE="--processes 2 --programs 1000 --seed 0")
	$(BIN)/python -m pytest -q -m sanitize
	$(BIN)/python test/sanitizing.py $(SANITIZE)

lint: dev  ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: dev  ## static types
	$(BIN)/pyright

imports: dev  ## who may import whom
	$(BIN)/lint-imports

package: dev  ## build sdist and wheel, try the wheel on each Python that is there
	$(BIN)/python test/package/installed.py

docs: dev  ## write the pages of docs/ that are made from the code
	$(BIN)/python -m stepwell.tools.docs docs

bench: dev  ## measure beside the peers that are installed: docs/benchmarks.md (BENCH="--help")
	$(BIN)/python bench/benchmarks.py $(BENCH)

bench-programs: dev  ## measure NumPy programs beside Numba, JAX and NumPy: docs/programs.md (BENCH="--help")
	$(BIN)/python bench/programs_bench.py $(BENCH)

bench-training: dev  ## measure steps of training beside PyTorch, JAX and ONNX Runtime: docs/training.md (BENCH="--help")
	$(BIN)/python bench/training_bench.py $(BENCH)

bench-gradients: dev  ## measure derivatives beside their ops, vmap beside batches by hand: docs/backward.md (BENCH="--help")
	$(BIN)/python bench/gradients.py $(BENCH)

bench-sizes: dev  ## measure programs with dynamic sizes: docs/sizes.md (BENCH="--help")
	$(BIN)/python bench/unknown_sizes.py $(BENCH)

BASE := HEAD
bench-against: dev  ## compare with another commit: is anything slower? (BASE=HEAD~3 BENCH="--help")
	$(BIN)/python bench/against.py $(BASE) $(BENCH)

bench-peers: dev  ## install those peers, each in an environment of its own (PEERS="all")
	$(BIN)/python bench/install.py $(PEERS)

bench-devices: dev  ## measure calls and programs on an OpenCL device beside C (BENCH="--help")
	$(BIN)/python bench/devices.py $(BENCH)

limits: dev  ## measure what this machine can do at most
	$(BIN)/python bench/limits.py

figures: dev  ## measure start-up, compile times, calls and the cost model: docs/figures.md
	$(BIN)/python bench/figures.py

NOTED := loops in_place decoding products random_numbers sorting
note-figures: dev  ## measure what notes 042, 043, 047 and 054 say (NOTED="loops")
	set -e; for each in $(NOTED); do $(BIN)/python bench/$$each.py; done

clean:  ## remove what was built here
	rm -rf $(VENV) build
