"""Rules of the house that a reader would otherwise have to check by eye."""

import ast
import doctest
import importlib.metadata
import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pymc_dpdepth

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "pymc_dpdepth"
SOURCES = sorted(PACKAGE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in SOURCES}
TEXT_SUFFIXES = {".py", ".md", ".toml", ".cff", ".sh", ".txt", ".csv", ".yml", ".yaml", ".json", ""}


def ids(path):
    return str(path.relative_to(PACKAGE))


def project_files():
    """Return the files that git knows or would add; without git, all outside .venv."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    except (OSError, subprocess.CalledProcessError):
        listed = [str(path.relative_to(ROOT)) for path in PACKAGE.parent.rglob("*") if ".venv" not in path.parts]
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def imports_of(tree, top_level_only=False):
    """Yield the dotted names of imported modules; `from a import b` gives a and a.b."""
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


# Randomness

# Public-seeded directions and the draws of simulation mode; nothing else may use a generator that can be replayed.
SEEDED = {PACKAGE / "depths" / "directions.py", PACKAGE / "randomness.py"}


@pytest.mark.parametrize("path", [path for path in SOURCES if path not in SEEDED], ids=ids)
def test_no_pseudorandom_numbers_in_the_package(path):
    assert not re.search(r"\b(np|numpy)\.random\b", path.read_text())
    names = set(imports_of(TREES[path]))
    assert not names & {"random", "numpy.random"}


def test_seeded_files_use_their_exemption():
    for path in SEEDED:
        assert re.search(r"\bnp\.random\b", path.read_text()), f"{path.name} needs no exemption"


# Imports

HEAVY = "pymc pytensor matplotlib arviz opendp scipy numba pandas polars pyarrow xarray rich typer".split()


def test_importing_the_package_imports_no_heavy_module():
    code = f"import sys, pymc_dpdepth; dir(pymc_dpdepth); print(*sorted(set({HEAVY}) & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.split() == []


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_seldom_used_heavy_modules_are_imported_where_they_are_used(path):
    heavy = ("scipy.stats", "matplotlib", "arviz", "opendp", "polars", "pyarrow", "pandas")
    at_import = {name for name in imports_of(TREES[path], top_level_only=True) if name.startswith(heavy)}
    assert not at_import


FOUNDATIONS = (
    "errors bits decimals grid families graph_values priors location_rows normal_vector prior_strings randomness "
    "tables table_columns table_files table_pieces record_fields record_files frozen"
).split()
LAYERS = {name: 0 for name in FOUNDATIONS} | {
    "depths": 1,
    "op": 2,
    "op_jax": 2,
    "location_prior": 3,
    "mechanism": 3,
    "groups": 3,
    "densities": 3,
    "privacy.rounding": 0,
    "privacy.composition": 0,
    "samplers": 4,
    "record_rules": 5,
    "record": 5,
}
FRONT_DOORS = 6


def layer_of(module):
    _, *parts = module.split(".")
    named = [".".join(parts[:length]) for length in (2, 1) if len(parts) >= length]
    return next((LAYERS[name] for name in named if name in LAYERS), FRONT_DOORS)


@pytest.mark.parametrize("path", [path for path in SOURCES if path != PACKAGE / "__init__.py"], ids=ids)
def test_imports_run_one_way(path):
    own = layer_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
    names = {name for name in imports_of(TREES[path]) if name.startswith("pymc_dpdepth.")}
    assert not {name for name in names if layer_of(name) > own}


# Size and style


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_files_and_functions_are_short(path):
    assert len(path.read_text().splitlines()) <= 450
    functions = [node for node in ast.walk(TREES[path]) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    long = {}
    for node in functions:
        documented = ast.get_docstring(node) is not None
        body = node.body[1:] if documented else node.body  # a long docstring does not make a function hard to read
        length = node.end_lineno - body[0].lineno + 1 if body else 0
        if length > 60:
            long[node.name] = length
    assert not long


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_kernels_keep_the_order_of_their_arithmetic(path):
    keywords = {node.arg for node in ast.walk(TREES[path]) if isinstance(node, ast.keyword)}
    assert not keywords & {"fastmath"}


# Machine paths, and hosts and options of package indexes. Each pattern is written so that it does not match itself.
FORBIDDEN = re.compile(
    r"/[r]oot/|/[h]ome/\w|/[U]sers/\w|/[t]mp/|/[w]ork/|[C]:\\\\"
    r"|[p]ypi\.org/simple|[p]ythonhosted|[i]ndex-url|[f]ind-links|[t]rusted-host|[a]rtifactory"
    r"|\b[T]ODO\b|\b[F]IXME\b|\b[X]XX\b"
)


def test_no_file_holds_a_machine_path_an_index_host_or_an_open_end():
    found = {}
    for path in project_files():
        if path.suffix in TEXT_SUFFIXES:
            for match in FORBIDDEN.finditer(path.read_text(encoding="utf-8")):
                found.setdefault(str(path.relative_to(ROOT)), []).append(match.group())
    assert not found


def test_the_patterns_of_the_rule_above_match_what_they_should():
    for text in ("/ho" + "me/me", "/ro" + "ot/x", "/tm" + "p/x", "--index" + "-url", "# TO" + "DO"):
        assert FORBIDDEN.search(text)


# Documentation of the public names


@pytest.mark.parametrize("name", pymc_dpdepth.__all__)
def test_public_names_are_documented(name):
    thing = getattr(pymc_dpdepth, name)
    doc = inspect.getdoc(thing)
    assert doc and doc.split("\n")[0].endswith(".")
    if inspect.isfunction(thing):
        signature = inspect.signature(thing)
        for parameter in signature.parameters:
            assert re.search(rf"\b{parameter}\b.* : |, {parameter}\b", doc), f"{name} does not describe {parameter}"
        assert "Parameters\n----------" in doc
        assert "Returns\n-------" in doc
        assert "Examples\n--------" in doc


@pytest.mark.parametrize("name", pymc_dpdepth.__all__)
def test_examples_of_public_names_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = getattr(pymc_dpdepth, name)
    module = sys.modules[thing.__module__]
    tests = doctest.DocTestFinder(exclude_empty=True).find(thing, name, module=module, globs={})
    assert tests or "Examples\n" not in (thing.__doc__ or "")
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    report = []
    for test in tests:
        runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


# The project's papers


def test_licence():
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text and "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert pyproject()["project"]["license"] == "Apache-2.0"
    assert "license: Apache-2.0" in (ROOT / "CITATION.cff").read_text()


def test_versions_agree():
    version = pyproject()["project"]["version"]
    assert pymc_dpdepth.__version__ == version
    assert importlib.metadata.version("pymc_dpdepth") == version
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert re.search(rf"^## {re.escape(version)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_papers_are_cited():
    text = (ROOT / "CITATION.cff").read_text()
    for author in ("Ramsay", "Jagannath", "Chenouri", "Fu", "Xiang", "Guo"):
        assert f"family-names: {author}" in text
    assert text.count("  - type: article") == 3


def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_package_is_marked_as_typed():
    assert (PACKAGE / "py.typed").exists()
    assert "py.typed" in pyproject()["tool"]["setuptools"]["package-data"]["pymc_dpdepth"]


# Finding Python

posix = pytest.mark.skipif(os.name != "posix", reason="a POSIX shell script")
FIND_PYTHON = ROOT / "tools" / "find_python.sh"


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def find_python(tmp_path, **environment):
    """Run the script where PATH holds the shell's own tools and tmp_path/bin, and nothing else."""
    environment = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)} | environment
    return subprocess.run(["/bin/sh", str(FIND_PYTHON)], env=environment, capture_output=True, text=True)


@posix
def test_a_python_is_found_behind_shims_and_old_versions(tmp_path):
    executable(tmp_path / "bin" / "python3.14", "#!/bin/sh\nexit 127\n")  # a shim of a version that is not switched on
    executable(tmp_path / "bin" / "python3.13", "#!/bin/sh\nexit 3\n")  # another interpreter under this name
    executable(tmp_path / "bin" / "python3", "#!/bin/sh\nexit 4\n")  # without venv
    executable(tmp_path / ".pyenv" / "versions" / "3.9.1" / "bin" / "python3", "#!/bin/sh\nexit 3\n")
    this = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    executable(tmp_path / ".pyenv" / "versions" / "3.99.0" / "bin" / "python3", this)
    result = find_python(tmp_path)
    assert (result.returncode, result.stdout.strip(), result.stderr) == (0, sys.executable, "")
    executable(tmp_path / "elsewhere" / "versions" / "x" / "bin" / "python3", this)
    (tmp_path / ".pyenv").rename(tmp_path / "gone")
    assert find_python(tmp_path, PYENV_ROOT=str(tmp_path / "elsewhere")).stdout.strip() == sys.executable
    assert find_python(tmp_path, PYTHON=sys.executable).stdout.strip() == sys.executable


@posix
def test_no_python_is_one_line_with_the_cure(tmp_path):
    nothing = find_python(tmp_path)
    executable(tmp_path / "bin" / "python3", "#!/bin/sh\nexit 4\n")
    no_venv = find_python(tmp_path)
    named = find_python(tmp_path, PYTHON=str(tmp_path / "bin" / "python3"))
    for result, cure in ((nothing, "pyenv install"), (no_venv, "python3-venv"), (named, "leave PYTHON unset")):
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr.count("\n") == 1 and cure in result.stderr


@posix
def test_the_entry_of_continuous_integration_runs_make_test():
    run = ROOT / ".ci" / "run"
    assert os.access(run, os.X_OK)
    assert re.search(r"^make test$", run.read_text(), re.MULTILINE)
