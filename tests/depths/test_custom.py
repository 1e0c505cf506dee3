import math

import numpy as np
import pytensor.tensor as pt
import pytest
from pytensor.gradient import disconnected_grad, undefined_grad

from pymc_dpdepth.depths import CustomObjective, Depth
from pymc_dpdepth.errors import NotDifferentiableError


def closeness(theta, X):
    """Minus the mean squared distance, each cut at 4: one row moves it by at most 4/n."""
    return -pt.mean(pt.minimum(pt.sum((X - theta) ** 2, axis=1), 4.0))


def closeness_bound(n, d):
    return 4 / n


def test_value_and_gradient():
    calls = []

    def counted(theta, X):
        calls.append(theta)
        return closeness(theta, X)

    objective = CustomObjective(counted, closeness_bound)
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 9.0]])
    points = np.array([[0.5, 1.0], [0.0, 0.0]])
    # Squared distances from (0.5, 1): 1.25, 1.25, 4 (cut). Gradient: -2/3 times the sum of theta - X_i over near rows.
    values, gradients = objective.value_and_gradient(points, rows)
    assert values.tolist() == pytest.approx([-6.5 / 3, -5 / 3], rel=1e-14)
    assert gradients.tolist() == [pytest.approx([0.0, -4 / 3]), pytest.approx([2 / 3, 0.0])]
    objective.value_and_gradient(points, rows[:2])
    assert len(calls) == 1  # built and compiled once for the expression, whatever the rows
    values, gradients = objective.value_and_gradient(points, np.empty((0, 2)))
    assert (values.tolist(), gradients.tolist()) == ([0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize("without_gradient", [disconnected_grad, undefined_grad])
def test_evaluate_needs_no_gradient_and_a_missing_one_is_named(without_gradient):
    def share_below(theta, X):
        return pt.mean(pt.cast(pt.all(without_gradient(theta) >= X, axis=1), "float64"))

    objective = CustomObjective(share_below, closeness_bound)
    assert objective.evaluate([[1.0], [3.0]], [[0.0], [2.0]]).tolist() == [0.5, 1.0]
    with pytest.raises(NotDifferentiableError, match="'custom' has no gradient in theta. Use slice"):
        objective.value_and_gradient([[1.0]], [[0.0]])


@pytest.mark.parametrize("bound", [0.25, lambda n, d: 0.25, np.float64(0.25)])
def test_sensitivity_is_the_users(bound):
    for objective in (CustomObjective(closeness, bound), CustomObjective(closeness, sensitivity=bound)):
        assert objective.sensitivity(7, 2) == 0.25
        assert objective.sensitivity(0, 2) == 0.0
        assert objective.upper_bound(7, 2) == math.inf
        assert objective.upper_bound(0, 2) == 0.0


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_sensitivity_that_is_not_finite_and_positive_is_refused(bad):
    with pytest.raises(ValueError, match="sensitivity must be finite and above 0"):
        CustomObjective(closeness, bad)
    with pytest.raises(ValueError, match=r"sensitivity\(5, 2\) of 'custom' must be finite and above 0"):
        CustomObjective(closeness, lambda n, d: bad).sensitivity(5, 2)


def test_wrong_types_are_refused():
    with pytest.raises(TypeError, match="expression must be a function"):
        CustomObjective(3.0, 1.0)
    with pytest.raises(TypeError, match="sensitivity must be a number"):
        CustomObjective(closeness, "1/n")
    with pytest.raises(TypeError, match="must be a number; got NoneType"):
        CustomObjective(closeness, lambda n, d: None).sensitivity(5, 2)
    with pytest.raises(TypeError, match="name must be a non-empty string"):
        CustomObjective(closeness, 1.0, name="")
    with pytest.raises(ValueError, match="n >= 0"):
        CustomObjective(closeness, 1.0).sensitivity(-1, 2)


DATA = np.ones((3, 2))


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        (lambda theta, X: 0.5, TypeError, "must return a PyTensor scalar; got float"),
        (lambda theta, X: X @ theta, TypeError, r"scalar of float type; got 1 dimension\(s\)"),
        (lambda theta, X: pt.sum(X @ theta > 0), TypeError, "of dtype int64"),
        (lambda theta, X: pt.mean(X), ValueError, "does not use theta"),
        (lambda theta, X: pt.mean(DATA @ theta), ValueError, "does not use X. Take the rows from the argument X"),
    ],
)
def test_expressions_that_are_no_objective_are_refused(expression, error, message):
    with pytest.raises(error, match=message):
        CustomObjective(expression, 1.0).build(pt.vector("theta"), pt.matrix("X"))


def test_it_is_a_depth_without_kernel_or_directions():
    objective = CustomObjective(closeness, 1.0, name="closeness")
    assert isinstance(objective, Depth)
    assert objective.differentiable
    assert objective.resolve(4) is objective
    assert objective.describe() == {"name": "closeness", "smoothing": None, "directions": None}
    for refused in (objective.kernel, objective.batch_kernel):
        with pytest.raises(TypeError, match=r"put build\(theta, X\) into the graph"):
            refused()
    with pytest.raises(TypeError, match="has no directions"):
        objective.with_directions(None)
    rows = np.zeros((2, 3))
    assert objective.prepare(rows) == (rows,)


def test_equal_when_expression_sensitivity_and_name_agree():
    assert CustomObjective(closeness, closeness_bound) == CustomObjective(closeness, closeness_bound)
    assert hash(CustomObjective(closeness, 0.5)) == hash(CustomObjective(closeness, 0.5))
    assert CustomObjective(closeness, 0.5) != CustomObjective(closeness, 0.25)
    assert CustomObjective(closeness, 0.5, "a") != CustomObjective(closeness, 0.5, "b")
