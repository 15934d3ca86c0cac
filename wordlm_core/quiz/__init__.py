"""Questions about microgpt whose right answers are computed from the loaded model.

Seven topics, three kinds: `trace` (compute a value), `predict` (choose what will happen; it is
then really done), `explain` (write why, and mark yourself against a model answer). A seed
draws the items, positions and sizes that a set is about.
"""

from collections.abc import Sequence

from wordlm_core.checkpoint import Checkpoint
from wordlm_core.errors import ConfigError
from wordlm_core.quiz import (
    attention,
    blocks,
    embeddings,
    experiments,
    sampling,
    tokenisation,
    training,
)
from wordlm_core.quiz.question import Context, Question

_MODULES = (tokenisation, embeddings, attention, blocks, training, sampling, experiments)
TOPICS = tuple(module.TOPIC for module in _MODULES)
ALOUD = {module.TOPIC: module.ALOUD for module in _MODULES}
TEMPLATES = tuple(template for module in _MODULES for template in module.QUESTIONS)


def questions(
    checkpoints: Sequence[Checkpoint], *, seed: int, topic: str | None = None
) -> tuple[Question, ...]:
    """Return a set of questions about a model, topic by topic.

    Args:
        checkpoints: The loaded one, and others that it may be compared with.
        seed: Equal seeds give equal sets, other seeds other items, positions and sizes.
        topic: One of `TOPICS`, or None for all.

    Raises:
        CheckpointError: The first one is no microgpt.
        ConfigError: No such topic.
    """
    if topic is not None and topic not in TOPICS:
        raise ConfigError(f"topics are {'; '.join(TOPICS)}, not {topic[:40]!r}")
    context = Context.of(checkpoints)
    return tuple(
        Question(template, context, seed)
        for template in TEMPLATES
        if topic in (None, template.topic) and not template.needs(context)
    )


def left_out(checkpoints: Sequence[Checkpoint]) -> dict[str, str]:
    """Return why questions do not apply to a model, by their keys."""
    context = Context.of(checkpoints)
    reasons = {template.key: template.needs(context) for template in TEMPLATES}
    return {key: reason for key, reason in reasons.items() if reason}
