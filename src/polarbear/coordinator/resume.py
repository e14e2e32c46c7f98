"""``begin_or_resume``: start a new race, or resume that of a store if the call agrees with it.

A call with other arguments, another model or other content under the same names is refused before
anything is stored. Otherwise runs of different solvers or instances would have the same name.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from polarbear._text import format_count, format_list
from polarbear.data.names import natural_sort_key, suggest_name
from polarbear.errors import DataError, StoreError
from polarbear.racing.budget import Budget
from polarbear.racing.events import Identified, Started
from polarbear.racing.questions.question import Question
from polarbear.racing.questions.stored import UnknownQuestion
from polarbear.racing.race import Race
from polarbear.running.solvers.identity import (
    check_distinct_files,
    describe_differences,
    find_renamed,
    identify,
    select_new_parts,
)
from polarbear.running.solvers.setup import Setup
from polarbear.store.log import Store
from polarbear.store.restoring import restore_race


class ChangedSetupError(StoreError):
    """The solvers or instances of a call differ from those of the race in the store.

    ``difference`` says what differs; the message also says what to do.
    """

    def __init__(self, difference: str, advice: str) -> None:
        super().__init__(f"{difference}. {advice}")
        self.difference = difference


R = TypeVar("R", bound=Race)


def begin_or_resume(
    kind: type[R],
    setup: Setup,
    question: Question,
    budget: Budget,
    seed: int,
    store: Store | None,
) -> tuple[R, Setup]:
    """Begin a race, or resume the one in the store; return it, and the setup with its names."""
    if store is None or not store.n_events:
        identity = identify(setup)
        check_distinct_files(identity)
        race = kind(
            setup.solvers,
            setup.times,
            direction=setup.direction,
            instances=setup.instances.names,
            question=question,
            budget=budget,
            seed=seed,
            clock=setup.clock,
        )
        race.record(identity)
        return race, setup
    first = next(store.read())
    _compare_arguments(first, setup, question, seed, store.name)
    question = question.at(setup.times, setup.clock)
    race = restore_race(store, question=question, kind=kind)
    if isinstance(race.question, UnknownQuestion):
        raise StoreError(
            f"the race in {store.name} has a question of your own, {race.question.name}: pass the "
            "same question= again"
        )
    known = {verdict.algorithm for verdict in race.verdicts()}
    _require_solvers(race, setup, store.name)
    setup, identity = _compare_names(race, setup, store.name)
    for name in setup.solvers:
        if name not in known:
            Race.add(race, name)
    if setup.instances.names is not None:
        race.offer(setup.instances.names)
    if (race.question, race.budget) != (question, budget):
        Race.extend(race, question, budget)
    if identity is not None:
        race.record(identity)
    return race, setup


def _require_solvers(race: Race, setup: Setup, where: str) -> None:
    """Raise an error if the call lacks solvers that are still racing in the store."""
    missing = [name for name in race.pareto if name not in setup.solvers]
    if not missing:
        return
    names, verb = list(setup.solvers), "is" if len(missing) == 1 else "are"
    close = [meant for name in missing if "did you mean" in (meant := suggest_name(name, names))]
    raise DataError(
        f"{', '.join(map(repr, missing))} {verb} racing in {where}, but {verb} not among the "
        f"solvers{f'; {close[0]}' if close else '.'} Pass all solvers that are racing, also those "
        f"added by result.add: race({{..., {', '.join(f'{name!r}: ...' for name in missing)}}}, "
        "...). To remove a solver, resume with it and call result.remove(name)"
    )


def _compare_names(race: Race, setup: Setup, where: str) -> tuple[Setup, Identified | None]:
    """Raise an error if solvers or instances of the call differ from those of the race.

    Returns the setup with the names of the race, and the new parts of the identity to record.
    """
    known = race.state.progress.identity
    names = race.state.pool.names if setup.instances.names is not None else set()
    setup = setup.rename_instances(
        {new: old for new, old in known.aliases.items() if old in names - {new}}
    )
    now = identify(setup)
    check_distinct_files(now)
    renamed = find_renamed(names, setup, known, now)
    if renamed:
        setup = setup.rename_instances(renamed)
        now = replace(identify(setup), aliases=renamed)
    missing = sorted(names - now.instances.keys(), key=natural_sort_key)
    if missing:
        raise DataError(
            f"{format_count(len(missing), 'instance')} of the race in {where} "
            f"{'is' if len(missing) == 1 else 'are'} not among the instances: "
            f"{format_list(missing)}. "
            "Pass all instances of the race. To go on without one, withdraw its runs first: "
            "polarbear forget STORE --instance NAME"
        )
    changes = []
    if renamed:
        new, old = next(iter(renamed.items()))
        changes.append(
            f"another name in this call for {format_count(len(renamed), 'instance')} of the race: "
            f"{old!r} is now {new!r}"
        )
    return setup, compare_identity(known, now, where, changes)


def compare_identity(
    known: Identified,
    now: Identified,
    where: str,
    changes: Sequence[str] = (),
) -> Identified | None:
    """Return fingerprints that are new to the race; raise an error for changes unless accepted."""
    changes = [*changes, *describe_differences(known, now)]
    if changes and not known.accepts_changes:
        difference = (
            f"the solvers or instances of this call differ from those of the race in {where}: "
            f"{'; '.join(changes[:4])}{'; ...' if len(changes) > 4 else ''}"
        )
        raise ChangedSetupError(
            difference,
            "Old and new runs must not be mixed: pass the original solvers and instances, give "
            "changed ones new names, or withdraw the old runs (polarbear forget, result.withdraw). "
            "To resume all the same and record the changes, call open_store(...).accept_changes() "
            "first, or pass --accept-changes to polarbear race",
        )
    identity = select_new_parts(known, now)
    if identity is None:
        return Identified() if known.accepts_changes else None
    return replace(identity, changes=tuple(changes))


def _compare_arguments(
    first: object, setup: Setup, question: Question, seed: int, where: str
) -> None:
    """Raise an error if the race in the store was started with other arguments than the call's."""
    if not isinstance(first, Started):
        raise StoreError(
            f"{where} is not the store of a race (its first event starts no race): name another"
        )
    arguments = {
        "times": (first.times, setup.times),
        "direction": (first.direction, setup.direction),
        "clock": (first.clock, setup.clock),
        "seed": (first.seed, seed),
        "endless instances": (first.endless, setup.instances.names is None),
    }
    for name, (stored, given) in arguments.items():
        if stored != given:
            raise StoreError(
                f"the race in {where} has {name} = {stored!r:.60}, but the call has "
                f"{given!r:.60}: pass the same {name}, or another store"
            )
    if differences := first.model.describe_differences(question.model):
        raise StoreError(
            f"the race in {where} was started with another model: {differences}. Pass a question "
            "with the same fit=, or another store"
        )
