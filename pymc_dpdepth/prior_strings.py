"""Priors written as text, such as ``normal(0, 100)``: read against an allow-list, never evaluated.

The text is parsed into a syntax tree, and the tree must be one call of a known family with numbers, or lists of
numbers, as arguments. Anything else is a ValueError that says what was expected.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["FAMILIES", "PriorFamily", "PriorSpec", "build_prior", "parse_prior", "parse_priors"]


@dataclass(frozen=True)
class PriorFamily:
    """What the text may say about one family.

    Attributes
    ----------
    distribution : str
        The PyMC distribution, which has both `icdf` and `logcdf`.
    parameters : tuple of str
        Names of its parameters, in the order of positional arguments; PyMC's own.
    positive : frozenset of str
        Those that must be above 0.
    """

    distribution: str
    parameters: tuple[str, ...]
    positive: frozenset[str] = frozenset()


FAMILIES: Mapping[str, PriorFamily] = {
    "normal": PriorFamily("Normal", ("mu", "sigma"), frozenset({"sigma"})),
    "uniform": PriorFamily("Uniform", ("lower", "upper")),
    "laplace": PriorFamily("Laplace", ("mu", "b"), frozenset({"b"})),
    "logistic": PriorFamily("Logistic", ("mu", "s"), frozenset({"s"})),
    "cauchy": PriorFamily("Cauchy", ("alpha", "beta"), frozenset({"beta"})),
    "student_t": PriorFamily("StudentT", ("nu", "mu", "sigma"), frozenset({"nu", "sigma"})),
    "gumbel": PriorFamily("Gumbel", ("mu", "beta"), frozenset({"beta"})),
    "exponential": PriorFamily("Exponential", ("lam",), frozenset({"lam"})),
    "half_normal": PriorFamily("HalfNormal", ("sigma",), frozenset({"sigma"})),
    "half_cauchy": PriorFamily("HalfCauchy", ("beta",), frozenset({"beta"})),
    "lognormal": PriorFamily("LogNormal", ("mu", "sigma"), frozenset({"sigma"})),
    "gamma": PriorFamily("Gamma", ("alpha", "beta"), frozenset({"alpha", "beta"})),
    "beta": PriorFamily("Beta", ("alpha", "beta"), frozenset({"alpha", "beta"})),
}

_MAX_CHARACTERS = 100_000  # two lists of 1,000 numbers with 17 digits take about half of it
_SHOWN_CHARACTERS = 60  # of a text that an error repeats
_ALLOWED = re.compile(r"[A-Za-z0-9_+\-.,=()\[\] \t]*")  # no quotes, operators, line ends or letters beyond ASCII
_NAME_OF_CALL = re.compile(r"\s*[A-Za-z_]\w*\s*\(")
_FORM = '"family(number, ...)", such as "normal(0, 100)" or "normal(mu=[0, 10], sigma=100)"'


@dataclass(frozen=True)
class PriorSpec:
    """A prior of independent columns, as read from text; public.

    Attributes
    ----------
    family : str
        A key of `FAMILIES`.
    parameters : dict of str to float or tuple of float
        A number holds for every column, a tuple has one number for each.
    """

    family: str
    parameters: Mapping[str, float | tuple[float, ...]]

    def __hash__(self) -> int:
        """Hash family and parameters, so that equal specs are one key."""
        return hash((self.family, tuple(sorted(self.parameters.items(), key=lambda item: item[0]))))

    def __str__(self) -> str:
        """Return text that `parse_prior` reads back as the same spec."""
        inside = (
            f"{name}={list(value) if isinstance(value, tuple) else value!r}" for name, value in self.parameters.items()
        )
        return f"{self.family}({', '.join(inside)})"

    def distribution(self, d: int) -> Any:
        """Return the prior of d columns as a PyMC distribution that belongs to no model.

        Parameters
        ----------
        d : int
            Number of columns.

        Returns
        -------
        TensorVariable of shape (d,)
            As ``pm.Normal.dist(mu, sigma, shape=d)``.

        Raises
        ------
        ValueError
            If a list of parameters does not have d numbers.

        Examples
        --------
        >>> from pymc_dpdepth.prior_strings import parse_prior
        >>> parse_prior("normal(0, 100)").distribution(2).type.shape
        (2,)
        """
        _check_lengths(self, d)
        import pymc as pm

        values = {name: list(value) if isinstance(value, tuple) else value for name, value in self.parameters.items()}
        return getattr(pm, FAMILIES[self.family].distribution).dist(**values, shape=d)


def parse_prior(text: str) -> PriorSpec:
    """Read one prior from text.

    Parameters
    ----------
    text : str
        A family of `FAMILIES` with its parameters, by position or by name, as in PyMC: ``normal(0, 100)`` has mean 0
        and standard deviation 100. A list gives one number for each column: ``uniform(lower=0, upper=[100, 1e5])``.
        Case and underscores of the family do not matter.

    Returns
    -------
    PriorSpec

    Raises
    ------
    ValueError
        If the text is anything else: an unknown family or parameter, too few or too many numbers, an expression, a
        number that is not finite, a scale that is not positive, or ``lower >= upper``.

    Examples
    --------
    >>> from pymc_dpdepth.prior_strings import parse_prior
    >>> print(parse_prior("Normal(mu=[0, 10], sigma=1e2)"))
    normal(mu=[0.0, 10.0], sigma=100.0)
    """
    call = _call(text)
    word = call.func.id
    family = _family_names().get(word.lower().replace("_", ""))
    if family is None:
        raise ValueError(
            f"Expected a prior of the families {', '.join(FAMILIES)}; got {_short(word)}.{_close(word, FAMILIES)}"
        )
    parameters = _arguments(call, family)
    _check_ranges(family, parameters)
    return PriorSpec(family, parameters)


def parse_priors(texts: str | Sequence[str], columns: Sequence[str]) -> PriorSpec | dict[str, PriorSpec]:
    """Read one prior for all columns, or one for each.

    Parameters
    ----------
    texts : str or sequence of str
        Either one text as `parse_prior` reads it, or for each column one of the form ``column=normal(0, 10)``.
    columns : sequence of str
        The column names.

    Returns
    -------
    PriorSpec or dict of str to PriorSpec
        The dict has the columns' order.

    Raises
    ------
    ValueError
        As in `parse_prior`; or if a column is unknown, missing or named twice, or a list has another length than
        `columns`.

    Examples
    --------
    >>> from pymc_dpdepth.prior_strings import parse_priors
    >>> specs = parse_priors(["age=uniform(0, 120)", "income=normal(0, 1e5)"], ["age", "income"])
    >>> specs["age"].family
    'uniform'
    """
    texts = [texts] if isinstance(texts, str) else list(texts)
    if not texts:
        raise ValueError(f"Expected a prior; got none. Write it as {_FORM}.")
    if len(texts) == 1 and _split_column(texts[0], columns) is None:
        spec = parse_prior(texts[0])
        _check_lengths(spec, len(columns))
        return spec
    found: dict[str, PriorSpec] = {}
    for text in texts:
        column, prior = _split_column(text, columns) or (None, text)
        if column is None:
            raise ValueError(
                f'Expected one prior for all columns, or "column=prior" for each; got {len(texts)} texts, among them '
                f"{_short(prior)} without a column."
            )
        if column not in columns:
            raise ValueError(
                f"Expected a prior for one of the columns {_names(columns)}; got {_short(column)}."
                f"{_close(column, columns)}"
            )
        if column in found:
            raise ValueError(f"Expected one prior for each column; got two for {column!r}.")
        found[column] = parse_prior(prior)
        _check_lengths(found[column], 1)
    missing = [column for column in columns if column not in found]
    if missing:
        raise ValueError(f"Expected a prior for each column; got none for {_names(missing)}.")
    return {column: found[column] for column in columns}


def build_prior(prior: PriorSpec | Mapping[str, PriorSpec] | str | Sequence[str], columns: Sequence[str]) -> Any:
    """Return the PyMC distribution of a prior given as text or as specs.

    Parameters
    ----------
    prior : PriorSpec, dict of str to PriorSpec, str or sequence of str
        What `parse_priors` takes or returns.
    columns : sequence of str
        The d column names.

    Returns
    -------
    TensorVariable of shape (d,), or dict of str to TensorVariable of shape (1,)
        One distribution if all columns have the same family; otherwise one for each column, in the columns' order.

    Raises
    ------
    ValueError
        As in `parse_priors`.
    """
    if not isinstance(prior, PriorSpec | Mapping):
        prior = parse_priors(prior, columns)
    if isinstance(prior, PriorSpec):
        return prior.distribution(len(columns))
    if set(prior) != set(columns):
        raise ValueError(f"Expected a prior for each of the columns {_names(columns)}; got {_names(list(prior))}.")
    specs = [prior[column] for column in columns]
    if len({spec.family for spec in specs}) > 1:
        return {column: spec.distribution(1) for column, spec in zip(columns, specs, strict=True)}
    names = FAMILIES[specs[0].family].parameters
    joined = {name: tuple(_single(spec.parameters[name]) for spec in specs) for name in names}
    return PriorSpec(specs[0].family, joined).distribution(len(columns))


def _call(text: str) -> ast.Call:
    """Return the syntax tree of a text that is one call of a name."""
    if not isinstance(text, str):
        raise ValueError(f"Expected a prior as text, {_FORM}; got {type(text).__name__}.")
    if len(text) > _MAX_CHARACTERS:
        raise ValueError(f"Expected a prior of at most {_MAX_CHARACTERS} characters; got {len(text)}.")
    form = ValueError(f"Expected a prior of the form {_FORM}; got {_short(text)}.")
    if not _ALLOWED.fullmatch(text):
        raise form
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd but legal spellings of numbers
            call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # the last two: nested too deeply for the parser
        raise form from None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        raise form
    return call


def _arguments(call: ast.Call, family: str) -> dict[str, float | tuple[float, ...]]:
    """Return the parameters by name, in the family's order."""
    names = FAMILIES[family].parameters
    usage = f"{family}({', '.join(names)})"
    if len(call.args) > len(names):
        raise ValueError(f"Expected {usage}; got {len(call.args)} arguments.")
    given: dict[str, ast.expr] = dict(zip(names, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg not in names:
            raise ValueError(
                f"Expected {usage}; got a parameter {_short(str(keyword.arg))}.{_close(str(keyword.arg), names)}"
            )
        if keyword.arg in given:
            raise ValueError(f"Expected {usage}; got {keyword.arg} twice.")
        given[keyword.arg] = keyword.value
    missing = [name for name in names if name not in given]
    if missing:
        raise ValueError(f"Expected {usage}; got no {' and no '.join(missing)}.")
    return {name: _value(given[name], name) for name in names}


def _value(node: ast.expr, name: str) -> float | tuple[float, ...]:
    """Return a number, or the numbers of a list."""
    if isinstance(node, ast.List):
        if not node.elts:
            raise ValueError(f"Expected numbers in {name}=[...]; got an empty list.")
        return tuple(_number(element, name) for element in node.elts)
    return _number(node, name)


def _number(node: ast.expr, name: str) -> float:
    """Return a number that may carry one sign."""
    sign = 1.0
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign = -1.0 if isinstance(node.op, ast.USub) else 1.0
        node = node.operand
    if isinstance(node, ast.Name) and node.id.lower() in ("nan", "inf", "infinity"):
        raise ValueError(f"Expected a finite number for {name}; got {node.id.lower()}.")
    if not (isinstance(node, ast.Constant) and type(node.value) in (int, float)):  # not bool, which is an int too
        raise ValueError(f"Expected {name} as a number, or as a list of numbers; got something else.")
    try:
        number = sign * float(node.value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"Expected a finite number for {name}; got one beyond the range of float64.")
    return number


def _check_ranges(family: str, parameters: Mapping[str, float | tuple[float, ...]]) -> None:
    """Refuse what is not a distribution."""
    for name in FAMILIES[family].parameters:
        if name in FAMILIES[family].positive:
            worst = min(_numbers(parameters[name]))
            if worst <= 0:
                raise ValueError(f"Expected {name} > 0 in the prior {family}; got {worst!r}.")
    if family == "uniform":
        lower, upper = _numbers(parameters["lower"]), _numbers(parameters["upper"])
        if 1 < len(lower) != len(upper) > 1:
            raise ValueError(f"Expected as many lower as upper ends in uniform; got {len(lower)} and {len(upper)}.")
        length = max(len(lower), len(upper))
        pairs = zip(lower * (length // len(lower)), upper * (length // len(upper)), strict=True)
        for low, high in pairs:
            if not low < high:
                raise ValueError(f"Expected lower < upper in the prior uniform; got {low!r} and {high!r}.")
            if math.isinf(high - low):
                raise ValueError("Expected lower and upper at a distance that float64 can hold; got more.")


def _check_lengths(spec: PriorSpec, d: int) -> None:
    """Refuse a list that is not one number for each of d columns."""
    for name, value in spec.parameters.items():
        if isinstance(value, tuple) and len(value) != d:
            raise ValueError(
                f"Expected {d} number{'s' * (d != 1)} in {name}=[...] of the prior {spec.family}, one for each column; "
                f"got {len(value)}."
            )


def _split_column(text: str, columns: Sequence[str]) -> tuple[str, str] | None:
    """Return the column and the prior of "column=prior", or None for a prior alone; the column need not be known."""
    if not isinstance(text, str):
        return None
    for column in sorted(columns, key=len, reverse=True):  # a name may hold "=", or begin with another name
        rest = text.lstrip()[len(column) :].lstrip()
        if text.lstrip().startswith(column) and rest.startswith("="):
            return column, rest[1:]
    column, equals, prior = text.partition("=")
    if not equals or _NAME_OF_CALL.match(text):
        return None
    return column.strip(), prior


def _family_names() -> dict[str, str]:
    return {name.replace("_", ""): name for name in FAMILIES}


def _numbers(value: float | tuple[float, ...]) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,)


def _single(value: float | tuple[float, ...]) -> float:
    numbers = _numbers(value)
    if len(numbers) != 1:
        raise ValueError(f"Expected one number in the prior of one column; got {len(numbers)}.")
    return numbers[0]


def _short(text: str) -> str:
    shown = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
    return ascii(shown)


def _names(columns: Sequence[str]) -> str:
    return _short(", ".join(columns)) if len(columns) > 1 else repr(columns[0]) if columns else "none"


def _close(word: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    found = difflib.get_close_matches(word[:_SHOWN_CHARACTERS].lower(), list(known), n=1)
    return f" Did you mean {found[0]!r}?" if found else ""
