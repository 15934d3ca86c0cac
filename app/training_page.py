"""Training: one step in four buttons.

The person's own copy of the model is never stored: it is the chosen weights and the texts it
took a step on, and every number follows from those.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from app import controls, figures, layout, state
from app.layout import Bar, Cell, Part
from app.state import View
from wordlm_core.checkpoint import Checkpoint, step_number
from wordlm_core.gpt_trainer import BETA1, BETA2, EPSILON
from wordlm_core.lens import training_step
from wordlm_core.lens.training_history import Through
from wordlm_core.lens.training_step import MOST_STEPS, Parameter, Prediction, TrainingStep
from wordlm_core.models.base import count_parameters
from wordlm_core.text import visible
from wordlm_core.vocabulary import Probe

STAGES = ("Forward", "Loss", "Backward", "Adam")
_FORWARD, _LOSS, _BACKWARD, _ADAM = range(1, 5)
_RATES = ("0.001", "0.003", "0.01", "0.03", "0.1")
_USUAL = _RATES.index("0.01")
_WALK = "training_walk"
_NOTHING = "·"
_FEW = ("lm_head", "layer0.mlp_fc2")  # matrices whose largest entry Adam is shown on
_SHOWN = 8


# -- one step


@dataclass(frozen=True)
class Walk:
    """Where a person is: what the copy was trained on, and how far the present step is.

    Attributes:
        start: Checkpoint, training step and learning rate that the copy began with.
        earlier: Texts it took a step on.
        text: The text of the present step.
        stage: How many of `STAGES` are done.
    """

    start: tuple[str, str | None, float]
    earlier: tuple[str, ...]
    text: str
    stage: int

    @property
    def rate(self) -> float:
        """Return the learning rate."""
        return self.start[2]


def opening() -> View:
    """Pick checkpoint, weights to start from and text.

    Unlike other pages it begins with the first weights: that is where training begins. And the
    text is not cut off on the left: training reads it from its beginning.
    """
    pickers, text = layout.columns(2, 3)
    with pickers:
        chosen = controls.checkpoint("microgpt")
        at = _start(chosen)
    with text:
        read = _whole(controls.probe(chosen), chosen)
    return state.view(chosen, at, read)


def walk(of: View) -> Walk:
    """Draw the four buttons, and return where the person is."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="stages"):
        rate = float(_RATES[_rate()])
        now = _where(of, rate)
        for done, name in enumerate(STAGES):
            _button(name, now, replace(now, stage=done + 1), enabled=now.stage == done)
        further = replace(now, earlier=(*now.earlier, now.text), stage=0)
        room = len(now.earlier) < MOST_STEPS
        _button("Next step", now, further, enabled=now.stage == _ADAM and room)
        afresh = replace(now, earlier=(), stage=0)
        _button("Reset", now, afresh, enabled=bool(now.earlier or now.stage))
    layout.note(*_set_aside(now))
    return now


def taken(of: View, now: Walk) -> TrainingStep:
    """Take the present step on a copy of the model."""
    return state.lens(
        of,
        training_step.training_step,
        of.model,
        of.vocabulary,
        of.probe,
        earlier=now.earlier,
        rate=now.rate,
    )


def outcome(step: TrainingStep, now: Walk, of: View) -> None:
    """Say what the stage came to."""
    said: Sequence[Callable[[TrainingStep, Walk, View], list[Part]]]
    said = (_asked, _answered, _mean, _pushed, _fell)
    layout.answer(*said[now.stage](step, now, of))
    began = [*step.earlier, *([step.loss] if now.stage == _ADAM else [])]
    if began:
        losses = " → ".join(f"{loss:.3f}" for loss in began[-_SHOWN:])
        latest = ", the latest last" if len(began) > 1 else ""
        layout.help_line(
            f"Steps your copy has taken: {len(began)}. Loss when each began{latest}: {losses}."
        )


def predictions(step: TrainingStep, now: Walk) -> None:
    """Show every prediction, as far as the stage has computed it."""
    if now.stage == _ADAM:
        heads = ("reads", "should say", "p before", "p after", "-ln p before", "after")
        rows = [
            [
                *_pair(was),
                f"{was.prob:.3f}",
                f"{now.prob:.3f}",
                f"{was.loss:.3f}",
                f"{now.loss:.3f}",
            ]
            for was, now in zip(step.forward, step.forward_after, strict=True)
        ]
        rows.append(["mean", "", "", "", f"{step.loss:.3f}", f"{step.loss_after:.3f}"])
        words = (0, 1)
    else:
        heads = ("reads", "should say", "would say", "p(should)", "-ln p")
        rows = [_row(each, now.stage) for each in step.forward]
        if now.stage >= _LOSS:
            rows.append(["mean", "", "", "", f"{step.loss:.3f}"])
        words = (0, 1, 2)
    with st.container(key="predictions"):
        layout.table(
            heads,
            rows,
            strong=len(rows) - 1 if now.stage >= _LOSS else None,
            words=words,
            label="Predictions of the text, one a position",
        )


def detail(step: TrainingStep, now: Walk, through: Through) -> None:
    """Show what belongs to the stage: the comparison, the gradients, or Adam's numbers."""
    if now.stage < _BACKWARD:
        _before_training(step, now, through)
    elif now.stage == _BACKWARD:
        _gradients(step)
    else:
        _adam(step)


# -- parts of the walk


def _start(of: Checkpoint) -> str | None:
    labels = of.whole_steps
    if len(labels) < 2:
        return of.selected_label
    shown = [str(step_number(label)) for label in labels]
    meaning = "The weights that your copy starts with. Step 0 is before any training."
    return labels[controls.choose(st.select_slider, "Training step", "step", shown, help=meaning)]


def _rate() -> int:
    meaning = (
        "Fixed here; in the training of the checkpoint it fell to 0 along a line. Another rate "
        "begins a new copy of the model."
    )
    return controls.choose(
        st.segmented_control, "Learning rate", "rate", _RATES, _USUAL, help=meaning
    )


def _where(of: View, rate: float) -> Walk:
    """Return the walk so far; another start begins anew, another text a new step."""
    text = controls.as_typed(of.vocabulary, of.probe)
    start = (of.checkpoint.sha256, of.step, rate)
    kept: Walk | None = state.value(_WALK, None)
    if kept is None or kept.start != start:
        return Walk(start, (), text, 0)
    return kept if kept.text == text else replace(kept, text=text, stage=0)


def _set_aside(now: Walk) -> list[str]:
    """Say that a copy with steps behind it is left, until a button begins the new one."""
    kept: Walk | None = state.value(_WALK, None)
    if kept is None or kept.start == now.start or not (kept.earlier or kept.stage):
        return []
    steps = figures.counted(len(kept.earlier) + (kept.stage == _ADAM), "step")
    what = "Another learning rate" if kept.rate != now.rate else "Another start"
    return [
        f"{what} begins a new copy of the model. The one before, {steps} at a rate of "
        f"{kept.rate:g}, is dropped when you press Forward: go back to keep it."
    ]


def _whole(read: Probe, of: Checkpoint) -> Probe:
    """Return a text with what was cut off on the left, and say which part is trained on."""
    if not read.dropped:
        return read
    window, itos = of.model.config.context_length, of.vocabulary.itos
    layout.note(
        f"Training reads a long text from its beginning: on this page the first {window} tokens "
        "(<BOS> included) are read, not the last ones."
    )
    before = [itos[token] for token in read.cut_off[1:]]
    text = of.vocabulary.joined([*before, *read.typed])
    return of.vocabulary.probe(text, len(read.cut_off) + len(read.ids))


def _button(name: str, now: Walk, then: Walk, *, enabled: bool) -> None:
    st.button(
        name,
        key=f"walk_{name.lower().replace(' ', '_')}",
        type="primary" if enabled and name != "Reset" else "secondary",
        disabled=not enabled,
        on_click=state.put,
        args=(_WALK, then),
    )


# -- parts of a step


def _asked(step: TrainingStep, now: Walk, of: View) -> list[Part]:
    count = len(step.forward)
    return [
        f"Step {step.number}: ",
        (figures.shorten(now.text), "token"),
        f" asks for {count} predictions, one a position. Forward comes first.",
    ]


def _answered(step: TrainingStep, now: Walk, of: View) -> list[Part]:
    right = sum(each.likeliest == each.target for each in step.forward)
    probs = [each.prob for each in step.forward]
    return [
        "Forward: the next token gets a probability of ",
        (f"{min(probs):.1%} to {max(probs):.1%}", "number"),
        f"; guessing alike would give each {1 / len(of.vocabulary):.1%}. At {right} of "
        f"{len(probs)} positions it is the likeliest.",
    ]


def _mean(step: TrainingStep, now: Walk, of: View) -> list[Part]:
    over = step.loss - step.uniform
    return [
        "Loss: the mean of -ln p is ",
        (f"{step.loss:.3f} nats", "number"),
        f", {abs(over):.3f} {'above' if over > 0 else 'below'} guessing, which costs "
        f"ln {len(of.vocabulary)} = {step.uniform:.3f}.",
    ]


def _pushed(step: TrainingStep, now: Walk, of: View) -> list[Part]:
    total = count_parameters(of.model.weights)
    reached = sum(matrix.reached for matrix in step.matrices)
    longest = max(step.matrices, key=lambda matrix: matrix.norm)
    return [
        f"Backward: {total:,} numbers, a slope of the loss for each; ",
        (f"{reached:,} are not 0", "number"),
        f". The longest gradient is that of {longest.name}.",
    ]


def _fell(step: TrainingStep, now: Walk, of: View) -> list[Part]:
    change = step.loss - step.loss_after
    return [
        f"Adam: after step {step.number} ",
        (figures.shorten(now.text), "token"),
        f" costs {step.loss_after:.3f} nats: it {'fell' if change > 0 else 'rose'} by ",
        (f"{abs(change):.3f}", "number"),
        ", computed again on the moved weights.",
    ]


def _row(of: Prediction, stage: int) -> list[Cell]:
    return [
        *_pair(of),
        visible(of.likeliest) if stage >= _FORWARD else _NOTHING,
        Bar(f"{of.prob:.3f}", of.prob) if stage >= _FORWARD else _NOTHING,
        f"{of.loss:.3f}" if stage >= _LOSS else _NOTHING,
    ]


def _pair(of: Prediction) -> list[Cell]:
    return [f"{of.position} · {visible(of.read)}", visible(of.target)]


def _before_training(step: TrainingStep, now: Walk, through: Through) -> None:
    if now.stage < _LOSS:
        layout.help_line(
            "Every position predicts the token after it, so one text is many exercises at once: "
            "the first from <BOS> alone, the last that the text ends. Forward, loss and backward "
            "describe the model as it is. Adam changes it: what comes after is an effect."
        )
    else:
        rows: list[list[Cell]] = [
            ["all tokens alike, ln V", f"{step.uniform:.3f}"],
            [f"step {through.steps[0]:,} of training", f"{through.losses[0]:.3f}"],
            [f"step {through.steps[-1]:,} of training", f"{through.losses[-1]:.3f}"],
            ["your copy now", f"{step.loss:.3f}"],
        ]
        layout.table(
            ("this text in", "loss"), rows, strong=3, label="The text's loss, for comparison"
        )
        layout.help_line(
            "Fresh weights know nothing, so they begin near ln V: a little above or below, as "
            "their random opinions happen to fit the text."
        )


def _gradients(step: TrainingStep) -> None:
    longest = max(matrix.norm for matrix in step.matrices)
    rows: list[list[Cell]] = [
        [
            matrix.name,
            " x ".join(map(str, matrix.shape)),
            f"{matrix.reached:,}",
            Bar(f"{matrix.norm:.3f}", matrix.norm / longest if longest else 0.0),
            f"{matrix.weight_norm:.2f}",
        ]
        for matrix in step.matrices
    ]
    layout.table(
        ("matrix", "shape", "not 0", "gradient's length", "weights' length"),
        rows,
        words=(0, 1),
        label="Gradient of every matrix",
    )
    layout.help_line(
        "Rows of wte for tokens that the text does not read get no gradient, nor does what a ReLU "
        "switched off."
    )


def _adam(step: TrainingStep) -> None:
    chosen = _chosen(step)
    names = [f"{p.matrix.rpartition('.')[2]}[{_of_row(p)}][{p.column}]" for p in chosen]
    lines = (
        ("value", "before", "+.4f"),
        ("gradient g", "gradient", "+.3g"),
        (f"m = {BETA1:g} m + {1 - BETA1:.2g} g", "mean", "+.3g"),
        (f"v = {BETA2:g} v + {1 - BETA2:.2g} g²", "square", ".3g"),
        (f"m̂ = m / (1 - {BETA1:g}^{step.number})", "mean_hat", "+.3g"),
        (f"v̂ = v / (1 - {BETA2:g}^{step.number})", "square_hat", ".3g"),
        (f"-{step.rate:g} m̂ / (√v̂ + {EPSILON:g})", "update", "+.5f"),
        ("new value", "after", "+.4f"),
    )
    rows: list[list[Cell]] = [
        [title, *(format(getattr(parameter, field), form) for parameter in chosen)]
        for title, field, form in lines
    ]
    with st.container(key="adam"):
        layout.table(["number", *names], rows, strong=6, label="Adam on a few numbers")
    layout.help_line(f"The entries with the largest gradients. {_remembered(step.number)}")


def _remembered(number: int) -> str:
    """Return how far a step of Adam moves a number, and why."""
    if number == 1:
        return (
            "At Adam's first step m̂ / √v̂ is the sign of g, so each number moves by nearly the "
            "learning rate, however small its gradient."
        )
    return (
        f"This is Adam's step {number}: m and v still hold the gradients of "
        f"{'step 1' if number == 2 else f'steps 1 to {number - 1}'}. A number whose gradient "
        "stayed the same moves by the learning rate; where its sign changed, mostly by less."
    )


def _chosen(step: TrainingStep) -> list[Parameter]:
    """Return one entry of the first token's row, and of two matrices."""
    first = max(step.row, key=lambda parameter: abs(parameter.gradient))
    return [first, *(each for each in step.largest if each.matrix in _FEW)]


def _of_row(of: Parameter) -> str:
    return str(of.row) if of.token is None else visible(of.token)
