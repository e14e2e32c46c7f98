# Each public name and where it is defined, in one line: __init__.py reads this file, and so do
# type checkers.

from polarbear import design as design
from polarbear import errors as errors
from polarbear import papers as papers
from polarbear import plots as plots
from polarbear import priors as priors
from polarbear import readers as readers
from polarbear import selection as selection
from polarbear import simulation as simulation
from polarbear import store as store
from polarbear.calibration.resampling import calibrate as calibrate
from polarbear.coordinator.gate import gate as gate
from polarbear.coordinator.run_race import race as race
from polarbear.data import grid as grid
from polarbear.data import targets as targets
from polarbear.data.rankings import Rankings as Rankings
from polarbear.data.rankings import rank as rank
from polarbear.data.run import Run as Run
from polarbear.data.run import Status as Status
from polarbear.data.runs import Runs as Runs
from polarbear.errors import DataError as DataError
from polarbear.inference.cross_fitting import cross_fit as cross_fit
from polarbear.inference.fit import fit as fit
from polarbear.inference.posterior import Posterior as Posterior
from polarbear.inference.verdicts import Verdict as Verdict
from polarbear.racing.assessing import assess as assess
from polarbear.racing.assessing import assess_classes as assess_classes
from polarbear.racing.budget import Budget as Budget
from polarbear.racing.questions.choice import Choice as Choice
from polarbear.racing.questions.no_worse import NoWorse as NoWorse
from polarbear.racing.questions.paper_pareto_set import PaperParetoSet as PaperParetoSet
from polarbear.racing.questions.pareto_set import ParetoSet as ParetoSet
from polarbear.racing.questions.pareto_set import StrictParetoSet as StrictParetoSet
from polarbear.racing.questions.question import Question as Question
from polarbear.racing.race import Race as Race
from polarbear.readers import example as example
from polarbear.readers import read as read
from polarbear.readers.writing import write as write
from polarbear.reporting.page import report as report
from polarbear.running import backends as backends
from polarbear.running.backends.checking import check as check
from polarbear.running.solvers.commands import Command as Command
from polarbear.running.solvers.instances import Instances as Instances
from polarbear.running.solvers.setup import Limits as Limits
from polarbear.selection import preferences as preferences
from polarbear.selection.decision import select as select
from polarbear.simulation.power import plan as plan
from polarbear.simulation.replays import replay as replay
from polarbear.store.opening import open_store as open_store

__version__: str
