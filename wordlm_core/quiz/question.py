"""What a question is: a text, the answer that counts, and why it does.

Nothing is written down that could be computed. A question is made from a seeded draw (a made-up
item, a position, a size); its right answer comes out of the loaded model, of a fresh random
one, or of an experiment that is really run.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, SupportsIndex

import numpy as np
from jaxtyping import Int

from wordlm_core import typed
from wordlm_core.checkpoint import Checkpoint
from wordlm_core.corpora import Corpus
from wordlm_core.errors import CheckpointError, ConfigError, TextError
from wordlm_core.gpt_trainer import GPTTrainer
from wordlm_core.items import prepare_items
from wordlm_core.lens import sampling
from wordlm_core.models import microgpt
from wordlm_core.models.microgpt import Forward, MicroGPTConfig, MicroGPTModel
from wordlm_core.text import SPECIALS, visible
from wordlm_core.training import TrainConfig, model_config
from wordlm_core.vocabulary import Vocabulary

Kind = Literal["trace", "explain", "predict"]
KINDS: tuple[Kind, ...] = ("trace", "explain", "predict")
Real = int | float
HIGHEST_MARK = 3
# Whoever computes with the rounded numbers of the text is right, too.
_RELATIVE = 0.005
_QUOTES = "\"'`\u201c\u201d\u2018\u2019"
_SHORTEST, _LONGEST, _DRAWN = 3, 8, 40
_STEPS, _WINDOW = 60, 16
_MOST_PARAMETERS = 200_000
# Of one training, as parameters x steps: two of them take about 0.3 seconds.
_MOST_MOVES = 6_000_000


# -- answers


@dataclass(frozen=True)
class Number:
    """One number; `digits` behind the point are asked for, none means a whole one."""

    value: Real
    digits: int = 0

    @property
    def hint(self) -> str:
        """Return what to type."""
        return "a whole number" if self.digits == 0 else f"a number, {self.digits} decimals"

    @property
    def shown(self) -> str:
        """Return the answer for people."""
        return said(self.value, self.digits)

    def accepts(self, given: str) -> bool:
        """Return whether a typed number is right.

        Raises:
            TextError: It cannot be read.
        """
        return self.close(typed.number(given) if self.digits else typed.whole(given))

    def close(self, value: Real) -> bool:
        """Return whether a number is near enough: one unit of the last digit, or 0.5%."""
        if self.digits == 0:
            return value == self.value
        return abs(value - self.value) <= max(
            1.01 * 10.0**-self.digits, _RELATIVE * abs(self.value)
        )


@dataclass(frozen=True)
class Numbers:
    """A shape or a list of numbers, in order."""

    values: tuple[Real, ...]
    digits: int = 0

    @property
    def hint(self) -> str:
        """Return what to type."""
        if self.digits:
            return f"numbers with {self.digits} decimals, blanks between them"
        return "whole numbers, such as 3 x 5, (3, 5) or 3 5"

    @property
    def shown(self) -> str:
        """Return the answer for people."""
        return ", ".join(
            f"{round(value, self.digits) + 0.0:.{self.digits}f}" for value in self.values
        )

    def accepts(self, given: str) -> bool:
        """Return whether the typed numbers are right, each of them.

        Raises:
            TextError: They cannot be read.
        """
        found = typed.numbers(given) if self.digits else typed.wholes(given)
        return len(found) == len(self.values) and all(
            Number(wanted, self.digits).close(value)
            for wanted, value in zip(self.values, found, strict=True)
        )


@dataclass(frozen=True)
class Word:
    """A token, or an item."""

    value: str

    @property
    def hint(self) -> str:
        """Return what to type."""
        return "letter for letter; <BOS> is written <BOS>"

    @property
    def shown(self) -> str:
        """Return the answer for people."""
        return "".join(map(visible, self.value))

    def accepts(self, given: str) -> bool:
        """Return whether the typed text is right.

        Quotes and white space around it do not count; of a special token, brackets and case do
        not count either; white space in it may be typed as the sign that stands for it.

        Raises:
            TextError: Nothing was typed.
        """
        text = given.strip()
        if not text:
            raise TextError("there is no answer yet: type one")
        bare = text.strip(_QUOTES)
        if self.value in SPECIALS:
            return bare.strip("<> ").lower() == self.value.strip("<>").lower()
        return bool({text, bare} & {self.value, self.value.strip(), self.shown})


@dataclass(frozen=True)
class Choice:
    """One of several options; they differ."""

    options: tuple[str, ...]
    right: int

    @property
    def hint(self) -> str:
        """Return what to do."""
        return "choose one"

    @property
    def shown(self) -> str:
        """Return the right option."""
        return self.options[self.right]

    def accepts(self, given: str) -> bool:
        """Return whether the chosen option is the right one.

        Raises:
            TextError: Nothing was chosen, or no such option.
        """
        if given not in self.options:
            raise TextError("there is no answer yet: choose one")
        return given == self.shown


@dataclass(frozen=True)
class Points:
    """What a good explanation says: a mark of 0 to 3 is how many of these stand in it."""

    points: tuple[str, str, str]

    @property
    def hint(self) -> str:
        """Return what to type."""
        return "two or three sentences of your own"

    @property
    def shown(self) -> str:
        """Return the model answer."""
        return " ".join(self.points)

    def accepts(self, given: str) -> bool:
        """Return whether there is anything to mark; the person marks it.

        Raises:
            TextError: Nothing was typed.
        """
        if not given.strip():
            raise TextError("there is no answer yet: write one before you see the model answer")
        return True


Expected = Number | Numbers | Word | Choice | Points


@dataclass(frozen=True)
class Posed:
    """A question as it is put."""

    text: str
    expected: Expected
    why: str = ""


# -- what questions are made from


@dataclass(frozen=True)
class Item:
    """A made-up item.

    Attributes:
        raw: As a training list would hold it.
        text: As it can be shown.
        ids: Between the ids that begin and end a document.
    """

    raw: str
    text: str
    ids: Int[np.ndarray, " pos"]


@dataclass(frozen=True)
class Context:
    """The loaded model, and the other ones that it can be compared with.

    Attributes:
        checkpoint: The loaded one.
        model: Its selected weights.
        others: More checkpoints, of any kind.
    """

    checkpoint: Checkpoint
    model: MicroGPTModel
    others: tuple[Checkpoint, ...] = ()

    @classmethod
    def of(cls, checkpoints: Sequence[Checkpoint]) -> "Context":
        """Return the context of a checkpoint and the others behind it.

        Raises:
            CheckpointError: It is no microgpt, or too small to be asked about.
        """
        first, *others = checkpoints
        if not isinstance(first.model, MicroGPTModel):
            raise CheckpointError(
                f"the questions are about microgpt, and {first.name} is none: choose another "
                "checkpoint"
            )
        context = cls(first, first.model, tuple(others))
        if context.config.context_length <= _SHORTEST or len(context.lexical) < 2:
            raise CheckpointError(
                f"{first.name} is too small to ask about: a model needs {_SHORTEST + 1} positions "
                "and 2 tokens beside the special ones"
            )
        return context

    @property
    def config(self) -> MicroGPTConfig:
        """Return its sizes."""
        return self.model.config

    @property
    def vocabulary(self) -> Vocabulary:
        """Return its vocabulary."""
        return self.checkpoint.vocabulary

    @property
    def lexical(self) -> range:
        """Return the ids of tokens that are no specials."""
        return range(len(self.vocabulary))[self.vocabulary.lexical]

    @property
    def begin(self) -> str:
        """Return the token that begins a document."""
        return self.vocabulary.itos[self.vocabulary.bos_id]

    @property
    def unit(self) -> str:
        """Return what a token is."""
        return "character" if self.vocabulary.tokenizer == "char" else "word"

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """Return made-up items of three to eight tokens: drawn from the model where it can."""
        most = min(_LONGEST, self.config.context_length - 1)
        drawn = sampling.generate(
            self.model, self.vocabulary, None, max_tokens=most + 1, samples=_DRAWN
        )
        found = [s.ids for s in drawn if s.ended and _SHORTEST <= len(s.ids) <= most]
        rng = random.Random(0)
        while len(found) < _DRAWN // 4:
            length = rng.randint(_SHORTEST, most)
            found.append(tuple(rng.choices(self.lexical, k=length)))
        return tuple(map(self.item, dict.fromkeys(found)))

    def item(self, ids: Sequence[int]) -> Item:
        """Return tokens as an item."""
        vocabulary = self.vocabulary
        tokens = [vocabulary.itos[i] for i in ids]
        whole = np.array([vocabulary.bos_id, *ids, vocabulary.end_id])
        return Item(vocabulary.joined(tokens), vocabulary.joined(map(visible, tokens)), whole)

    def token(self, token_id: SupportsIndex) -> str:
        """Return a token as it can be shown."""
        return visible(self.vocabulary.itos[token_id])

    def parameters(self, **changes: Any) -> int:
        """Return how many numbers a model holds, with some sizes changed."""
        return sum(math.prod(shape) for shape in self.resized(**changes).shapes.values())

    def fresh(self, seed: int) -> MicroGPTModel:
        """Return a model of the same sizes with random weights."""
        drawn = microgpt.initial_weights(self.config, random.Random(seed))
        return MicroGPTModel(self.config, drawn)

    def resized(self, **changes: Any) -> MicroGPTConfig:
        """Return the model's sizes with some of them changed; the MLP grows with the width."""
        config = self.config
        if "d_model" in changes:
            changes["hidden"] = config.hidden * changes["d_model"] // config.d_model
        return replace(config, **changes)

    def fits(self, **changes: Any) -> bool:
        """Return whether sizes that are changed like this are within the limits of a model."""
        try:
            self.resized(**changes)
        except ConfigError:
            return False
        return True

    def training(self, *, seed: int, lr: float) -> GPTTrainer:
        """Return a training of a small model on items drawn from this one, not yet run."""
        texts = tuple(item.raw for item in self.items)
        config = self.protocol(seed=seed, lr=lr)
        data = prepare_items(
            Corpus("drawn", texts, "MIT", "drawn from the loaded model"),
            tokens=config.tokens,
            context_length=config.context_length,
            vocabulary=self.vocabulary,
        )
        return GPTTrainer(config, data)

    def protocol(self, *, seed: int, lr: float) -> TrainConfig:
        """Return how such a small model is trained."""
        return TrainConfig.of(
            "microgpt",
            steps=_STEPS,
            seed=seed,
            lr=lr,
            context_length=min(_WINDOW, self.config.context_length),
            tokens=self.vocabulary.tokenizer,
        )


@dataclass(frozen=True)
class Draw:
    """The dice of one question."""

    context: Context
    rng: random.Random

    def item(self) -> Item:
        """Return a made-up item."""
        return self.rng.choice(self.context.items)

    def place(self, item: Item, first: int = 0) -> int:
        """Return a position of the item that predicts something, from `first` on."""
        return self.rng.randrange(first, len(item.ids) - 1)

    def run(self, item: Item) -> Forward:
        """Return the forward pass of the loaded model over an item, without its end."""
        return self.context.model.forward(item.ids[:-1])

    def prefix(self) -> Int[np.ndarray, " pos"]:
        """Return the beginning of an item: what stands before one of its tokens."""
        item = self.item()
        return item.ids[: 1 + self.place(item, 1)]

    def shuffled(self, options: Sequence[str], right: int) -> Choice:
        """Return a choice whose options stand in no order that gives the right one away."""
        places = self.rng.sample(range(len(options)), len(options))
        return Choice(tuple(options[i] for i in places), places.index(right))

    def head(self) -> tuple[int, int]:
        """Return a layer and a head of the loaded model."""
        config = self.context.config
        return self.rng.randrange(config.n_layer), self.rng.randrange(config.n_head)


# -- questions


def always(context: Context) -> str:
    """Return that nothing is missing."""
    return ""


def needs_room(context: Context) -> str:
    """Return why larger and fresh models cannot be made of a large one while a class waits."""
    count = context.parameters()
    if count <= _MOST_PARAMETERS:
        return ""
    return f"{count:,} parameters are too many to try sizes with"


def needs_room_for(**changes: Callable[[MicroGPTConfig], int]) -> Callable[[Context], str]:
    """Return what says why a model cannot be had with sizes changed like this."""

    def missing(context: Context) -> str:
        larger = {name: size(context.config) for name, size in changes.items()}
        fits = context.fits(**larger)
        return needs_room(context) if fits else "a larger one is beyond what this program reads"

    return missing


def needs_training(context: Context) -> str:
    """Return why a small model with this vocabulary cannot be trained while a class waits."""
    shapes = model_config(context.protocol(seed=0, lr=0.01), len(context.vocabulary)).shapes
    count = sum(map(math.prod, shapes.values()))
    if count * _STEPS <= _MOST_MOVES:
        return ""
    return f"with its {len(context.vocabulary):,} tokens, even a small model takes long to train"


@dataclass(frozen=True)
class Template:
    """What makes a question.

    Attributes:
        topic: One of the seven.
        kind: What is asked for.
        make: From a draw.
        needs: Says why the question does not apply to a model, or nothing.
    """

    topic: str
    kind: Kind
    make: Callable[[Draw], Posed]
    needs: Callable[[Context], str] = always

    @property
    def key(self) -> str:
        """Return the question's name."""
        return self.make.__name__


@dataclass(frozen=True)
class Question:
    """One question of a set: equal seeds and models give equal questions."""

    template: Template
    context: Context
    seed: int

    @property
    def key(self) -> str:
        """Return its name: the same in every set."""
        return self.template.key

    @property
    def topic(self) -> str:
        """Return its topic."""
        return self.template.topic

    @property
    def kind(self) -> Kind:
        """Return its kind."""
        return self.template.kind

    @cached_property
    def posed(self) -> Posed:
        """Return text, answer and why; what has to be computed is, at the first look."""
        return self.template.make(Draw(self.context, random.Random(f"{self.seed} {self.key}")))

    @property
    def text(self) -> str:
        """Return what is asked."""
        return self.posed.text

    @property
    def expected(self) -> Expected:
        """Return the answer that counts."""
        return self.posed.expected

    @property
    def why(self) -> str:
        """Return why it does, with the numbers that were computed."""
        return self.posed.why

    def accepts(self, given: str) -> bool:
        """Return whether an answer is right.

        Raises:
            TextError: It cannot be read: it counts neither way.
        """
        return self.expected.accepts(given)


def said(value: Real, digits: int = 2) -> str:
    """Return a number for people; -0.00 is 0.00."""
    return f"{round(value, digits) + 0.0:,.{digits}f}"


def listed(values: Sequence[Real], digits: int = 2) -> str:
    """Return numbers for people."""
    return ", ".join(said(value, digits) for value in values)


def order(left: Real, right: Real, near: float = 1e-6) -> int:
    """Return 0 if the left is larger, 1 if the right is, 2 if they are as good as equal."""
    if abs(left - right) <= near:
        return 2
    return 0 if left > right else 1
