"""You change one thing: what happens to the loss, and what to the names?"""

from app import (
    experiment_choice,
    experiment_commit,
    experiment_runs,
    experiment_start,
    experiments_page,
    layout,
)

CAVEAT = (
    "Three seeds a run, each compared with the baseline on the same seed: where they disagree "
    "about the direction, or change the loss by less than 0.015 on average, it stays the same. "
    "Without an effect three agree one time in four, so a small one needs more seeds. Curves and "
    "samples are of the first seed. The loss is on items while they are trained on, there is no "
    "test split. Losses of two different lists measure two different tasks."
)
CODE = """
from wordlm_core import corpora, experiment
from wordlm_core.experiment import Draw, Experiment

own = None  # an own list: corpora.load("list.txt").documents
tried = {tried}
for each in (tried.baseline(), tried):
    result = experiment.run(each, experiment.corpus_of(each, own))
    print(each.label, result.parameters, result.loss)
    print([sample.text for drawn in result.samples for sample in drawn])
"""

experiment_commit.collect()
choice, picture = layout.columns(2, 3)
with choice:
    asked = experiment_choice.choose()
    known = experiment_start.start(asked)
    done = experiment_commit.commit(asked, known)
with picture:
    experiments_page.headline(done, known)
    with_curves = experiments_page.picture(done, known)

runs, told = experiment_commit.runs(), experiments_page.explanations()
if runs:
    layout.section("A run's samples", "What it draws, and what you make of it.")
    experiments_page.look_at(runs, done)
    experiments_page.table(runs, told)

layout.caveat(CAVEAT)
layout.downloads(
    "experiments",
    csv=lambda: experiment_runs.runs_csv(runs, told),
    data=lambda: experiment_runs.runs_json(runs, told),
    with_figures=with_curves,
)
if asked is not None:
    layout.code(CODE, {"tried": asked.tried})
