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

from polarbear.data.names import guess
from polarbear.data.rankings import Rankings
from polarbear.errors import DataError
from polarbear.inference import check_prior, engine_of
from polarbear.inference import fit as default_fit
from polarbear.posterior import Posterior
from polarbear.priors.any import Prior
from polarbear.priors.bspline import BSpline
from polarbear.priors.dirichlet import Dirichlet, HierarchicalDirichlet
from polarbear.priors.gp import GP, HSGP, SparseGP
from polarbear.priors.hyper import Exponential, InverseGamma, LogNormal
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

    ``function`` is the name of another function that does it; the other fields are then unused.

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
        engine_of(method, options)
        allowed = ("instances", "rankings") if method == "laplace" else ("rankings",)
        if evidence is not None and evidence not in allowed:
            raise DataError(
                f"evidence={evidence!r}: expected {' or '.join(map(repr, allowed))} for {method}"
            )
        strange = [name for name, value in options.items() if not _is_plain(value)]
        if type(prior) not in PRIORS.values() or strange:
            what = [type(prior).__qualname__, *strange]
            return cls(function=f"polarbear.fit with {', '.join(what)}")
        return cls(prior, method, evidence or allowed[0], tuple(sorted(options.items())))

    def make_fit(self) -> Fit:
        """The function that makes posteriors by this model.

        If the model is a function that is not at hand, this is ``polarbear.fit`` and says so.
        """
        if self == Model():
            return default_fit
        if not self.function:
            return partial(default_fit, **self.given())

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
        return {**named, **dict(model.options)}

    def described(self) -> dict[str, str]:
        """Prior, evidence and method in words, for reports and JSON."""
        if self.function:
            return {"function": self.function}
        more = {name: str(value) for name, value in self.options}
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
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The model of what :meth:`plain` gave."""
        if "function" in plain:
            return cls(function=str(plain["function"]))
        options = plain.get("options", {})
        named = {name: plain[name] for name in ("prior", "method", "evidence") if name in plain}
        return cls._of_options({**options, **named})


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
        raise DataError(f"prior={name!r}: {guess(name, list(names))}")
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
