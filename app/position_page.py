"""The One position page: lengths to predict, the walk, interventions, the hand example."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import controls, figures, layout, state
from app.layout import Cell
from app.state import View
from app.typed_vectors import TIMES, listed, numbers, short, sum_of_products, vectors
from wordlm_core import typed
from wordlm_core.errors import TextError
from wordlm_core.lens import position, position_interventions
from wordlm_core.lens.hand_attention import KEYS, LIMIT, WIDTH, HandAttention, hand_attention
from wordlm_core.lens.position import Length, Step, Walk
from wordlm_core.lens.position_interventions import Mixing, Swap
from wordlm_core.text import visible

ASKED_AT = 2
_LONGEST = 120
_PLACES = 3  # of what comes out of the hand example, as of its shares
_CHECKED, _CLOSED = "lengths_checked", "lengths_closed"
_WALK = "walk"
_WHERE = "Where the walk is. Its next token is what is predicted there."
_UNCOUNTED = "how many numbers? Check or skip the form first"
_NOT_A_LENGTH = "it is not a whole number."


# -- predict first


def predict(of: View) -> Any:
    """Ask how long each vector is, until it is known or closed; return the walk's place."""
    asked = _asked(of)
    if state.value(_CLOSED, False):
        with st.container(horizontal=True, vertical_alignment="center", key="predicted"):
            found = _found(asked) if state.value(_CHECKED, False) else "skipped"
            layout.help_line(f"Predict first, position {_asked_at(of)} of emma: {found}.")
            st.button(
                "Open the form",
                key="lengths_open",
                type="tertiary",
                icon=":material/edit:",
                on_click=_close,
                args=(False,),
            )
        return st.container()
    left, walking = layout.columns(2, 3)
    with left:
        layout.section(
            "Predict first",
            f"How many numbers at position {_asked_at(of)} of emma? Always this one, whatever the "
            "walk shows. <BOS> is at 0.",
        )
        _form(asked)
        if state.value(_CHECKED, False):
            _verdict(asked)
    return walking


def _form(asked: Sequence[Length]) -> None:
    with st.form("lengths", border=False):
        with st.container(gap="xsmall"):
            for start in range(0, len(asked), 2):
                row = range(start, min(start + 2, len(asked)))
                for side, number in zip(st.columns(2, gap="small"), row, strict=False):
                    with side:
                        _box(asked[number].name, number)
        with st.container(horizontal=True, gap="small"):
            st.form_submit_button(
                "Check", icon=":material/check:", type="primary", on_click=_check, args=(asked,)
            )
            tried = state.value(_CHECKED, False)
            st.form_submit_button(
                "Close" if tried else "Skip", key="lengths_close", on_click=_close, args=(True,)
            )


def _check(asked: Sequence[Length]) -> None:
    state.put(_CHECKED, True)
    _close(all(_read(text) == each.length for each, text in _answered(asked)))


def _close(closed: bool) -> None:
    state.put(_CLOSED, closed)


def _answered(asked: Sequence[Length]) -> list[tuple[Length, str]]:
    texts = [_typed(f"length_{number}", 6).strip() for number in range(len(asked))]
    return list(zip(asked, texts, strict=True))


def _found(asked: Sequence[Length]) -> str:
    right = sum(_read(text) == each.length for each, text in _answered(asked))
    return f"{right} of {len(asked)} right"


def _asked(of: View) -> tuple[Length, ...]:
    return position.lengths(of.model.config, _asked_at(of))


def _asked_at(of: View) -> int:
    return min(ASKED_AT, of.model.config.context_length - 1)


def _box(name: str, number: int) -> None:
    st.text_input(
        name, max_chars=6, key=f"length_{number}", persist_state="session", placeholder="?"
    )


def _verdict(asked: Sequence[Length]) -> None:
    pairs = _answered(asked)
    layout.answer((_found(asked), "number"))
    empty = [each.name for each, text in pairs if not text]
    if empty:
        layout.help_line(f"Still empty: {', '.join(empty)}.")
    layout.note(
        *(_correction(each, text) for each, text in pairs if text and _read(text) != each.length)
    )


def _counts_shown() -> bool:
    """Return whether the walk may say how many numbers there are: the form asks for it."""
    return state.value(_CHECKED, False) or state.value(_CLOSED, False)


def _read(text: str) -> int | None:
    try:
        return typed.count(text)
    except TextError:
        return None


def _correction(asked: Length, text: str) -> str:
    why = _NOT_A_LENGTH if _read(text) is None else asked.why
    return f"{asked.name}, not {text}: {why}"


# -- the walk


def walk(of: View, at: int) -> Walk:
    """Take the forward pass of a position apart."""
    return state.lens(
        of, position.walk, of.model, of.probe, position=at, end_id=of.vocabulary.end_id
    )


def place(of: View) -> int:
    """Pick a position of the text."""
    labels = [f"{i} · {label}" for i, label in enumerate(labels_of(of))]
    if len(labels) < 2:
        return 0
    default = min(ASKED_AT, len(labels) - 1)
    return controls.choose(st.select_slider, "Position", "position", labels, default, help=_WHERE)


def step(of: Walk) -> int:
    """Pick a step of the walk: by slider, by the buttons beside it, or in the picture."""
    labels = [f"{number} · {each.name}" for number, each in enumerate(of.steps, 1)]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        _turn("Back", ":material/chevron_left:", -1, len(labels) - 1)
        with st.container():
            chosen = controls.choose(st.select_slider, "Step of the walk", _WALK, labels)
        _turn("Next", ":material/chevron_right:", 1, len(labels) - 1)
    return chosen


def show(of: Walk, chosen: int, view: View) -> None:
    """Show one step: what it is, its line of code, why it is there, and its numbers."""
    now = of.steps[chosen]
    shape = _shape(now) + _aside(now) if _counts_shown() else _UNCOUNTED
    layout.answer((_name(of, chosen), "number"), f": {shape}")
    st.code(now.code, language="python")
    layout.help_line(f"{now.why}{_reads(of, now)}{_outcome(of, now, view)}")
    drawn = figures.step_cells(of, now, labels_of(view), view.vocabulary.itos)
    layout.plot(drawn, "walk_vector", name=f"step_{chosen + 1}")
    if now.values.shape[-1] > figures.VECTOR_SHOWN:
        layout.note(f"Drawn up to number {figures.VECTOR_SHOWN:,}; the rest is left out.")


def helpers() -> None:
    """Show what the lines of the walk call, so that they can be run."""
    with layout.folded("The helpers that these lines call", ":material/function:"):
        st.code(position.HELPERS.strip(), language="python")
        layout.help_line(
            "n_embd and head_dim are the widths d_model and d_head; wte, wpe and lm_head are "
            "matrices as lists of rows; attn_wq, mlp_fc1 and so on hold one such matrix a layer; "
            "keys and values begin as one empty list a layer."
        )


def layer(of: View) -> int:
    """Pick a layer, where there are several."""
    if of.model.n_layer == 1:
        return 0
    labels = [f"layer {number}" for number in range(of.model.n_layer)]
    return controls.choose(st.segmented_control, "Layer", "layer", labels)


def held_in_words(of: Walk, layer: int) -> None:
    """Say what the cache holds and what it saves."""
    _, seen, width = of.find("KV cache", layer).values.shape
    later = len(of.tokens) - seen
    below = f"{figures.counted(later, 'row')} below the line {'is' if later == 1 else 'are'}"
    empty = f"{below} still empty" if later else "every row is filled"
    held = f"{_cached(seen, width)}; {empty}" if _counts_shown() else "as many rows as were read"
    layout.help_line(
        f"After position {of.position}: {held}. Each position adds one row and reads the ones "
        "above: nothing is computed twice."
    )


# -- why future tokens cannot be seen


def swaps(of: View, at: int) -> list[tuple[str, Swap]]:
    """Change a later token and an earlier one; return what each changed at the position."""
    labels = labels_of(of)
    sides = layout.columns(1, 1, 1)
    with sides[0]:
        letter = _new_token(of)
    found: list[tuple[str, Swap]] = []
    places = (
        ("Later", "later", range(at + 1, len(labels)), 0),
        ("Earlier", "earlier", range(at), -1),
    )
    for side, (title, key, choices, default) in zip(sides[1:], places, strict=True):
        with side:
            if not choices:
                layout.note(
                    f"Nothing stands {'after' if default == 0 else 'before'} position {at}."
                )
                continue
            names = [f"{i} · {labels[i]}" for i in choices]
            start = len(names) - 1 if default else 0
            picked = choices[
                controls.choose(st.selectbox, f"{title} place to change", key, names, start)
            ]
        swap = state.lens(
            of,
            position_interventions.swap,
            of.model,
            of.probe,
            position=at,
            place=picked,
            replacement=letter,
        )
        found.append((f"{key}: {names[picked - choices[0]]} → {_seen(of, letter)}", swap))
    return found


def swapped(of: View, at: int, found: Sequence[tuple[str, Swap]]) -> None:
    """Say what each change did at the position."""
    for _, swap in found:
        change = f"{swap.place} · {_seen(of, swap.before)} to {_seen(of, swap.after)}"
        if swap.before == swap.after:
            layout.answer(f"Changing {change} changes nothing: it is the same token.")
        elif swap.place > at:
            layout.answer(
                f"Changing {change}, which comes later, changes nothing at position {at}: the "
                "largest change is ",
                (f"{max(swap.changes):g}", "number"),
                ".",
            )
        else:
            layout.answer(
                f"Changing {change}, which comes earlier, moves the prediction by a KL of ",
                (f"{figures.nats(swap.kl)} nats", "number"),
                ", most of all ",
                *_most_moved(of, swap.probs_before, swap.probs_after),
            )


# -- why W_O


def mixing(of: View, at: int, layer: int) -> Mixing:
    """Put the identity in the place of a layer's W_O."""
    return state.lens(
        of, position_interventions.without_wo, of.model, of.probe, position=at, layer=layer
    )


def mixed(of: View, found: Mixing) -> None:
    """Say what W_O does with the heads' outputs."""
    n_head, width = found.mixed.shape
    own = width // n_head
    layout.answer(
        "Put the identity in place of W_O and the prediction moves by a KL of ",
        (f"{figures.nats(found.kl)} nats", "number"),
        ", most of all ",
        *_most_moved(of, found.probs, found.probs_identity),
    )
    lands = (
        "the heads add nothing here"
        if found.elsewhere is None
        else f"{figures.percent(found.elsewhere)} of what they add (by squares) lands elsewhere"
    )
    layout.help_line(
        f"Side by side, each head owns {own} of {width} slots. With W_O, {lands}: what a head has "
        "found can go wherever later parts read it."
    )


# -- the hand example


def by_hand() -> None:
    """Read a query, keys and values, and draw every number of the formula."""
    asked, table = layout.columns(2, 3)
    with asked:
        query = controls.box("Query", "hand_query", "1, 0", _LONGEST)
        keys = controls.box("Keys", "hand_keys", "1, 0; 0, 1; -1, 0", _LONGEST)
        values = controls.box("Values", "hand_values", "10, 0; 0, 10; 5, 5", _LONGEST)
        layout.help_line("Numbers with commas, vectors with semicolons; 1 to 4 of either.")
    with table:
        try:
            _hand_table(_computed(query, keys, values))
        except TextError as error:
            layout.refuse(error)


def _computed(query: str, keys: str, values: str) -> HandAttention:
    return hand_attention(
        numbers("the query", query, 1, WIDTH, LIMIT),
        vectors("the keys", keys, KEYS, LIMIT),
        vectors("the values", values, KEYS, LIMIT),
    )


def _hand_table(of: HandAttention) -> None:
    width = len(of.query)
    rows: list[list[Cell]] = [
        [
            listed(of.keys[i]),
            f"{sum_of_products(of.query, of.keys[i])} = {short(of.dots[i])}",
            f"{of.scaled[i]:.3f}",
            f"{of.powers[i]:.3f}",
            layout.Bar(f"{of.weights[i]:.3f}", float(of.weights[i])),
            f"{of.weights[i]:.3f} {TIMES} {listed(of.values[i])} = {listed(of.parts[i], _PLACES)}",
        ]
        for i in range(len(of.keys))
    ]
    heads = ["key", "q·k", f"÷ √{width}", "e^(s - max)", "share", f"share {TIMES} value"]
    with st.container(key="hand_table"):
        layout.table(heads, rows, words=(0, 1, 5), label="Attention by hand, key by key")
    layout.answer("Output, the sum: ", (listed(of.output, _PLACES), "number"))
    layout.help_line(
        f"share = e^(s - max) / {of.powers.sum():.3f}, the sum of that column. The largest score "
        f"{of.scaled.max():.3f} is taken off first, which changes no share and keeps e^ small."
    )


# -- parts


def labels_of(of: View) -> list[str]:
    """Return the text's tokens as they can be seen."""
    return [visible(token) for token in of.probe.tokens]


def _typed(key: str, longest: int) -> str:
    return (state.value(key, "") or "")[:longest]


def _turn(title: str, icon: str, by: int, last: int) -> None:
    st.button(title, key=f"walk_{title.lower()}", icon=icon, on_click=_move, args=(by, last))


def _move(by: int, last: int) -> None:
    state.put(_WALK, min(last, max(0, state.value(_WALK, 0) + by)))


def _name(of: Walk, chosen: int) -> str:
    now = of.steps[chosen]
    several = max(each.layer or 0 for each in of.steps) > 0
    where = f", layer {now.layer}" if several and now.layer is not None else ""
    return f"{chosen + 1} · {now.name}{where}"


def _shape(now: Step) -> str:
    shape, size = now.values.shape, figures.counted(now.values.size, "number")
    if now.axes[0] == "key or value":
        return _cached(*shape[1:])
    heads = figures.counted(shape[0], "head")
    if now.axes == ("head", "position"):
        return f"{heads}, {figures.counted(shape[1], 'number')} each, one a position"
    if now.axes[0] == "head":
        return f"{size}, {heads} of {shape[1]}"
    if now.axes == ("vocab",):
        return f"{size}, one a token"
    return f"the {shape[0]} largest probabilities" if now.axes == ("rank",) else size


def _cached(seen: int, width: int) -> str:
    """Return what the cache of so many positions holds."""
    held = " and ".join(figures.counted(seen, what) for what in ("key", "value"))
    return f"{held} of {figures.counted(width, 'number')}"


def _aside(now: Step) -> str:
    if now.aside is None:
        return ""
    name, value = now.aside
    if name == "scale":
        return f"; scale {value:.4f}"
    return f"; {value:.0f} of {now.values.size:,} {name}"


def _reads(of: Walk, now: Step) -> str:
    if not now.reads:
        return ""
    names = " and ".join(_name(of, index) for index in now.reads)
    return f" It reads {names}."


def _outcome(of: Walk, now: Step, view: View) -> str:
    if now.unit != "nats":
        return ""
    ends = ", if the text ends here" if of.at_end else ""
    return f" The next token is {_seen(view, of.target)}{ends}: -log {of.probs[of.target]:.4f}."


def _new_token(of: View) -> int:
    labels = [visible(token) for token in of.vocabulary.itos]
    new = next((i for i in range(len(labels)) if i not in of.probe.ids), 0)
    return controls.choose(st.selectbox, "New token", "new_token", labels, new)


def _seen(of: View, token: int) -> str:
    return visible(of.vocabulary.itos[token])


def _most_moved(of: View, before: Any, after: Any) -> list[layout.Part]:
    """Return the token whose probability changed most, with both probabilities."""
    most = int(abs(after - before).argmax())
    ends = f" {figures.percent(float(before[most]))} → {figures.percent(float(after[most]))}."
    return [(_seen(of, most), "token"), ends]
