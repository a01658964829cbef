# `make demo` shows Assay with a small corpus, `make test` runs the linters and the quick tests, `make test-all` every
# test. All make .venv first, where needed.

PYTHON = .venv/bin/python
# Asked for only when a list of requirements has changed: a stamp in .venv is as new as the list it stands for.
# Without bytecode for all packages, which takes longer than all else; Python writes it for what is imported.
INSTALL = $(PYTHON) -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes

.PHONY: demo test test-slow test-all bench bench-full bench-peers bench-figures bench-faults lock clean

PORT = 8000
demo: .venv/.requirements
	$(PYTHON) manage.py serve --demo --port $(PORT)

# tests/__main__.py has the parts of each tier, and tests/conftest.py their tests. The tests never see the data of this
# checkout. TESTS=folder runs some of them.
test test-slow: export ASSAY_DATA_DIR = .venv/test-data
test: .venv/.requirements-test
	$(PYTHON) -m tests $(TESTS)

test-slow: .venv/.requirements-test .tools/.requirements
	$(PYTHON) -m tests --slow

test-all: test test-slow

# Speed and memory, as ratios of what is measured side by side: at a tenth of the sizes in some ten minutes, or in full.
# DATA has posts in many languages, as python -m benchmarks says.
DATA = fixtures
SPEED = $(PYTHON) -m benchmarks $(DATA) detectors prelabel_speed answer idle pages load bulk draws
bench: .venv/.requirements-test
	$(SPEED) --speed-posts 10000 --repetitions 1 --answer-units 10000 100000 --load-units 1000 --load-seconds 15 \
	    --bulk-posts 100000 --draw-posts 2000000 --draw-fewer 200000 --draw-on-spark 200000
	$(PYTHON) -m tests.postgres $(PYTHON) -m benchmarks $(DATA) load --load-of posts gold \
	    --load-moments analyzed pilot --load-units 2600 --load-people 16 --load-seconds 15

bench-full: .venv/.requirements-test
	$(SPEED) --speed-posts 400000 --answer-units 10000 1000000 --load-units 10000 1000000 --load-seconds 60 \
	    --page-judgments 10000 1000000 --bulk-posts 1000000
	$(PYTHON) -m tests.postgres $(PYTHON) -m benchmarks $(DATA) load --load-of posts records gold \
	    --load-moments new analyzed pilot earlier --load-units 10000 --load-seconds 60

# Label Studio and doccano beside Assay; both are installed in environments of their own.
bench-peers: .venv/.requirements-test
	$(PYTHON) -m tests.postgres $(PYTHON) -m benchmarks fixtures peers --peer-docs

# The simulations behind the figures of the documentation: make bench-figures DATA=folder
bench-figures: .venv/.requirements-test
	$(PYTHON) -m benchmarks $(DATA)

# Kills, full disks and lost connections, on either database.
bench-faults: .venv/.requirements-test
	$(PYTHON) -m benchmarks fixtures faults
	$(PYTHON) -m tests.postgres $(PYTHON) -m benchmarks fixtures faults

# After a change of the dependencies in pyproject.toml; needs uv.
lock:
	uv pip compile -q --universal --generate-hashes --no-header pyproject.toml -o requirements.txt
	uv pip compile -q --universal --generate-hashes --no-header --all-extras --group dev -c requirements.txt pyproject.toml -o requirements-test.txt
	uv pip compile -q --universal --generate-hashes --no-header --group tools -o requirements-tools.txt

clean:
	rm -rf .venv .tools .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A name that is found may still not run (a version manager's shim), be too old, or lack ensurepip, which Debian
# packs apart: so each is asked.
.venv/bin/python:
	@old=; bare=; \
	for python in python3.11 python3.12 python3.13 python3; do \
		$$python -c '' 2>/dev/null || continue; \
		$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { old=$$python; continue; }; \
		$$python -c 'import ensurepip, venv' 2>/dev/null || { bare=$$python; continue; }; \
		echo "Making .venv with $$($$python --version)."; exec $$python -m venv .venv; \
	done; \
	if [ -n "$$bare" ]; then \
		echo "$$($$bare --version) cannot make virtual environments here: install the package python3-venv." >&2; \
	elif [ -n "$$old" ]; then \
		echo "Assay needs Python 3.11 or newer; here is only $$($$old --version)." >&2; \
	else \
		echo "Assay needs Python 3.11 or newer; none was found." >&2; \
	fi; exit 1

# Order-only: the interpreter is often older than everything, or a link to something newer.
.venv/.requirements: requirements.txt | .venv/bin/python
	$(INSTALL) -r requirements.txt
	@touch $@

.venv/.requirements-test: requirements-test.txt .venv/.requirements
	$(INSTALL) -r requirements-test.txt
	@touch $@

# Annotation tools that load what Assay exports. doccano's own list of packages excludes those of the others.
.tools/.requirements: requirements-tools.txt | .venv/bin/python
	$(PYTHON) -m venv .tools
	.tools/bin/$(notdir $(INSTALL)) --no-deps -r requirements-tools.txt
	@touch $@
