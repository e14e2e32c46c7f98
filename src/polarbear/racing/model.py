"""``Model``: the storable description of how a race makes posteriors.

A race that is read from its store uses the model with which it was run. Options of
``polarbear.fit`` are stored completely. Of another function only the name is stored: a store never
contains code, and a name in a store is never imported.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Protocol, Self

from polarbear.data.positions import check_tolerances
from polarbear.data.rankings import Rankings, check_ties
from polarbear.errors import DataError
from polarbear.inference.fit import RANKING_OPTIONS, check_keywords
from polarbear.inference.fit import fit as default_fit
from polarbear.inference.posterior import Posterior
from polarbear.priors.by_name import BY_NAME, make_prior
from polarbear.priors.dirichlet import Dirichlet
from polarbear.priors.prior import Prior


class Fit(Protocol):
    """The type of functions that make a posterior of rankings, such as :func:`polarbear.fit`."""

    def __call__(self, data: Rankings, /, *, seed: int) -> Posterior:
        """Return the posterior of rankings."""
        ...


FitOptions = Fit | Mapping[str, Any] | None
"""The type of ``fit=`` of a race: options of ``polarbear.fit``, a function, or None."""


@dataclass(frozen=True)
class Model:
    """The options of ``polarbear.fit`` with which a race makes its posteriors.

    ``abs_tol``, ``rel_tol``, ``ties`` and ``weights`` are options of ``polarbear.rank``.
    ``function`` is the name of another function that makes posteriors; the other fields are then
    unused.

    >>> model = Model.of({"prior": "GP", "evidence": "rankings"})
    >>> Model.from_plain(model.to_plain()) == model
    True
    >>> print(Model.of({}).describe_differences(model))
    prior Dirichlet(alpha=1.0) and not GP(kernel='matern32', ...), evidence ...
    """

    prior: Prior = field(default_factory=Dirichlet)
    method: str = "laplace"
    evidence: str = "instances"
    options: tuple[tuple[str, Any], ...] = ()
    function: str = ""
    abs_tol: float = 0.0
    rel_tol: float = 0.0
    ties: str = "unordered"
    weights: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, fit: FitOptions) -> Self:
        """Make a model from the argument ``fit`` of a race; raise an error for invalid options."""
        if fit is None or fit is default_fit:
            return cls()
        if isinstance(fit, partial) and fit.func is default_fit and not fit.args:
            fit = fit.keywords
        if isinstance(fit, Mapping):
            return cls._of_options(dict(fit))
        if not callable(fit):
            raise DataError(
                "expected options of polarbear.fit as in {'prior': 'GP'}, or a function",
                fit=fit,
            )
        return cls(function=_get_full_name(fit))

    @classmethod
    def _of_options(cls, options: dict[str, Any]) -> Self:
        prior = make_prior(options.pop("prior", None) or None)
        method = options.pop("method", "laplace")
        evidence = options.pop("evidence", None)
        for name in ("seed", "times", "direction"):
            if name in options:
                raise DataError(
                    f"{name}={options[name]!r} is an argument of the race: pass it there, not in "
                    "fit="
                )
        rank_options = _check_rank_options(
            {name: options.pop(name) for name in RANKING_OPTIONS if name in options}
        )
        own = ("prior", "method", "evidence", *RANKING_OPTIONS)
        check_keywords("the option fit= of a race", options, method, own=own)
        allowed = ("instances", "rankings") if method == "laplace" else ("rankings",)
        if evidence is not None and evidence not in allowed:
            raise DataError(
                f"expected {' or '.join(map(repr, allowed))} for {method}", evidence=evidence
            )
        not_storable = [name for name, value in options.items() if not _is_plain(value)]
        if type(prior) not in BY_NAME.values() or not_storable:
            names = [type(prior).__qualname__, *not_storable]
            return cls(function=f"polarbear.fit with {', '.join(names)}")
        sorted_options = tuple(sorted(options.items()))
        return cls(prior, method, evidence or allowed[0], sorted_options, **rank_options)

    def make_fit(self) -> Fit:
        """Return the function that makes posteriors with the options of this model.

        If the model is another function, of which only the name is stored, ``polarbear.fit``
        replaces it and adds a note to the diagnostics.
        """
        # A fit takes rankings, for which the options of rank were used already.
        without_ranking = replace(self, abs_tol=0.0, rel_tol=0.0, ties=Model.ties, weights=())
        if without_ranking == Model():
            return default_fit
        if not self.function:
            return partial(default_fit, **without_ranking.fit_options())

        def substitute(data: Rankings, /, *, seed: int) -> Posterior:
            posterior = default_fit(data, seed=seed)
            note = (
                f"the race was run with fit={self.function}, which its store cannot hold: this is "
                "polarbear.fit; pass the same fit to restore the race with it"
            )
            notes = (*posterior.diagnostics.notes, note)
            diagnostics = replace(posterior.diagnostics, notes=notes)
            return replace(posterior, diagnostics=diagnostics)

        return substitute

    def describe_differences(self, other: Self) -> str:
        """Return the differences from another model as text; "" if there are none."""
        if self.function or other.function:
            return "" if self == other else f"fit {self} and not {other}"
        names = [part.name for part in fields(self)]
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in names)
        return ", ".join(
            f"{name} {_format_option(a)} and not {_format_option(b)}"
            for name, a, b in pairs
            if a != b
        )

    def fit_options(self) -> dict[str, Any]:
        """Return options for ``polarbear.fit``; the defaults if the race has a custom function."""
        model = Model() if self.function else self
        named = {"prior": model.prior, "method": model.method, "evidence": model.evidence}
        return {**named, **dict(model.options)}

    @property
    def heaviest(self) -> float | None:
        """The largest weight that an instance can have; None if all have the same."""
        return max(1.0, *(weight for _, weight in self.weights)) if self.weights else None

    def rank_options(self) -> dict[str, Any]:
        """Return the options of ``polarbear.rank`` that differ from its defaults.

        >>> Model.of({"rel_tol": 0.01, "weights": {"f1": 2}}).rank_options()
        {'rel_tol': 0.01, 'weights': {'f1': 2.0}}
        """
        given = {"abs_tol": self.abs_tol, "rel_tol": self.rel_tol, "weights": dict(self.weights)}
        ties = {} if self.ties == Model.ties else {"ties": self.ties}
        return {**{name: value for name, value in given.items() if value}, **ties}

    def describe(self) -> dict[str, str]:
        """Return prior, evidence and method as text, for reports and JSON."""
        if self.function:
            return {"function": self.function}
        more = {name: str(value) for name, value in (*self.options, *self.rank_options().items())}
        return {"prior": repr(self.prior), "evidence": self.evidence, "method": self.method, **more}

    def __str__(self) -> str:
        return self.function or ", ".join(self.describe().values())

    def to_plain(self) -> dict[str, Any]:
        """Return the model as plain values for JSON."""
        if self.function:
            return {"function": self.function}
        return {
            "prior": _prior_to_plain(self.prior),
            "method": self.method,
            "evidence": self.evidence,
            "options": dict(self.options),
            "ties": self.ties,
            **self.rank_options(),
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Return the model from the plain values that :meth:`to_plain` returned.

        Stores from before there was ``ties`` averaged over the orders of tied algorithms.
        """
        if "function" in plain:
            return cls(function=str(plain["function"]))
        options = plain.get("options", {})
        names = ("prior", "method", "evidence", *RANKING_OPTIONS)
        named = {name: plain[name] for name in names if name in plain}
        return cls._of_options({"ties": "averaged", **options, **named})


def _check_rank_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of ``polarbear.rank`` as fields of a model; raise an error for bad ones."""
    weights = given.get("weights") or {}
    if not isinstance(weights, Mapping):
        raise DataError("expected a mapping such as {'instance-1': 2.0}", weights=weights)
    try:
        tolerances = {n: float(given[n]) for n in ("abs_tol", "rel_tol") if n in given}
        numbers = tuple(sorted((str(name), float(weight)) for name, weight in weights.items()))
    except (TypeError, ValueError):
        raise DataError("abs_tol, rel_tol and weights must be numbers") from None
    check_tolerances(tolerances.get("abs_tol", 0.0), tolerances.get("rel_tol", 0.0))
    for name in ("targets", "top"):
        if given.get(name) is not None:
            raise DataError(
                f"{name}={given[name]!r}: a race has no {name}; analyse its runs with "
                f"fit(result.runs, {name}=...)"
            )
    ties = given.get("ties", Model.ties)
    check_ties(ties)
    for name, weight in numbers:
        if not 0 <= weight < float("inf"):
            raise DataError(f"weight {weight} of instance {name!r} is not a number >= 0")
    return {**tolerances, "ties": ties, "weights": numbers}


def _get_full_name(function: Callable[..., Any]) -> str:
    """Return the module and name of a function, or of the class of a callable object."""
    named = function.func if isinstance(function, partial) else function
    named = named if hasattr(named, "__qualname__") else type(named)
    return f"{named.__module__}.{getattr(named, '__qualname__', '?')}"


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _prior_to_plain(prior: Any) -> Any:
    if _is_plain(prior):
        return prior
    parts = {
        part.name: _prior_to_plain(getattr(prior, part.name)) for part in fields(prior) if part.init
    }
    return {"name": type(prior).__name__, **parts}


def _format_option(value: Any) -> str:
    return str(dict(value)) if isinstance(value, tuple) else str(value)
