# Needs Python >= 3.11 with pip, and nothing else. PYTHON=python3.12 chooses another one for .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

# What the native libraries are made of.
CORE := $(shell find lstmsim -name '*.[ch]pp') lstmsim/native/sources.py hatch_build.py

.DEFAULT_GOAL := help
.PHONY: help demo test slow docs readme artifact bench wheel-check clean

help:  ## show this
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | awk -F '\t' '{printf "make %-12s %s\n", $$1, $$2}'

$(VENV)/.installed: pyproject.toml constraints.txt $(CORE)
	@$(PYTHON) -c 'import sys; sys.exit("lstmsim needs Python >= 3.11, not %d.%d: make PYTHON=..." % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@# pip compiles what it copies, not what is installed in place: the first command would do it, or every one where
	@# PYTHONDONTWRITEBYTECODE is set
	$(BIN)/python -m compileall -q lstmsim
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) --editable '.[test,onnx]'
	@touch $@

demo: $(VENV)/.installed  ## install into .venv and simulate several LSTMs on a dual-threaded NPU
	@mkdir -p out/demo
	$(BIN)/lstmsim simulate experiments/scenarios/demo.yaml --timeline out/demo/timeline.png --trace out/demo/trace.json
	@echo 'Look at out/demo/timeline.png, and open out/demo/trace.json in the Perfetto viewer.'

test: $(VENV)/.installed-test  ## install what tests need, check types and style, run every quick test
	@# Where PYTHONDONTWRITEBYTECODE is set, both workers and each process that a test starts would compile the code.
	@# Types are checked beside everything else. Tests of a file stay together as far as possible: they share what they
	@# have simulated. To let assertions show their values takes each worker eight seconds: what fails is run again.
	@$(BIN)/mypy & types=$$!; \
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && \
	$(BIN)/python -m compileall -q lstmsim tests tools experiments || { wait $$types; exit 1; }; \
	$(BIN)/python -m pytest -n 2 --dist worksteal --assert=plain || \
	{ $(BIN)/python -m pytest --last-failed --last-failed-no-failures none; wait $$types; exit 1; }; \
	wait $$types

slow: $(VENV)/.installed-test  ## run the checks that take long one by one, which `make test` leaves out
	@# Networks of a public package are imported and compared. Without a network, these tests are skipped and say so.
	@ls $(VENV)/wheels/silero_vad-*.whl > /dev/null 2>&1 || $(BIN)/python -m pip --disable-pip-version-check download \
	  --quiet --retries 1 --no-deps --constraint constraints.txt --dest $(VENV)/wheels silero-vad || \
	  echo 'silero-vad cannot be fetched: the tests that import it are skipped' >&2
	LSTMSIM_TESTS=slow $(BIN)/python -m pytest -n 2 --dist worksteal --assert=plain

docs: $(VENV)/.installed-test  ## build the site in out/site/html: every page is run, warnings are errors
	$(PIP) --editable '.[docs]'
	$(BIN)/python tools/site.py out/site
	@echo 'Open out/site/html/index.html.'

readme: $(VENV)/.installed  ## draw the README's picture, write the validation's results into README.md and docs/
	$(BIN)/python tools/readme.py
	$(BIN)/python tools/trust.py

artifact: $(VENV)/.installed-test  ## make every table and figure anew, and compare them with what is expected
	$(BIN)/python tools/artifact.py out/artifact

bench: $(VENV)/.installed-test  ## measure the speed on an idle machine and write BENCHMARKS.md
	$(PIP) 'pytest-benchmark>=5,<6'
	$(BIN)/python benchmarks/table.py

wheel-check: $(VENV)/.installed-test  ## test the built wheel with the newest and the lowest versions allowed
	$(BIN)/python tools/check_wheel.py

clean:  ## remove everything that the above made
	rm -rf $(VENV) out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find lstmsim -name '_core.*' -delete
