"""The controls that pages share: each keeps its value across pages and in the address.

A choice is a position; its label (`3 · the`) is what people, the browser and the address see.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import streamlit as st

from app import layout, settings, shelf, state
from app.figures import Panel
from app.results import Shuffled
from app.state import View
from wordlm_core.checkpoint import Checkpoint, step_number
from wordlm_core.errors import CheckpointError, TextError
from wordlm_core.lens import ablation
from wordlm_core.lens.ablation import AblationResult
from wordlm_core.text import BOS, SPECIALS, UNK, visible
from wordlm_core.vocabulary import Probe, Vocabulary

PRESETS = (
    "Lily had a red ball. Tom took the red",
    "the cat saw the dog and the bird",
    'The little bird could not fly. The big bird said, "I will help',
    'She was happy and said, "thank',
    "Grandma baked a quiche. It was very",
)
_PRESET_LABELS = ("a red ball", "repeated words", "I will help", "thank", "an unknown word")
NAMES = ("emma", "isabella", "anna", "oliver", "charlotte")
_LISTED = 6
_SECOND = "Tom took the little red ball. The bird was very happy, and she said"
_SECOND_NAMES = ("anna", "isabella")
_NO_ATTENTION = (
    "An MLP reads its window as one long vector: every position has weights of its own, and "
    "none looks at another. So there is no attention to draw. What its prediction depends "
    "on can be measured all the same."
)
_BY_UNKNOWN, _BY_OTHER, _DELETED = "`<UNK>`", "another {unit}", "deleted"


def checkpoint(family: str | None = None) -> Checkpoint:
    """Pick a checkpoint: an artifact, a run or an upload; only the chosen one is opened.

    Args:
        family: Offer only this family's.

    Raises:
        CheckpointError: There is none, or the chosen one cannot be opened.
    """
    offered = shelf.entries("checkpoint", family)
    if not offered:
        what, options = ("checkpoint", "") if family is None else (family, f" --family {family}")
        raise CheckpointError(
            f"there is no {what} to open yet: train one on the page New run or with "
            f"python -m wordlm_core train{options}, or put .npz files into the artifacts folder; "
            "Overview lists what it holds"
        )
    names = [entry.label for entry in offered]
    artifacts = _of_family(family)
    default = names.index(min(artifacts, key=_plainness).name) if artifacts else 0
    chosen = choose(st.selectbox, "Checkpoint", "checkpoint", names, default, by_label=True)
    return offered[chosen].open()


def best_checkpoint(family: str | None = None) -> Checkpoint:
    """Return what is open before anybody picks: the lowest test loss, or the plainest."""
    return min(_of_family(family), key=_plainness)


def opening(family: str | None = None, *, begin: bool = False) -> tuple[Any, View]:
    """Draw what a page about one text begins with: checkpoint and step beside the sentence.

    Args:
        family: Offer only this family's checkpoints.
        begin: Whether a model of characters may begin from nothing.

    Returns:
        The pickers' column, for a page's own, and the view that was chosen.
    """
    pickers, text = layout.columns(2, 3)
    with pickers:
        chosen = checkpoint(family)
        at = step(chosen)
    with text:
        read = probe(chosen, begin=begin)
    return pickers, state.view(chosen, at, read)


def step(of: Checkpoint, *, second: bool = False) -> str | None:
    """Pick a training step at which all weights are stored, where there is a choice."""
    title, key = ("Its training step", "other_step") if second else ("Training step", "step")
    return _step(of, of.whole_steps, title, key)


def stored_step(of: Checkpoint) -> str | None:
    """Pick a training step at which the embeddings are stored, where there is a choice."""
    return _step(of, of.steps, "Training step", "step")


def dimensions() -> int:
    """Pick a flat map or one in space; return its number of axes."""
    return 2 + choose(st.segmented_control, "Map", "map", ("2-D", "3-D"))


def probe(of: Checkpoint, *, begin: bool = False) -> Probe:
    """Read a typed sentence, which answers while it is being typed, or a preset.

    Args:
        of: Its vocabulary reads the text.
        begin: Whether an empty text means `<BOS>` alone, for a model of characters.

    Raises:
        TextError: Nothing was typed.
    """
    limit = settings.current().max_text
    texts, labels = presets(of.vocabulary)
    state.turn("text", of.vocabulary.tokenizer, texts[0])
    hint = "Type a few words" if of.vocabulary.unit == "word" else "Type a name"
    typed = box("Probe sentence", "text", texts[0], limit, hint)
    begin = begin and of.vocabulary.tokenizer == "char"
    if begin:
        texts, labels = ["", *texts], [f"from {BOS}", *labels]
    offer("Try one of these", "preset", texts, fill("text"), labels, lit=typed)
    if len(typed) == limit:
        layout.note(f"The box holds {limit:,} characters; what came after was cut off.")
    if begin and not typed.strip():
        return of.vocabulary.beginning()
    read = of.vocabulary.probe(typed, of.model.config.context_length)
    layout.note(*_remarks(read, of.model.config.context_length))
    return read


def presets(vocabulary: Vocabulary) -> tuple[Sequence[str], Sequence[str]]:
    """Return texts that suit a vocabulary, and their labels: sentences, or single items."""
    if vocabulary.tokenizer == "word":
        return PRESETS, _PRESET_LABELS
    names = [name for name in NAMES if set(name) <= set(vocabulary.itos)]
    if not names:  # a list of other letters: the frequent ones make an item that can be read
        letters = sorted(vocabulary.itos[vocabulary.lexical], key=_frequency(vocabulary))
        names = ["".join(letters[:4]).strip() or letters[0]]
    return names, names


def offer(
    title: str,
    key: str,
    texts: Sequence[str],
    click: Callable[[str], None],
    labels: Sequence[str] = (),
    lit: str = "",
) -> None:
    """Offer texts as buttons in a row; `click` gets the text of the one that is clicked.

    Buttons, because they hold no value: the selection of a moment ago, sent by the browser
    beside newly typed letters, would be taken for a click and put the old text back.

    Args:
        title: What they are, for the row's first hover.
        key: Their keys begin with it.
        texts: One each.
        click: A callback.
        labels: Shown in place of the texts.
        lit: The text that is marked.
    """
    with st.container(horizontal=True, gap="xsmall", key=f"offer_{key}"):
        for index, text in enumerate(texts):
            st.button(
                layout.plain(labels[index] if labels else text),
                key=f"{key}_{index}",
                help=title if index == 0 else None,
                type="primary" if text == lit else "secondary",
                on_click=click,
                args=(text,),
            )


def fill(target: str) -> Callable[[str], None]:
    """Return a callback that puts a text into the text box `target`."""
    return lambda text: state.put(target, text)


def probe_or_hint(of: Checkpoint) -> Probe | None:
    """Read a typed sentence; without one, say so and return None: the page goes on."""
    try:
        return probe(of)
    except TextError as error:
        layout.refuse(error)
        return None


def require_attention(of: View, why: str = _NO_ATTENTION) -> None:
    """Stop the page with an explanation where the model has no attention."""
    if of.model.n_head > 0:
        return
    st.info(why)
    layout.page_link("30_ablation.py", "Take words away from this model", ":material/content_cut:")
    st.stop()


def second_text(of: View) -> Probe:
    """Read the second text.

    Raises:
        TextError: Nothing was typed.
    """
    limit = settings.current().max_text
    start = _SECOND
    if of.vocabulary.tokenizer == "char":
        first = of.probe.typed[1:]
        start = next((n for n in _SECOND_NAMES if set(n) & set(first)), "".join(first))
    state.turn("second", of.vocabulary.tokenizer, start)
    hint = f"Type a text that shares a {of.vocabulary.unit} with the first"
    typed = box("Second sentence", "second", start, limit, hint)
    try:
        read = of.vocabulary.probe(typed, of.model.config.context_length)
    except TextError as error:
        raise TextError(f"the second sentence is empty: {error}") from error
    layout.note(*(f"Second: {remark}" for remark in _remarks(read, of.model.config.context_length)))
    return read


def shared_token(of: View, second: Probe, places: Sequence[Any]) -> tuple[int, int]:
    """Pick a position in each text, among the tokens that stand in both.

    Args:
        of: The model and the first text.
        second: The second text.
        places: Two columns for the controls.

    Raises:
        TextError: The texts share no token.
    """
    first, unit = of.probe, of.vocabulary.unit
    shared = set(first.tokens) & set(second.tokens) - set(SPECIALS)
    if not shared:
        raise TextError(f"the two texts share no {unit}: type one that stands in both")
    in_first = [i for i, word in enumerate(first.tokens) if word in shared]
    with places[0]:
        position = _place(f"{unit} in the first text".capitalize(), "word_a", first, in_first)
    in_second = [i for i, word in enumerate(second.tokens) if word == first.tokens[position]]
    with places[1]:
        return position, _place(f"The same {unit} in the second", "word_b", second, in_second)


def head(of: View, *, second: bool = False) -> tuple[int, int]:
    """Pick a layer and a head of the model, or of the second one; one alone is not shown."""
    prefix, its = ("other_", "Its ") if second else ("", "")
    layer = number = 0
    if of.model.n_layer > 1:
        labels = [f"layer {n}" for n in range(of.model.n_layer)]
        layer = choose(st.segmented_control, f"{its}layer".capitalize(), f"{prefix}layer", labels)
    if of.model.n_head > 1:
        labels = [f"head {n}" for n in range(of.model.n_head)]
        number = choose(st.segmented_control, f"{its}head".capitalize(), f"{prefix}head", labels)
    return layer, number


def query(of: View) -> int:
    """Pick a query position; the last one by default, which alone makes the prediction."""
    labels = [_position(i, token) for i, token in enumerate(of.probe.tokens)]
    if len(labels) < 2:
        return 0
    return choose(
        st.select_slider,
        "Query position",
        "query",
        labels,
        len(labels) - 1,
        help="The row to take apart. A click into the heatmap does the same.",
    )


def position(of: View) -> int:
    """Pick a position; the last one by default, which alone was trained to predict."""
    labels = [_position(i, token) for i, token in enumerate(of.probe.tokens)]
    if len(labels) < 2:
        return 0
    meaning = "What comes after it is what the logits are about."
    last = len(labels) - 1
    return choose(st.select_slider, "Position", "position", labels, last, help=meaning)


def other(of: View, places: Sequence[Any]) -> tuple[View, int, int] | None:
    """Pick a second checkpoint with attention, its step, layer and head, for the same text.

    Args:
        of: The first view.
        places: Three columns for the controls.
    """
    offered = [
        entry
        for entry in shelf.entries("other")
        if entry.heads > 0 and entry.tokenizer == of.vocabulary.tokenizer
    ]
    with places[0]:
        names = ["nothing", *(entry.label for entry in offered)]
        chosen = choose(st.selectbox, "Compare with", "other", names)
    if chosen == 0:
        return None
    with places[1]:
        second = offered[chosen - 1].open()
        view = _same_text(of, second, step(second, second=True))
    with places[2]:
        return view, *head(view, second=True)


def replacement(of: View) -> dict[str, Any]:
    """Pick what takes a token's place; return the options of `ablate`."""
    vocabulary = of.vocabulary
    by_other = _BY_OTHER.format(unit=vocabulary.unit)
    ways = [_BY_UNKNOWN, by_other, _DELETED]
    if vocabulary.unknown_id is None:
        ways = [_DELETED, by_other]
    chosen = ways[choose(st.segmented_control, "Each token is replaced by", "by", ways)]
    if chosen == _DELETED:
        return {"delete": True}
    if chosen == _BY_UNKNOWN:
        return {"replacement": UNK}
    common = min(vocabulary.itos[vocabulary.lexical], key=_frequency(vocabulary))
    start = "cat" if "cat" in vocabulary.stoi else common
    state.turn("word", vocabulary.tokenizer, start)
    return {"replacement": box(vocabulary.unit.capitalize(), "word", start, 60)}


def rivals(of: View) -> list[View]:
    """Return the view and one of each other kind of model that reads the same tokens.

    The same seed is preferred, and the same training step where it is stored.
    """
    _, *others = companions(of.checkpoint)
    steps = [same_step(of.checkpoint, of.step, each, each.whole_steps) for each in others]
    read = [state.view(each, at, of.probe) for each, at in zip(others, steps, strict=True)]
    return [of, *read]


def companions(of: Checkpoint) -> list[Checkpoint]:
    """Return a checkpoint and one of each other kind that reads the same tokens.

    The same seed is preferred. A model without positions is no such kind; beside one, the
    same kind with positions is.
    """
    found = {_sort(of): of}
    seed = of.metadata.get("seed")
    others = state.library().checkpoints.values()
    for candidate in sorted(others, key=lambda entry: entry.metadata.get("seed") != seed):
        same_tokens = (
            candidate.vocabulary.sha256 == of.vocabulary.sha256
            and candidate.model.config.context_length >= of.model.config.context_length
            and _has_order(candidate)
        )
        if same_tokens:
            found.setdefault(_sort(candidate), candidate)
    return list(found.values())


def near_sighted(of: View) -> list[View]:
    """Return the model with the widest window that is too short for the text, if any.

    It reads the last tokens of the same text.
    """
    short = [
        candidate
        for candidate in state.library().checkpoints.values()
        if candidate.vocabulary.sha256 == of.vocabulary.sha256
        and candidate.model.config.context_length < len(of.probe.tokens)
    ]
    if not short:
        return []
    chosen = max(short, key=_window)
    at = same_step(of.checkpoint, of.step, chosen, chosen.whole_steps)
    return [state.view(chosen, at, of.probe.last(_window(chosen)))]


def without_positions(of: View) -> list[View]:
    """Return the model without positions that can read the text, if there is another one."""
    found = [
        candidate
        for candidate in state.library().checkpoints.values()
        if candidate.vocabulary.sha256 == of.vocabulary.sha256
        and not _has_order(candidate)
        and _window(candidate) >= len(of.probe.tokens)
        and candidate.sha256 != of.checkpoint.sha256
    ]
    return [state.view(each, each.selected_label, of.probe) for each in found[:1]]


def same_step(
    of: Checkpoint, step: str | None, second: Checkpoint, labels: Sequence[str]
) -> str | None:
    """Return the second's step with the same number, or its selected one."""
    if step is None or step == of.selected_label:
        return second.selected_label
    same = [label for label in labels if step_number(label) == step_number(step)]
    return same[0] if same else second.selected_label


def panels(views: Sequence[View], options: dict[str, Any]) -> list[Panel]:
    """Ablate the same text in each model, lined up with the first, which reads all of it."""
    whole = views[0].probe
    drawn: list[Panel] = []
    for each in views:
        unseen = len(whole.tokens) - len(each.probe.tokens)
        name = model_name(each) + (f", last {len(each.probe.tokens)}" if unseen else "")
        result = ablation.widen(ablate(each, options), whole)
        drawn.append(Panel(name, each.model.kind, result, unseen))
    return drawn


def ablate(of: View, options: dict[str, Any]) -> AblationResult:
    """Take every position of a view's text away in turn."""
    return state.lens(of, ablation.ablate, of.model, of.vocabulary, of.probe, **options)


def token(result: AblationResult) -> int:
    """Pick the position to take away: by default the one that matters most before the last."""
    labels = [layout.plain(_position(e.position, e.token)) for e in result.effects]
    earlier = result.effects[:-1] or result.effects
    default = result.effects.index(max(earlier, key=lambda effect: effect.kl))
    chosen = choose(st.pills, "Token to take away", "token", labels, default, wrap=True)
    return result.effects[chosen].position


def shuffles(views: Sequence[View], seed: int) -> list[Shuffled]:
    """Shuffle the same text for each model."""
    return [
        Shuffled(
            model_name(each),
            _has_order(each.checkpoint),
            state.lens(each, ablation.shuffle, each.model, each.vocabulary, each.probe, seed=seed),
        )
        for each in views
    ]


def seed(result: AblationResult) -> int | None:
    """Pick the seed of a shuffle; None where there are too few words to shuffle."""
    if len(result.effects) < 3:
        layout.note("A shuffle needs three tokens: two to swap and the last, which stays.")
        return None
    return seed_box("Seed of the order", "seed")


def quoted(of: View) -> dict[str, Any]:
    """Return what the lines of "Show the code" need to open the same view."""
    return {
        "path": shelf.path_of(of.checkpoint),
        "step": of.step,
        "text": as_typed(of.vocabulary, of.probe),
    }


def as_typed(vocabulary: Vocabulary, probe: Probe) -> str:
    """Return a text that gives the same ids again."""
    return vocabulary.joined(_typed(probe))


def model_name(of: View) -> str:
    """Return a model's short name, with its step where that is not the selected one."""
    model = of.model
    name = "MLP" if model.n_head == 0 else f"{model.n_head} heads"
    name = "one head" if model.n_head == 1 else name
    if model.trained_on == "every":  # microgpt, which differs by its depth
        name = f"{model.kind}, {model.n_layer} layer{'s' if model.n_layer > 1 else ''}"
    if not _has_order(of.checkpoint):
        name += ", no positions"
    early = of.step is not None and of.step != of.checkpoint.selected_label
    return f"{name}, step {step_number(cast('str', of.step)):,}" if early else name


def choose(
    widget: Callable[..., Any],
    title: str,
    key: str,
    labels: Sequence[str],
    default: int = 0,
    *,
    by_label: bool = False,
    **options: Any,
) -> int:
    """Draw a choice of positions that is kept and bound to the address; see `state.settle`."""
    changed = state.settle(key, labels, default, by_label=by_label)
    start = {st.selectbox: "index", st.select_slider: "value"}.get(widget, "default")
    if start == "default":
        options["required"] = True
    chosen: int | None = widget(
        title,
        range(len(labels)),
        format_func=labels.__getitem__,
        key=key,
        bind="query-params",
        persist_state="session",
        **{start: default},
        **options,
    )
    if chosen is None:  # a link with an empty parameter chooses nothing
        chosen = default
    state.remember(key, labels, chosen, default)
    layout.note(*([changed] if changed else []))
    return chosen


def box(title: str, key: str, start: str, longest: int, hint: str = "") -> str:
    """Draw a text box that answers while it is typed in, kept and bound to the address."""
    typed = st.text_input(
        title,
        start,
        max_chars=longest,
        key=key,
        bind="query-params",
        persist_state="session",
        live="200ms",
        placeholder=hint or None,
    )
    typed = (typed or "")[:longest]
    state.remember_text(key, typed)
    return typed


def seed_box(title: str, key: str) -> int:
    """Pick a seed; it is kept and bound to the address."""
    value = st.number_input(
        title, 0, 9999, 1, key=key, bind="query-params", persist_state="session", width=200
    )
    state.remember_text(key, str(value))
    return int(value or 0)


def trained_on(of: View) -> str:
    """Return what a caveat says of the rows that training asked for a prediction."""
    if of.model.trained_on == "every":
        return "microgpt was trained to predict at every position, so every row was checked."
    return (
        "In training only the last row was ever asked for a prediction; the rows above it show "
        "the same weights at work where nobody checked them."
    )


# -- parts


def _of_family(family: str | None) -> list[Checkpoint]:
    loaded = state.library().checkpoints.values()
    return [each for each in loaded if family in (None, each.model.family)]


def _plainness(of: Checkpoint) -> tuple[float, int, bool, str]:
    return _test_loss(of), max(1, of.model.n_layer), not _has_order(of), of.name


def _sort(of: Checkpoint) -> tuple[str, int, bool]:
    """Return what tells one sort of model from another on a page that shows them together."""
    return of.model.kind, of.model.n_layer, _has_order(of)


def _frequency(vocabulary: Vocabulary) -> Callable[[str], int]:
    """Return a key that puts frequent tokens first."""
    return lambda token: -vocabulary.counts.get(token, 0)


def _typed(probe: Probe) -> tuple[str, ...]:
    """Return what was typed, without the `<BOS>` in front of it."""
    return probe.typed[1:] if probe.dropped == 0 else probe.typed


def _has_order(of: Checkpoint) -> bool:
    """Return whether the model can tell one order of the words from another."""
    return getattr(of.model.config, "positions", True)


def _window(of: Checkpoint) -> int:
    return of.model.config.context_length


def _test_loss(of: Checkpoint) -> float:
    loss = of.section("metrics").get("test_loss")
    return loss if isinstance(loss, float) else math.inf


def _place(title: str, key: str, of: Probe, positions: Sequence[int]) -> int:
    labels = [layout.plain(_position(i, of.tokens[i])) for i in positions]
    return positions[choose(st.pills, title, key, labels, len(labels) - 1, wrap=True)]


def _step(of: Checkpoint, labels: Sequence[str], title: str, key: str) -> str | None:
    if len(labels) < 2:
        return of.selected_label
    default = labels.index(of.selected_label) if of.selected_label in labels else len(labels) - 1
    shown = [_step_label(of, label) for label in labels]
    meaning = "The same model earlier in its training. Step 0 is before any training."
    return labels[choose(st.select_slider, title, key, shown, default, help=meaning)]


def _position(position: int, label: str) -> str:
    return f"{position} · {visible(label)}"


def _step_label(of: Checkpoint, label: str) -> str:
    return (
        f"{step_number(label)} · selected"
        if label == of.selected_label
        else str(step_number(label))
    )


def _same_text(of: View, second: Checkpoint, at: str | None) -> View:
    if second.vocabulary.sha256 == of.vocabulary.sha256:
        return state.view(second, at, of.probe)
    text = as_typed(of.vocabulary, of.probe)
    return state.view(second, at, second.vocabulary.probe(text, second.model.config.context_length))


def _remarks(read: Probe, window: int) -> list[str]:
    remarks: list[str] = []
    if read.dropped:
        remarks.append(
            f"The model reads {window} tokens at once: the last ones are kept, {read.dropped:,} "
            "before them (<BOS> included) are cut off."
        )
    if read.unknown:
        typed = [f"“{read.typed[i]}” at {i}" for i in read.unknown[:_LISTED]]
        more = len(read.unknown) - len(typed)
        remarks.append(
            "Not in this vocabulary, so read as <UNK>: "
            + ", ".join(typed)
            + (f" and {more} more." if more else ".")
        )
    return remarks
