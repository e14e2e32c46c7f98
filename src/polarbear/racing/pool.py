"""``Pool``: the instances of a race, and until when each algorithm was observed on them."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from polarbear.data.run import Status
from polarbear.inference.e_values import Shares
from polarbear.racing.jobs import RunId, derive_seed


@dataclass
class Pool:
    """Instances are unused, then used; those that were dropped are not used any more."""

    unused: dict[str, None] = field(default_factory=dict)  # in drawing order
    used: dict[str, int] = field(default_factory=dict)  # used instance: its place in `order`
    order: list[str] = field(default_factory=list)  # used instances, in order of use
    dropped: set[str] = field(default_factory=set)  # instances excluded from further runs
    # By instance and algorithm: the time until which the algorithm was or will be observed.
    observed_until: dict[str, dict[str, float]] = field(default_factory=dict)
    # Algorithm and instance of runs that were cut before their planned end.
    not_extendable: set[tuple[str, str]] = field(default_factory=set)
    backlog: dict[str, int] = field(default_factory=dict)  # instances used before it joined
    next_cached: Counter[str] = field(default_factory=Counter)  # place in `order` to consider next
    listed_first: int = 0  # how many there were to draw from when the first was used
    ends: list[int] = field(default_factory=list)  # of how many instances each end had used all

    @property
    def names(self) -> set[str]:
        """The used and unused instances, without dropped ones."""
        return {*self.unused, *self.used} - self.dropped

    def offer(self, instances: Iterable[str], seed: int) -> None:
        """Add instances to those that can be drawn.

        They are sorted by a number that depends on the name alone, so that the drawing order does
        not depend on the order of offers.
        """
        names = tuple(instances)
        self.dropped.difference_update(names)
        fresh = {*self.unused, *names} - self.used.keys()
        order = sorted(fresh, key=lambda name: (derive_seed(seed, ["draw", name]), name))
        self.unused = dict.fromkeys(order)

    def enter(self, algorithm: str) -> None:
        """Note which instances were used before an algorithm joined."""
        self.backlog[algorithm] = len(self.order)
        self.next_cached[algorithm] = 0

    def use(self, instance: str) -> None:
        """Move an instance from the unused to the used ones, unless it was used before."""
        if instance not in self.used:
            self.listed_first = self.listed_first or len(self.unused.keys() | {instance})
            self.unused.pop(instance, None)
            self.used[instance] = len(self.order)
            self.order.append(instance)
            self.observed_until[instance] = {}

    def plan(self, key: RunId, horizon: float) -> None:
        """Note that a run was requested until a time."""
        self.observed_until[key.instance][key.algorithm] = horizon
        following = self.used[key.instance] + 1
        self.next_cached[key.algorithm] = max(self.next_cached[key.algorithm], following)

    def observe(self, key: RunId, until: float, status: Status) -> None:
        """Note that an algorithm was observed on an instance until a later time than before.

        A run that was not cut has ended, so nothing later can be observed: the time is infinite.
        """
        until = until if status == Status.CUT else float("inf")
        observed = self.observed_until[key.instance]
        observed[key.algorithm] = max(until, observed.get(key.algorithm, 0.0))

    def restore(self, key: RunId, before: float) -> None:
        """Reset until when an algorithm was observed to its value before a request."""
        observed = self.observed_until[key.instance]
        observed.pop(key.algorithm, None)
        if before:
            observed[key.algorithm] = before

    def find_observed(self, algorithms: Collection[str]) -> set[str]:
        """Return the instances on which any of these algorithms was or will be observed."""
        return {
            instance
            for instance, observed in self.observed_until.items()
            if not observed.keys().isdisjoint(algorithms)
        }

    @property
    def n_used(self) -> int:
        """The number of instances used so far, without those that were withdrawn."""
        return len(self.order) - len(self.dropped & self.used.keys())

    @property
    def n_observed(self) -> int:
        """The number of instances with runs that count or are under way."""
        return sum(k not in self.dropped for k, own in self.observed_until.items() if own)

    def note_end(self) -> None:
        """Note that a decision was made with all instances used."""
        if self.ends[-1:] != [len(self.order)]:
            self.ends.append(len(self.order))

    def error_shares(self, *, endless: bool) -> Shares:
        """Return the shares of the error for e-values, and for one test at this look.

        >>> Pool().error_shares(endless=True)
        Shares(on_the_way=1.0, now=0.0)
        """
        if endless:
            return Shares()
        earlier = len(self.ends) - (self.ends[-1:] == [len(self.order)])
        shares = Shares.at_end_of(self.listed_first or len(self.unused), earlier)
        return shares._replace(now=0.0) if self.unused else shares

    def withdraw(self, pairs: Iterable[tuple[str, str]], dropped: Iterable[str]) -> None:
        """Forget what was observed of pairs (algorithm, instance), and exclude instances."""
        self.not_extendable -= set(pairs)
        for algorithm, instance in pairs:
            self.observed_until.get(instance, {}).pop(algorithm, None)
        self.dropped.update(dropped)
        if self.ends:
            self.ends[-1] = 0  # the next end has other runs
        for instance in dropped:
            self.unused.pop(instance, None)
