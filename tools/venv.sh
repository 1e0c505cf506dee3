#!/bin/sh
# Make .venv hold this package, and do nothing when it already does.
#
#   tools/venv.sh core    the package and what it needs to run
#   tools/venv.sh test    the same with the tools that check it
#
# What was installed is written inside .venv, as a checksum of pyproject.toml and of this folder's name, because an editable
# install names the folder. File times are not asked: git sets them anew at every checkout.
set -eu

cd "$(dirname "$0")/.."
kind=${1:-core}
case $kind in
    core) what=. ;;
    test) what='.[test]' ;;
    *) echo "tools/venv.sh: expected core or test, got $kind" >&2; exit 2 ;;
esac

python=.venv/bin/python
wanted=$({ pwd; cat pyproject.toml; } | cksum)

holds() { # holds KIND: was KIND installed from the present pyproject.toml?
    [ -f ".venv/installed-$1" ] && [ "$(cat ".venv/installed-$1")" = "$wanted" ]
}

if ! "$python" -c '' 2>/dev/null || { [ -f .venv/folder ] && [ "$(cat .venv/folder)" != "$(pwd)" ]; }; then
    found=$(tools/find_python.sh)
    echo "Making .venv with $("$found" --version)"
    rm -rf .venv
    "$found" -m venv .venv
    pwd > .venv/folder
fi
if holds "$kind" || { [ "$kind" = core ] && holds test; }; then
    exit 0
fi
echo "Installing pymc_dpdepth and what it needs into .venv (about a minute, once)"
rm -f .venv/installed-*
"$python" -m pip --quiet --quiet --disable-pip-version-check install --no-compile --editable "$what"
# Byte-compiling every installed file takes longer than installing it. Importing what is used compiles that alone, and shows
# that the installation works.
(unset PYTHONDONTWRITEBYTECODE; "$python" -c 'import arviz, matplotlib.pyplot, pymc, pymc_dpdepth')
echo "$wanted" > ".venv/installed-$kind"
