"""``Model``: the storable description of how a race makes posteriors.

A race that is read from its store uses the model with which it was run. Options of
``polarbear.fit`` are stored completely. Of another function only the name is stored: a store never
contains code, and a name in a store is never imported.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Protocol, Self

from numpy.typing import ArrayLike

from polarbear.data.positions import check_tolerances
from polarbear.data.rankings import Rankings, check_ties, rank
from polarbear.data.runs import Runs
from polarbear.errors import DataError, DataWarning, FitWarning
from polarbear.inference.fit import RANKING_OPTIONS, check_keywords
from polarbear.inference.fit import fit as default_fit
from polarbear.inference.posterior import Posterior
from polarbear.priors.by_name import BY_NAME, make_prior
from polarbear.priors.dirichlet import Dirichlet
from polarbear.priors.prior import Prior
from polarbear.racing.jobs import derive_seed


class Fit(Protocol):
    """The type of functions that make a posterior of rankings, such as :func:`polarbear.fit`."""

    def __call__(self, data: Rankings, /, *, seed: int) -> Posterior:
        """Return the posterior of rankings."""
        ...


FitOptions = Fit | Mapping[str, Any] | None
"""The type of ``fit=`` of a race: options of ``polarbear.fit``, a function, or None."""


def read_options(fit: FitOptions) -> FitOptions:
    """Return the options that belong to ``fit`` of a race, without those that are None.

    A function other than ``polarbear.fit`` is returned as it is.

    >>> from functools import partial
    >>> read_options(None), read_options(partial(default_fit, prior="GP", evidence=None))
    ({}, {'prior': 'GP'})
    """
    if fit is None or fit is default_fit:
        return {}
    if isinstance(fit, partial) and fit.func is default_fit and not fit.args:
        fit = fit.keywords
    if isinstance(fit, Mapping):
        return {name: value for name, value in fit.items() if value is not None}
    return fit


@dataclass(frozen=True)
class Model:
    """The options of ``polarbear.fit`` and ``polarbear.rank`` with which a race makes posteriors.

    ``options``: further ones that differ from the defaults. ``function`` is the name of another
    function that makes posteriors; of the other fields, only options of ``rank`` are then used.

    >>> model = Model.of({"prior": "GP", "evidence": "rankings"})
    >>> Model.from_plain(model.to_plain()) == model
    True
    >>> print(Model.of({}).describe_differences(model))
    prior Dirichlet(alpha=1.0) and not GP(kernel='matern32', ...), evidence ...
    """

    prior: Prior = field(default_factory=Dirichlet)
    evidence: str = "instances"
    method: str = "laplace"
    ties: str = "unordered"
    options: tuple[tuple[str, Any], ...] = ()
    function: str = ""

    @classmethod
    def of(cls, fit: FitOptions) -> Self:
        """Make a model from the argument ``fit`` of a race; raise an error for invalid options."""
        fit = read_options(fit)
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
        ranking = {name: options.pop(name) for name in RANKING_OPTIONS if name in options}
        ties = ranking.pop("ties", cls.ties)
        check_ties(ties)
        ranking = _check_rank_options(ranking)
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
        return cls(
            prior=prior,
            evidence=evidence or allowed[0],
            method=method,
            ties=ties,
            options=tuple(sorted({**options, **ranking}.items())),
        )

    def make_fit(self) -> Fit:
        """Return the function that makes posteriors with the options of this model.

        If the model is another function, of which only the name is stored, ``polarbear.fit``
        replaces it and adds a note to the diagnostics.
        """
        options = self.fit_options()
        if not self.function:
            is_default = options == Model().fit_options()
            return default_fit if is_default else partial(default_fit, **options)

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
        own, others = self._list_options(), other._list_options()
        pairs = {name: (own.get(name), others.get(name)) for name in {**own, **others}}
        return ", ".join(
            f"{name} {_format_option(a)} and not {_format_option(b)}"
            for name, (a, b) in pairs.items()
            if a != b
        )

    def _list_options(self) -> dict[str, Any]:
        """Return all options by name."""
        named = {"prior": self.prior, "evidence": self.evidence, "method": self.method}
        return {**named, "ties": self.ties, **dict(self.options)}

    def fit_options(self) -> dict[str, Any]:
        """Return options for ``polarbear.fit``; the defaults if the race has a custom function."""
        options = (Model() if self.function else self)._list_options()
        return {name: options[name] for name in options if name not in RANKING_OPTIONS}

    def rank_options(self) -> dict[str, Any]:
        """Return the options of ``polarbear.rank`` that differ from its defaults.

        >>> Model.of({"rel_tol": 0.01, "weights": {"f1": 2}}).rank_options()
        {'rel_tol': 0.01, 'weights': {'f1': 2.0}}
        """
        options = {name: value for name, value in self.options if name in RANKING_OPTIONS}
        return options if self.ties == Model.ties else {**options, "ties": self.ties}

    def rank(self, runs: Runs, times: ArrayLike) -> Rankings:
        """Rank runs with the options of the model, of whose weights those of their instances."""
        options = self.rank_options()
        if given := options.get("weights"):
            options["weights"] = {name: given[name] for name in given if name in runs.instances}
        return rank(runs, times, **options)

    @property
    def heaviest(self) -> float | None:
        """The largest weight that an instance can have; None if all have the same."""
        weights = dict(self.options).get("weights")
        return max(1.0, *weights.values()) if weights else None

    def describe(self) -> dict[str, str]:
        """Return prior, evidence, method and further options as text, for reports and JSON."""
        if self.function:
            return {"function": self.function}
        options = {**self.fit_options(), **self.rank_options()}
        return {name: _format_option(value) for name, value in options.items()}

    def __str__(self) -> str:
        return self.function or ", ".join(self.describe().values())

    def to_plain(self) -> dict[str, Any]:
        """Return the model as plain values for JSON."""
        if self.function:
            return {"function": self.function}
        return {**self._list_options(), "prior": _prior_to_plain(self.prior)}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Return the model from the plain values that :meth:`to_plain` returned."""
        function = plain.get("function")
        return cls(function=str(function)) if function else cls._of_options(dict(plain))


def fit_posterior(fit: Fit, rankings: Rankings | None, seed: int, round_: int) -> Posterior | None:
    """Fit the posterior of a round; None if fewer than two algorithms have rankings.

    There are no warnings, as the race itself causes gaps in the data and checks diagnostics.
    """
    if rankings is None or len(rankings.algorithms) < 2:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", FitWarning)
        return fit(rankings, seed=derive_seed(seed, ["fit", round_]))


def _check_rank_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of ``polarbear.rank`` without defaults; raise an error for bad ones."""
    weights = given.get("weights") or {}
    if not isinstance(weights, Mapping):
        raise DataError("expected a mapping such as {'instance-1': 2.0}", weights=weights)
    try:
        tolerances = {n: float(given[n]) for n in ("abs_tol", "rel_tol") if n in given}
        numbers = {str(name): float(weight) for name, weight in sorted(weights.items())}
    except (TypeError, ValueError):
        raise DataError("abs_tol, rel_tol and weights must be numbers") from None
    check_tolerances(tolerances.get("abs_tol", 0.0), tolerances.get("rel_tol", 0.0))
    for name in ("targets", "top"):
        if given.get(name) is not None:
            raise DataError(
                f"{name}={given[name]!r}: a race has no {name}; analyse its runs with "
                f"fit(result.runs, {name}=...)"
            )
    for name, weight in numbers.items():
        if not 0 <= weight < float("inf"):
            raise DataError(f"weight {weight} of instance {name!r} is not a number >= 0")
    return {name: value for name, value in {**tolerances, "weights": numbers}.items() if value}


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
    return "the default" if value is None else str(value)
