#!/bin/sh
# Print the path of a Python that can run this package: CPython >= 3.12 and < 3.15, with the venv module.
#
# Every candidate is run, not only looked up: pyenv puts a shim on PATH for each version it knows, and a shim of a version
# that is not switched on exits with status 127. The variable PYTHON names one candidate, and then no other is tried.
set -u

check='
import sys
if sys.implementation.name != "cpython" or not (3, 12) <= sys.version_info < (3, 15):
    sys.exit(3)
if not getattr(sys, "_is_gil_enabled", lambda: True)():
    sys.exit(3)
try:
    import ensurepip, venv
except ImportError:
    sys.exit(4)
print(sys.executable)
'
without_venv=

try() { # try CANDIDATE: print its executable and end, if it will do
    found=$("$1" -c "$check" 2>/dev/null)
    status=$?
    if [ $status -eq 0 ] && [ -n "$found" ]; then
        echo "$found"
        exit 0
    fi
    if [ $status -eq 4 ]; then
        without_venv=$1
    fi
}

if [ -n "${PYTHON:-}" ]; then
    try "$PYTHON"
    echo "PYTHON=$PYTHON does not run as CPython >= 3.12, < 3.15 with the venv module: name another, or leave PYTHON unset." >&2
    exit 1
fi
for candidate in python3.14 python3.13 python3.12 python3 python; do
    try "$candidate"
done
for candidate in "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/*/bin/python3; do
    try "$candidate"
done

if [ -n "$without_venv" ]; then
    echo "$without_venv has no venv module: install it (on Debian and Ubuntu the package python3-venv) and run make again." >&2
else
    echo "No Python >= 3.12, < 3.15 found on PATH or under pyenv: install one (python.org, or 'pyenv install 3.13') and run make again, or name it: make PYTHON=/path/to/python3 ..." >&2
fi
exit 1
