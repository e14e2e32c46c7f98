"""A judge of candidates: evaluators share one race, and each candidate is judged once."""

import json
import multiprocessing
import os
import signal
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest
from judge.in_process import InProcess

import course
import polarbear as pb
from judging import HANGING, code, judge_one, make_judge
from polarbear.design import judge as judge_module
from polarbear.design.candidates import (
    CandidateFolder,
    _trim_traceback,
    load_code,
    name_candidate,
)
from polarbear.errors import DataError, SolverError, StoreError
from polarbear.racing.events import Asked
from waiting import wait_until


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a judge after four candidates."""
    folder = tmp_path_factory.mktemp("judge")
    judge = make_judge(folder)
    judge(code(1, handicap=100), label="hopeless")
    for step in ("3", "1 / 0"):
        judge(code(step), label=f"step {step}")
    judge(code("(1 + 2)"), label="the same steps")
    return folder


@pytest.mark.slow
def test_candidates_get_their_verdicts(folder):
    bad, good, broken, copy = make_judge(folder).judgements()
    assert (bad.verdict.kind, bad.verdict.rival) == ("dominated", "reference")
    assert bad.cost.runs == 16
    assert bad.verdict.probability > 0.95
    assert bad.fitness < 0.2
    assert good.is_accepted
    assert good.fitness > 0.6
    assert good.win_rates[-1] > 0.5
    assert (broken.verdict.kind, broken.fitness, broken.failures.number) == ("removed", 0.0, 4)
    assert "ZeroDivisionError" in broken.failures.why
    assert broken.failures.traceback.splitlines()[2].strip().startswith("trial = x + 1 / 0")
    assert (copy.verdict.kind, copy.copy_of) == ("equivalent", good.name)
    assert copy.fitness == pytest.approx(good.fitness, abs=0.05)


@pytest.mark.slow
def test_texts_say_what_a_designer_needs_and_name_no_instance(folder):
    bad, _, broken, copy = make_judge(folder).judgements()
    assert str(bad).startswith("Dominated by reference (> 99 %). Fitness 0.0")
    assert "behind at 10, 30 evaluations. 16 runs of at most 24, 435 evaluations." in str(bad)
    long = broken.describe("long")
    assert "4 runs failed. Reason: ZeroDivisionError" in long
    assert "trial = x + 1 / 0" in long
    assert "Failed on" not in long
    assert "Failed on 1, 2" in broken.describe("long", show_instances=True)
    assert "step 3" in str(copy)
    assert json.loads(json.dumps(broken.to_dict()))["failures"]["instances"] == []
    for one in (bad, broken, copy):
        assert pb.design.Judgement.from_dict(one.to_dict(show_instances=True)) == one


@pytest.mark.slow
def test_a_later_judge_needs_no_earlier_code_and_judges_once(folder):
    judge = make_judge(folder)
    before = judge.status().spent
    assert judge(f"\n\n{code(3)}# a remark").label == "step 3"  # the text is that of a candidate
    assert judge(f"{code(3)}# a copy", label="again").label == "again"
    assert [j.label for j in judge.judgements()].count("step 3") == 1  # the first one keeps its own
    assert judge(code(0.3), label="seed") == judge(f"{code(0.3)}#", label="seed")
    assert judge(code(0.3)).verdict.kind == "baseline"
    assert judge.status().spent == before
    again = judge(code(2.5))
    assert again.cost.runs > 0
    assert judge.candidate(again.name) == code(2.5)
    assert again.name in judge.members()


def read_events(folder):
    with pb.open_store(folder / "race.db", read_only=True) as store:
        return list(store.read())


@pytest.mark.slow
def test_a_race_in_memory_and_one_from_disk_judge_alike(tmp_path, monkeypatch):
    """Also if another process has changed the race in between."""
    texts = code(1, handicap=100), code(3), code("1 / 0"), code("(1 + 2)"), code(2)
    restored = []
    restore = judge_module.begin_or_resume
    monkeypatch.setattr(
        judge_module, "begin_or_resume", lambda *args: restored.append(1) or restore(*args)
    )
    some = {"max_runs": 16, "executor": InProcess()}
    kept = make_judge(tmp_path / "kept", **some)
    judgements = [kept(text) for text in texts]
    assert len(restored) == 1
    loaded = [make_judge(tmp_path / "loaded", **some)(text) for text in texts]
    assert len(restored) == 1 + len(texts)
    assert loaded == judgements
    both = [read_events(tmp_path / name) for name in ("kept", "loaded")]
    assert course.decisions(both[0]) == course.decisions(both[1])
    assert course.told(both[0]) == course.told(both[1])
    make_judge(tmp_path / "kept", **some)(code(4))
    make_judge(tmp_path / "loaded", **some)(code(4))
    assert kept(code(5)) == make_judge(tmp_path / "loaded", **some)(code(5))


@pytest.mark.slow
def test_holdout_is_a_race_of_its_own(folder):
    judge = make_judge(folder)
    before = judge.status().spent
    good = judge.judgements()[1].name
    (compared,) = judge.compare_on_holdout(names=[good], max_runs=16)
    assert compared.cost.runs <= 16
    assert compared.fitness > 0.5
    assert judge.status().spent == before
    assert judge.compare_on_holdout(names=[good], max_runs=16) == [compared]  # nothing runs again
    named = make_judge(folder / "named", instances={"a": 1.0, "b": 2.0})
    with pytest.raises(DataError, match=r"not in the race: compare_on_holdout\(instances\)"):
        named.compare_on_holdout(names=[good])
    with pytest.raises(DataError, match="'b' is an instance of the race: leave it out"):
        named.compare_on_holdout({"b": 3.0}, [good])


LEAKING = code(1).replace(
    "    x, best",
    "    import os, subprocess\n"
    "    shown = subprocess.run(['env'], capture_output=True, text=True).stdout\n"
    "    raise RuntimeError(f'{dict(os.environ)} {shown}')\n    x, best",
    1,
)
"""A candidate that shows its environment in the reason of its failure."""


def test_candidates_do_not_see_secrets_of_the_environment(tmp_path, monkeypatch):
    for name in ("A_KEY", "B_TOKEN", "GRB_LICENSE_FILE"):
        monkeypatch.setenv(name, f"value-of-{name}")
    judgement = make_judge(tmp_path / "clean", max_runs=8)(LEAKING)
    assert "value-of-GRB_LICENSE_FILE" in judgement.describe("long")
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"RuntimeError" in kept
    assert b"value-of-A_KEY" not in kept
    assert b"value-of-B_TOKEN" not in kept
    passing = make_judge(tmp_path / "passing", max_runs=8, limits=pb.Limits(environment=["A_*"]))(
        LEAKING
    )
    assert "value-of-A_KEY" in passing.describe("long")
    assert "value-of-B_TOKEN" not in passing.describe("long")
    assert os.environ["B_TOKEN"] == "value-of-B_TOKEN"  # that of the judge itself is unchanged


@pytest.mark.parametrize("victim", [".", "race.db", "requests", "judgements"])
def test_a_candidate_that_deletes_files_of_the_judge_is_said(tmp_path, victim):
    folder = tmp_path / "judge"
    judge = make_judge(folder, max_runs=8, executor=1)
    judge(code(1, handicap=100))
    deleting = code(1).replace(
        "    x, best",
        "    import shutil, pathlib\n"
        f"    path = pathlib.Path({str(folder / victim)!r})\n"
        "    path.unlink(missing_ok=True) if path.is_file() else shutil.rmtree(path, True)\n"
        "    x, best",
        1,
    )
    with pytest.raises(StoreError, match="was deleted (while|or replaced)"):
        judge(deleting)
    with pytest.raises(
        StoreError, match="perhaps by a candidate: restore the folder from a backup"
    ):
        judge(code(2))


TEXTS = (
    code(1, handicap=100),
    code(3),
    code(1, handicap=50),
    code(2),
    code("1 / 0"),
    "raise NameError",
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["threads", pytest.param("processes", marks=pytest.mark.long)])
def test_evaluators_share_a_folder(tmp_path, kind):
    if kind == "threads":
        with ThreadPoolExecutor(4) as pool:
            kinds = list(pool.map(judge_one, [tmp_path] * len(TEXTS), TEXTS))
    else:
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            kinds = pool.starmap(judge_one, [(tmp_path, text) for text in TEXTS])
    assert [kinds[k] for k in (0, 2, 4, 5)] == ["dominated", "dominated", "removed", "removed"]
    judge = make_judge(tmp_path, executor=1, max_runs=16)
    assert len(judge.judgements()) == len(TEXTS)
    assert judge.status().n_runs <= 16 * (len(TEXTS) + 1)
    assert not list((tmp_path / "requests").iterdir())


@pytest.mark.slow
def test_a_copy_that_has_all_its_runs_at_once_is_recognised(tmp_path):
    """Two candidates wait together, and the limit leaves one round: the later one is the copy."""
    judge = make_judge(tmp_path, max_runs=8, executor=InProcess())
    folder = CandidateFolder(tmp_path)
    for text in (code(3), code("(1 + 2)")):
        folder.request(folder.keep(text))
    judgements = {text: judge(text) for text in (code(3), code("(1 + 2)"))}
    first, later = sorted(judgements.values(), key=lambda judgement: judgement.name)
    assert (first.verdict.kind, first.copy_of) == ("undecided", None)
    assert (later.verdict.kind, later.copy_of) == ("equivalent", first.name)


@pytest.mark.slow
def test_a_later_comparison_can_allow_more_runs(tmp_path):
    judge = make_judge(tmp_path, max_runs=8, executor=InProcess())
    name = judge(code(0.5)).name
    (first,) = judge.compare_on_holdout(names=[name], max_runs=8)
    (later,) = judge.compare_on_holdout(names=[name], max_runs=24)
    (less,) = judge.compare_on_holdout(names=[name], max_runs=16)
    assert (first.verdict.kind, first.cost.runs, later.cost.max_runs) == ("undecided", 8, 24)
    assert 8 < later.cost.runs <= 24
    assert less.cost.runs == later.cost.runs


@pytest.mark.slow
def test_a_candidate_that_never_reports_a_value_is_removed(tmp_path):
    judge = make_judge(tmp_path, max_runs=8)
    silent = judge("def walk(job): yield from ()")
    assert (silent.verdict.kind, silent.fitness, silent.failures.number) == ("removed", 0.0, 4)
    assert "it reported no value" in silent.failures.why
    assert silent.name not in judge.members()


def count_rounds(folder, name):
    """Return the number of runs of a candidate in each round that requested some."""
    with pb.open_store(folder / "race.db", read_only=True) as store:
        asked = [event.jobs for event in store.read() if isinstance(event, Asked)]
    return [n for n in (sum(job.algorithm == name for job in jobs) for jobs in asked) if n]


@pytest.mark.slow
def test_a_candidate_that_hangs_costs_four_time_limits(tmp_path):
    judge = make_judge(tmp_path, limits=pb.Limits(cpu_seconds=0.5, wall_seconds=100))
    hanging = judge(HANGING)
    assert (hanging.verdict.kind, hanging.cost.runs, hanging.failures.number) == ("removed", 4, 4)
    assert "over the limit of 0.5 CPU seconds" in hanging.failures.why
    assert count_rounds(tmp_path, hanging.name)[:2] == [1, 3]
    assert count_rounds(tmp_path, "reference") == [8]


@pytest.mark.slow
def test_a_candidate_that_fails_once_gets_its_first_batch(tmp_path):
    """Its first run fails, and all later ones are those of a good candidate."""
    judge = make_judge(tmp_path, max_runs=16)
    judge(code(2))
    marker = tmp_path / "once"
    fails = f"import os\nif not os.path.exists({str(marker)!r}): open({str(marker)!r}, 'w'); 1 / 0"
    once = judge(f"{code(3)}\n{fails}")
    assert once.is_accepted
    assert (once.failures.number, once.cost.runs) == (1, 16)
    assert count_rounds(tmp_path, once.name)[:3] == [1, 3, 4]


@pytest.mark.slow
def test_a_copy_is_accepted_exactly_if_its_original_is(tmp_path):
    judge = make_judge(tmp_path, max_runs=16, executor=InProcess())
    bad, copy = judge(code(1, handicap=100)), judge(code("(2 - 1)", handicap=100), label="copy")
    assert (bad.verdict.kind, copy.copy_of, copy.is_accepted) == ("dominated", bad.name, False)
    assert str(copy).startswith(f"Equivalent to {bad.name}: all runs of the two are the same; the")
    assert copy.describe("long").startswith("Verdict: equivalent to")
    assert "dominates it" not in copy.describe("long")


@pytest.mark.slow
def test_with_a_baseline_candidates_pass_fail_or_are_undecided(tmp_path):
    judge = make_judge(tmp_path, question=pb.NoWorse("reference"), executor=InProcess())
    good, bad, broken = judge(code(3)), judge(code(1, handicap=100)), judge(code("1 / 0"))
    assert [one.verdict.kind for one in (good, bad, broken)] == ["passed", "failed", "removed"]
    assert not any(one.copy_of for one in (good, bad, broken))
    texts = code("(1 + 2)"), code("(2 - 1)", handicap=100), code("(3 / 10)")
    copies = [judge(text) for text in texts]
    assert [one.verdict.kind for one in copies] == ["passed", "failed", "passed"]
    assert [one.copy_of for one in copies] == [good.name, bad.name, "reference"]
    assert {*judge.members()} == {"reference", good.name}
    assert [one.name for one in judge.compare_on_holdout(max_runs=8)] == [good.name]


@pytest.mark.slow
def test_a_candidate_that_crashes_is_the_original_of_no_copy(tmp_path):
    """With the same seed, the first values of both are the same."""
    judge = make_judge(tmp_path, max_runs=8, executor=InProcess())
    crash = code(2).replace("yield evaluations, best", "yield evaluations, best; 1 / 0")
    broken, good = judge(crash), judge(code(2))
    assert (broken.verdict.kind, broken.cost.runs, broken.copy_of) == ("removed", 4, None)
    assert good.copy_of is None
    assert good.fitness > 0.5


@pytest.mark.slow
def test_a_killed_holder_is_replaced(tmp_path):
    process = multiprocessing.get_context("spawn").Process(
        target=judge_one, args=(tmp_path, code("__import__('time').sleep(0.05)"))
    )
    process.start()
    wait_until(lambda: (tmp_path / "race.db").exists())
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert judge_one(tmp_path, code(1, handicap=100)) == "dominated"
    assert not list((tmp_path / "requests").iterdir())


@pytest.mark.slow
def test_a_reference_that_fails_is_an_error(tmp_path):
    judge = make_judge(tmp_path, reference=code("1 / 0"))
    with pytest.raises(SolverError, match="the reference was removed: ZeroDivisionError"):
        judge(code(3))


@pytest.mark.slow
def test_a_failing_make_solver_shows_no_folder(tmp_path):
    judge = make_judge(tmp_path, max_runs=8)
    judgement = judge("def run(job): yield 1, 1")
    text = judgement.describe("long")
    assert "Reason: KeyError: 'walk'" in text
    assert 'File "judging.py", line' in text  # where make_solver is
    assert 'return pb.design.load_code(text)["walk"]' in text
    assert "candidates.py" not in text
    assert "/" not in text


def test_tracebacks_begin_at_the_candidate_and_show_no_folder():
    for text, shown in (
        ("def f(): return 1 / 0", ['  File "<candidate>", line 1, in f']),
        ("import json\ndef f(): json.loads('{')", ['  File "__init__.py", line', "JSONDecode"]),
    ):
        try:
            load_code(text)["f"]()
        except (ValueError, ArithmeticError):
            trimmed = _trim_traceback(traceback.format_exc())
        assert trimmed.splitlines()[1].startswith('  File "<candidate>"')
        assert all(part in trimmed for part in shown)
        assert "/json" not in trimmed


def test_arguments_are_checked(tmp_path):
    with pytest.raises(SolverError, match="make_solver=3: expected a function"):
        make_judge(tmp_path, make_solver=3)
    with pytest.raises(DataError, match="expected a text or JSON values"):
        name_candidate({"step": object()})
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="the folder cannot be made"):
        CandidateFolder(tmp_path / "file")
    assert make_judge(tmp_path / "new").members() == ("reference",)


def test_names_are_of_content():
    assert name_candidate("# Be kind") != name_candidate("# Be brief")  # prose that is valid Python
    assert name_candidate(' class A:\n  "text"\n') != name_candidate("class A: pass")
    assert name_candidate('class A:\n  "text"\n') == name_candidate("class A: pass")
    assert name_candidate("x = 1") != name_candidate("x = 2")
    assert name_candidate('"a"') != name_candidate(["a"])
