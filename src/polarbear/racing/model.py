"""``Model``: how a race makes posteriors, as far as a store can remember it.

A race that is read from its store is rated by the model it was run with. What ``polarbear.fit``
is given is remembered in full. Another function is remembered by its name: a store never holds
code, and nothing that is named in one is imported.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from dataclasses import replace as changed
from functools import partial
from typing import Any, Protocol, Self

from polarbear.data.names import suggest_name
from polarbear.data.rankings import Rankings, check_tolerances
from polarbear.errors import DataError
from polarbear.inference.fit import RANKING_OPTIONS, check_prior, load_engine
from polarbear.inference.fit import fit as default_fit
from polarbear.inference.posterior import Posterior
from polarbear.priors.bspline import BSpline
from polarbear.priors.dirichlet import Dirichlet, HierarchicalDirichlet
from polarbear.priors.gp import GP, HSGP, SparseGP
from polarbear.priors.hyper import Exponential, InverseGamma, LogNormal
from polarbear.priors.prior import Prior
from polarbear.priors.random_walk import RandomWalk

PRIORS: Mapping[str, Any] = {
    kind.__name__: kind
    for kind in (Dirichlet, HierarchicalDirichlet, BSpline, RandomWalk, SparseGP, HSGP, GP)
}
HYPERS: Mapping[str, Any] = {kind.__name__: kind for kind in (Exponential, InverseGamma, LogNormal)}


class Fit(Protocol):
    """How a race makes a posterior of rankings: :func:`polarbear.fit`, with options or without."""

    def __call__(self, data: Rankings, /, *, seed: int) -> Posterior:
        """Fit."""
        ...


FitOptions = Fit | Mapping[str, Any] | None
"""What ``fit=`` of a race may be: options of ``polarbear.fit``, a function, or the default."""


@dataclass(frozen=True)
class Model:
    """The options of ``polarbear.fit`` that a race makes its posteriors with.

    ``abs_tol``, ``rel_tol`` and ``weights`` say how runs are ranked for it. ``function`` is the
    name of another function that makes posteriors; the other fields are then unused.

    >>> model = Model.of({"prior": "GP", "evidence": "rankings"})
    >>> Model.from_plain(model.plain()) == model
    True
    >>> print(Model.of({}).differences(model))
    prior Dirichlet(alpha=1.0) and not GP(kernel='matern32', ...), evidence ...
    """

    prior: Prior = field(default_factory=Dirichlet)
    method: str = "laplace"
    evidence: str = "instances"
    options: tuple[tuple[str, Any], ...] = ()
    function: str = ""
    abs_tol: float = 0.0
    rel_tol: float = 0.0
    weights: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, fit: FitOptions) -> Self:
        """The model that ``fit=`` says; an error if ``polarbear.fit`` would refuse it."""
        if fit is None or fit is default_fit:
            return cls()
        if isinstance(fit, partial) and fit.func is default_fit and not fit.args:
            fit = fit.keywords
        if isinstance(fit, Mapping):
            return cls._of_options(dict(fit))
        if not callable(fit):
            raise DataError(
                f"fit={fit!r}: expected options of polarbear.fit, as in {{'prior': 'GP'}}, or a "
                "function of rankings and a seed"
            )
        return cls(function=_qualified(fit))

    @classmethod
    def _of_options(cls, options: dict[str, Any]) -> Self:
        prior = options.pop("prior", None) or Dirichlet()
        prior = _made_prior(prior, PRIORS) if isinstance(prior, str | Mapping) else prior
        check_prior(prior)
        method = options.pop("method", "laplace")
        evidence = options.pop("evidence", None)
        for name in ("seed", "times", "direction"):
            if name in options:
                raise DataError(f"{name}={options[name]!r} is for the race, not for its fit")
        ranking = _checked_ranking(
            {name: options.pop(name) for name in RANKING_OPTIONS if name in options}
        )
        load_engine(method, options)
        allowed = ("instances", "rankings") if method == "laplace" else ("rankings",)
        if evidence is not None and evidence not in allowed:
            raise DataError(
                f"evidence={evidence!r}: expected {' or '.join(map(repr, allowed))} for {method}"
            )
        strange = [name for name, value in options.items() if not _is_plain(value)]
        if type(prior) not in PRIORS.values() or strange:
            what = [type(prior).__qualname__, *strange]
            return cls(function=f"polarbear.fit with {', '.join(what)}")
        options_given = tuple(sorted(options.items()))
        return cls(prior, method, evidence or allowed[0], options_given, **ranking)

    def make_fit(self) -> Fit:
        """The function that makes posteriors by this model.

        If the model is a function that is not at hand, this is ``polarbear.fit`` and says so.
        """
        plain = changed(self, abs_tol=0.0, rel_tol=0.0, weights=())  # rankings are made already
        if plain == Model():
            return default_fit
        if not self.function:
            return partial(default_fit, **plain.given())

        def substitute(data: Rankings, /, *, seed: int) -> Posterior:
            posterior = default_fit(data, seed=seed)
            note = (
                f"the race was run with fit={self.function}, which its store cannot hold: this is "
                "polarbear.fit; pass the same fit to restore the race with it"
            )
            said = changed(posterior.diagnostics, notes=(*posterior.diagnostics.notes, note))
            return changed(posterior, diagnostics=said)

        return substitute

    def differences(self, other: Self) -> str:
        """What differs from another model, in words; "" if nothing does."""
        if self.function or other.function:
            return "" if self == other else f"fit {self} and not {other}"
        names = [one.name for one in fields(self)]
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in names)
        return ", ".join(f"{name} {_said(a)} and not {_said(b)}" for name, a, b in pairs if a != b)

    def given(self) -> dict[str, Any]:
        """The options to pass to ``polarbear.fit``; those of its defaults if this is a function."""
        model = Model() if self.function else self
        named = {"prior": model.prior, "method": model.method, "evidence": model.evidence}
        return {**named, **dict(model.options), **model.ranking()}

    def ranking(self) -> dict[str, Any]:
        """The options of ``polarbear.rank`` that are not its defaults.

        >>> Model.of({"rel_tol": 0.01, "weights": {"f1": 2}}).ranking()
        {'rel_tol': 0.01, 'weights': {'f1': 2.0}}
        """
        given = {"abs_tol": self.abs_tol, "rel_tol": self.rel_tol, "weights": dict(self.weights)}
        return {name: value for name, value in given.items() if value}

    def described(self) -> dict[str, str]:
        """Prior, evidence and method in words, for reports and JSON."""
        if self.function:
            return {"function": self.function}
        more = {name: str(value) for name, value in (*self.options, *self.ranking().items())}
        return {"prior": repr(self.prior), "evidence": self.evidence, "method": self.method, **more}

    def __str__(self) -> str:
        return self.function or ", ".join(self.described().values())

    def plain(self) -> dict[str, Any]:
        """The model as JSON has it."""
        if self.function:
            return {"function": self.function}
        return {
            "prior": _plain_prior(self.prior),
            "method": self.method,
            "evidence": self.evidence,
            "options": dict(self.options),
            **self.ranking(),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The model of what :meth:`plain` gave."""
        if "function" in plain:
            return cls(function=str(plain["function"]))
        options = plain.get("options", {})
        names = ("prior", "method", "evidence", *RANKING_OPTIONS)
        named = {name: plain[name] for name in names if name in plain}
        return cls._of_options({**options, **named})


def _checked_ranking(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options of ``polarbear.rank`` as fields of a model; an error if it would refuse them."""
    weights = given.get("weights") or {}
    if not isinstance(weights, Mapping):
        raise DataError(f"weights={weights!r}: expected names of instances and numbers")
    try:
        tolerances = {n: float(given[n]) for n in ("abs_tol", "rel_tol") if n in given}
        numbers = tuple(sorted((str(name), float(weight)) for name, weight in weights.items()))
    except (TypeError, ValueError):
        raise DataError("tolerances and weights must be numbers") from None
    check_tolerances(tolerances.get("abs_tol", 0.0), tolerances.get("rel_tol", 0.0))
    for name, weight in numbers:
        if not 0 <= weight < float("inf"):
            raise DataError(f"weight {weight} of instance {name!r} is not a number >= 0")
    return {**tolerances, "weights": numbers}


def _qualified(function: Callable[..., Any]) -> str:
    """The name of a function, or of the class of what can be called."""
    named = function.func if isinstance(function, partial) else function
    named = named if hasattr(named, "__qualname__") else type(named)
    return f"{named.__module__}.{getattr(named, '__qualname__', '?')}"


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _plain_prior(prior: Any) -> Any:
    if _is_plain(prior):
        return prior
    parts = {one.name: _plain_prior(getattr(prior, one.name)) for one in fields(prior) if one.init}
    return {"name": type(prior).__name__, **parts}


def _made_prior(plain: str | Mapping[str, Any], names: Mapping[str, Any]) -> Any:
    """A prior by its name, or by its name and fields."""
    parts = {"name": plain} if isinstance(plain, str) else dict(plain)
    name = str(parts.pop("name", ""))
    if name not in names:
        raise DataError(f"prior={name!r}: {suggest_name(name, list(names))}")
    made = {
        key: _made_prior(value, HYPERS) if isinstance(value, Mapping) else value
        for key, value in parts.items()
    }
    try:
        return names[name](**made)
    except (TypeError, ValueError) as error:
        raise DataError(f"prior={name}: {error}") from None


def _said(value: Any) -> str:
    return str(dict(value)) if isinstance(value, tuple) else str(value)
