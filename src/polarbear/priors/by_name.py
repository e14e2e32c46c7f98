"""``make_prior``: a prior from its name, as everywhere where a prior is chosen by a text."""

import ast
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from polarbear.data.names import suggest_name
from polarbear.errors import DataError
from polarbear.priors.bspline import BSpline
from polarbear.priors.dirichlet import Dirichlet, HierarchicalDirichlet
from polarbear.priors.gp import GP, HSGP, SparseGP
from polarbear.priors.hyper import Exponential, Hyper, InverseGamma, LogNormal
from polarbear.priors.prior import Prior
from polarbear.priors.random_walk import RandomWalk

BY_NAME: Mapping[str, Any] = {
    kind.__name__: kind
    for kind in (Dirichlet, HierarchicalDirichlet, BSpline, RandomWalk, SparseGP, HSGP, GP)
}
"""The seven priors of the paper; capital letters do not matter where a name is given."""

HYPERS: Mapping[str, Any] = {kind.__name__: kind for kind in (Exponential, InverseGamma, LogNormal)}


def make_prior(given: Prior | str | Mapping[str, Any] | None) -> Prior:
    """Return a prior from itself, its name, or a mapping of its name and fields.

    None is the default prior.

    >>> make_prior("bspline") == BSpline(), make_prior({"name": "Dirichlet", "alpha": 2.0})
    (True, Dirichlet(alpha=2.0))
    >>> make_prior("spline")
    Traceback (most recent call last):
    polarbear.errors.DataError: prior='spline': there is none of this name; did you mean 'BSpline'?
    """
    if given is None:
        return Dirichlet()
    prior: Any = _make(given, BY_NAME) if isinstance(given, str | Mapping) else given
    if isinstance(prior, type):
        raise DataError(f"prior={prior.__name__} is a class: write {prior.__name__}()")
    if not hasattr(prior, "hypers"):
        raise DataError("expected a prior such as polarbear.priors.GP(), or its name", prior=prior)
    for name, hyper in prior.hypers().items():
        if not isinstance(hyper, Hyper):
            raise DataError(
                f"{name}={hyper!r} in {type(prior).__name__}: expected a distribution, such as "
                "polarbear.priors.LogNormal(0.0, 0.5); a small sd fixes the value"
            )
    return prior


def parse_prior(text: str) -> str | dict[str, Any]:
    """Return what :func:`make_prior` takes from a name and parameters as in Python, without quotes.

    >>> parse_prior("BSpline(warp=linear, degree=2)"), parse_prior("gp")
    ({'name': 'BSpline', 'warp': 'linear', 'degree': 2}, 'gp')
    >>> make_prior(parse_prior("GP(length=InverseGamma(5, 3))")).length
    InverseGamma(shape=5, scale=3)
    """
    try:
        plain = _read_node(ast.parse(text.strip(), mode="eval").body)
        make_prior(plain)  # refuses what no prior is
        return plain
    except (SyntaxError, ValueError):
        raise DataError("expected a name such as GP, or GP(warp=linear)", prior=text) from None


def _read_node(node: ast.expr) -> Any:
    """Return a name as text, a call as its name and fields, and anything else as a constant."""
    if isinstance(node, ast.Name):
        return node.id
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    name = str(_read_node(node.func))
    kind = {known.lower(): one for known, one in {**BY_NAME, **HYPERS}.items()}.get(name.lower())
    order = [one.name for one in fields(kind)] if kind is not None else []
    parts = {key: _read_node(value) for key, value in zip(order, node.args, strict=False)}
    return {"name": name, **parts, **{str(k.arg): _read_node(k.value) for k in node.keywords}}


def _make(plain: str | Mapping[str, Any], kinds: Mapping[str, Any]) -> Any:
    """Return the object of the kind with this name, or with the name and fields of a mapping."""
    parts = {"name": plain} if isinstance(plain, str) else dict(plain)
    name = str(parts.pop("name", ""))
    kind = {known.lower(): kind for known, kind in kinds.items()}.get(name.lower())
    if kind is None:
        raise DataError(
            f"there is none of this name; {suggest_name(name, list(kinds))}", prior=name
        )
    arguments = {
        key: _make(value, HYPERS) if isinstance(value, Mapping) else value
        for key, value in parts.items()
    }
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise DataError(f"its arguments are invalid: {error}", prior=name) from None
