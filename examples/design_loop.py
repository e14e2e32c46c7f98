"""
A design loop
=============

A model writes algorithms, a judge tells it what they are worth. Without a key the model is a stub
that proposes from a list. With ``OPENAI_API_KEY`` (and, for another service, ``OPENAI_BASE_URL``
and ``OPENAI_MODEL``) it is a language model that reads the judgements.
"""

import json
import os
import re
import tempfile
import urllib.request

import numpy as np

import polarbear as pb

REFERENCE = '''
class Search:
    """Random steps of a constant size."""

    def __init__(self, budget, dim):
        self.budget, self.dim = budget, dim

    def __call__(self, func):
        import numpy as np

        x = np.random.uniform(-5, 5, self.dim)
        best, step = func(x), 1.0
        for _ in range(self.budget - 1):
            trial = x + step * np.random.normal(size=self.dim)
            value = func(trial)
            if value < best:
                x, best = trial, value
            else:
                step *= 1.0
'''

PROPOSALS = [
    REFERENCE.replace("step = func(x), 1.0", "step = func(x), 30.0"),
    REFERENCE.replace("step *= 1.0", "step *= 0.98"),
    REFERENCE.replace("np.random.normal(size=self.dim)", "np.random.normal(self.dim, 0)"),
    REFERENCE.replace("value < best", "value < best / 0"),
    REFERENCE.replace("step *= 1.0", "step *= 0.98  # the same again"),
    REFERENCE.replace("step = func(x), 1.0", "step = func(x), 2.0").replace("*= 1.0", "*= 0.96"),
]

TASK = """Write a Python class Search like the one below that minimises a function of 4 variables.
It must be good early (after 30 evaluations) and late (after 300). Answer with the code alone.
"""


def make_solver(text):
    """Make a solver of the class that a text defines; in the process of each run."""
    search = pb.design.load_code(text)["Search"]
    return lambda job: search(budget=300, dim=4)(job.track(job.instance))


def make_valley(rng):
    """An ill-conditioned quadratic with a random centre."""
    centre, stretch = rng.uniform(-3, 3, 4), 10 ** np.linspace(0, 1, 4)
    return lambda x: float((stretch * (x - centre) ** 2).sum())


def ask_model(prompt, n_before):
    """Return the answer of a language model, or the next proposal of the list."""
    key = os.environ.get("OPENAI_API_KEY")
    if not key:
        return PROPOSALS[n_before % len(PROPOSALS)]
    base = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
    body = {
        "model": os.environ.get("OPENAI_MODEL", "gpt-4o-mini"),
        "messages": [{"role": "user", "content": prompt}],
    }
    request = urllib.request.Request(  # noqa: S310
        f"{base}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
    )
    with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
        text = json.load(response)["choices"][0]["message"]["content"]
    code = re.search(r"```(?:python)?\n(.*?)```", text, re.DOTALL)
    return code[1] if code else text


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        judge = pb.design.Judge(
            folder,
            make_solver,
            make_valley,
            times=[30, 100, 300],
            reference=REFERENCE,
            direction="minimize",
            budget=pb.Budget(runs=24, failures=3),
            limits=pb.Limits(wall_seconds=20),
        )

        def propose(judgements):
            """Ask for a program, given the best one so far and the last judgement."""
            if not judgements:
                return ask_model(f"{TASK}\n{REFERENCE}", 0)
            best = max(judgements, key=lambda judgement: judgement.fitness)
            prompt = (
                f"{TASK}\nThe best so far:\n{judge.candidate(best.name)}\n{best.describe('long')}"
                f"\n\nYour last one:\n{judge.candidate(judgements[-1].name)}\n"
                f"{judgements[-1].describe('long')}"
            )
            return ask_model(prompt, len(judgements))

        # Each proposal is judged until the verdict is known, or after 24 runs.
        for judgement in pb.design.judge_proposals(judge, propose, len(PROPOSALS)):
            print(judgement.label, "|", judgement)

        # The members of the race, on instances that the designer has not seen.
        for judgement in judge.compare_on_holdout():
            print(f"{judgement.label}: fitness {judgement.fitness:.2f} on hold-out instances")
