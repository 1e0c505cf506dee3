# Each target needs git, make and some Python >= 3.12, < 3.15; .venv is made when it is missing or out of date.
#
#   make demo      run the main job on real data: a private median table, release.json and a plot
#   make test      lint, then the whole test suite
#   make lint      ruff alone
#   make install   .venv with the package, nothing else
#   make clean     remove .venv and what the other targets wrote
#
# make demo PYTHON=/path/to/python3 names the Python to build .venv with; make test workers=0 tests in one process.

python := .venv/bin/python
workers ?= 2
export PYTHON

.PHONY: demo test lint install install-test clean

demo: install
	@$(python) examples/quickstart.py

test: lint
	@$(python) -m pytest --quiet --numprocesses $(workers)

lint: install-test
	@$(python) -m ruff check --quiet .
	@$(python) -m ruff format --check --quiet .

install:
	@tools/venv.sh core

install-test:
	@tools/venv.sh test

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .hypothesis .ruff_cache release.json release.png
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
