"""Fixtures: a tiny checkpoint of each family, and the probes that tests share."""

import pytest
from hypothesis import settings

from tests import tiny
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.models.base import LanguageModel
from wordlm_core.vocabulary import Probe, Vocabulary

# A busy machine must not fail a test, and a test must not write into the tree.
settings.register_profile("ours", deadline=None, database=None)
settings.load_profile("ours")


@pytest.fixture(scope="session")
def checkpoints() -> dict[str, Checkpoint]:
    return {case: tiny.make_checkpoint(case) for case in tiny.CASES}


@pytest.fixture(params=list(tiny.CASES))
def checkpoint(request, checkpoints) -> Checkpoint:
    """Every case in turn."""
    return checkpoints[request.param]


@pytest.fixture
def model(checkpoint) -> LanguageModel:
    return checkpoint.model


@pytest.fixture(params=tiny.WITH_ATTENTION)
def attention_model(request, checkpoints) -> LanguageModel:
    """Every case with attention in turn."""
    return checkpoints[request.param].model


@pytest.fixture(params=tiny.WORD_MODELS)
def word_model(request, checkpoints) -> LanguageModel:
    """Every case but microgpt in turn: those that slide past their context."""
    return checkpoints[request.param].model


@pytest.fixture
def mlp(checkpoints) -> LanguageModel:
    return checkpoints["mlp"].model


@pytest.fixture
def vocabulary() -> Vocabulary:
    return tiny.VOCABULARY


@pytest.fixture
def probe() -> Probe:
    """Repeated words and an unknown one; shorter than the window."""
    return tiny.VOCABULARY.probe("the cat saw the dog and the zebra", tiny.CONTEXT)


@pytest.fixture
def cropped() -> Probe:
    """More than the window holds, so that `<BOS>` and two words are cut off."""
    text = "the cat saw the dog and the bird ran to the park"
    return tiny.VOCABULARY.probe(text, tiny.CONTEXT)


@pytest.fixture(params=["short", "full", "one"])
def any_probe(request, probe, cropped) -> Probe:
    return {"short": probe, "full": cropped, "one": tiny.VOCABULARY.probe("dog", 1)}[request.param]
