"""What is said of runs stays true of parts of them, of their files, and of what is joined."""

import io

import numpy as np
import pytest

import polarbear as pb
from polarbear.errors import DataError


def latest_values():
    """Runs whose latest value counts: one of the algorithms gets worse."""
    columns = [("peaks", 1, 1.0), ("peaks", 10, 9.0), ("steady", 1, 5.0), ("steady", 10, 5.0)]
    rows = [(*row, f"i{k}") for k in range(40) for row in columns]
    names = ("algorithm", "time", "value", "instance")
    table = dict(zip(names, zip(*rows, strict=True), strict=True))
    return pb.Runs.from_frame(table, direction="minimize", best_so_far=False, until=10)


def test_what_needs_best_values_refuses_latest_ones():
    """A replay compared best values so far, and said that the worse one replaces the other."""
    runs = latest_values()
    assert pb.rank(runs, [1, 10]).win_rate("peaks", "steady").tolist() == [1, 0]
    race = pb.Race(runs.algorithms, [1, 10], direction="minimize")
    for use in (pb.replay, lambda r: pb.selection.schedule(r, 10), race.load):
        with pytest.raises(DataError, match="best value so far counts"):
            use(runs)
    with pytest.raises(DataError, match="best value so far counts"):
        runs.with_portfolio(["peaks", "steady"])


def test_a_race_loads_runs_by_its_own_clock_and_of_one_value():
    race = pb.Race(["a", "b"], [1], direction="minimize", clock="evaluations")
    run = pb.Run("a", "i", [1], [2.0], until=1)
    seconds = pb.Runs.from_records([run], direction="minimize", clock="seconds")
    with pytest.raises(DataError, match="one value and clock='evaluations'"):
        race.load(seconds)
    table = {"algorithm": ["a"], "instance": ["i"], "time": [1], "hard": [1], "soft": [2]}
    levels = pb.Runs.from_frame(table, value=("hard", "soft"), direction="minimize", until=1)
    with pytest.raises(DataError, match="one value"):
        race.load(levels)
    race.load(pb.Runs.from_records([run], direction="minimize"))


def test_a_part_of_runs_ends_as_in_the_whole_whatever_follows():
    """The next operation decided the ends again, from the runs that were left."""
    runs = [pb.Run("a", i, [1], [2.0], until=9) for i in "xyz"]
    runs += [pb.Run("b", i, [1], [1.0], until=n) for i, n in zip("xyz", (2, 5, 9), strict=True)]
    whole = pb.Runs.from_records(runs, direction="minimize")
    part = whole.filter(algorithms=["b"], instances=["x", "y"])
    file = io.BytesIO()
    part.to_parquet(file)
    ends = part.count_statuses()
    assert ends == {"unstated": 2}
    followed = (
        part.feasible(),
        part.with_instance_data({"instance": ["x", "y"], "size": [1, 2]}),
        pb.Runs.concat([part]),
        pb.Runs.concat([part, whole.filter(algorithms=["a"])]).filter(algorithms=["b"]),
        pb.Runs.from_parquet(file),
    )
    for one in followed:
        assert one.count_statuses() == ends
    assert followed[-1] == part


def test_losses_of_latest_values_know_that_a_solution_is_no_longer_feasible():
    """With its violating rows dropped, an earlier value came back."""
    table = {
        "algorithm": ["a", "a", "b"],
        "instance": ["i"] * 3,
        "time": [1, 5, 1],
        "value": [5.0, 1.0, 9.0],
        "broken": [0, 2, 0],
    }
    options = {"violation": "broken", "best_so_far": False, "until": 9}
    runs = pb.Runs.from_frame(table, direction="minimize", **options)
    assert runs.feasible().at([1, 9]).tolist() == [[5.0, np.inf], [9.0, 9.0]]


def test_an_unknown_run_is_in_no_layer_and_in_no_win_rate_of_a_partial_order():
    def run(name, instance, point, until):
        return pb.Run(name, instance, [1], [point], until=until, status="cut")

    records = [run("a", k, (1.0, 1.0), 5) for k in "xy"]
    records += [run("b", k, (2.0, 2.0), n) for k, n in (("x", 2), ("y", 5))]
    archives = pb.readers.Archives.from_records(records, objectives="fg", direction="minimize")
    rankings = archives.dominance([1.0, 4.0])
    assert rankings.order("x", 4.0) == [[("a",)]]
    assert rankings.order("y", 4.0) == [[("a",), ("b",)]]
    assert rankings.win_rate("a", "b").tolist() == [1.0, 1.0]
    others = pb.readers.Archives.from_records(
        [run(name, "z", (1.0, 1.0), 5) for name in "bc"], objectives="fg", direction="minimize"
    )
    with pytest.raises(DataError, match="partial orders of different algorithms"):
        rankings.join(others.dominance([1.0, 4.0]))


def test_archives_have_names_as_texts():
    run = pb.Run("a", 1, [1], [(1.0, 2.0)], until=2)
    archives = pb.readers.Archives.from_records([run], objectives="fg", direction="minimize")
    assert archives.runs.instances == ("1",)


def test_instances_are_taken_by_a_mask_or_from_the_end():
    rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 3)
    assert rankings.take([True, False, True]).instances == ("i1", "i3")
    last = rankings.take([-1])
    assert last.instances == ("i3",)
    assert len(last.offset) == 2


@pytest.mark.parametrize("n", [0, -1, 2.5])
def test_a_grid_has_a_whole_number_of_times(n):
    for make in (
        lambda: pb.grid.log(1, 9, n),
        lambda: pb.grid.linear(1, 9, n),
        lambda: pb.grid.from_runs(pb.example(), n),
    ):
        with pytest.raises(DataError, match="number of times of at least 1"):
            make()


def test_a_portfolio_has_members_by_their_names():
    records = [pb.Run(name, "i", [1], [1.0], until=2) for name in ("1", "10")]
    runs = pb.Runs.from_records(records, direction="minimize")
    assert "1 + 10" in runs.with_portfolio([1, 10]).algorithms
    with pytest.raises(DataError, match="at least one algorithm"):
        runs.with_portfolio([])


def test_several_value_columns_of_a_file_are_read(tmp_path):
    path = tmp_path / "levels.csv"
    path.write_text("algorithm,instance,time,hard,soft,until\na,i,1,0,5,9\nb,i,1,1,2,9\n")
    runs = pb.read(path, value=("hard", "soft"), direction="minimize")
    assert runs.levels is not None


def test_runs_of_other_attributes_are_compared_without_an_error():
    runs = pb.Runs.from_records([pb.Run("a", "x", [1], [2.0], 9)], direction="minimize")
    text, number = (runs.with_instance_data({"instance": ["x"], "k": [k]}) for k in ("one", 1.0))
    assert text != number
