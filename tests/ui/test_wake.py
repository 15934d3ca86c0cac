"""The keeper of the jobs: one for a server, woken when a job has been taken."""

import pytest

from app import state
from app.jobs.keeper import Keeper
from app.state import begin_page, wake


@pytest.fixture
def calls(monkeypatch):
    """What the keeper is told, in place of doing it."""
    found = []
    for name in ("start", "wake"):
        monkeypatch.setattr(Keeper, name, lambda self, name=name: found.append((name, self)))
    monkeypatch.setattr(Keeper, "close", lambda self: None)
    state._keeper.clear()
    yield found
    state._keeper.clear()


def test_one_keeper_looks_after_the_jobs_of_a_server(calls, monkeypatch):
    monkeypatch.setattr(state, "wake", wake)
    begin_page("title", "question")
    begin_page("title", "question")
    wake(now=True)
    assert [name for name, _ in calls] == ["start", "wake"]
    assert len({id(keeper) for _, keeper in calls}) == 1
