"""How does a name become numbers, and what is predicted from what?"""

from app import controls, exports_gpt, figures, layout, tokens_page, words
from wordlm_core.lens import tokens

REFUSAL = "A name with a character that the training list never held."
ROWS = "Every character of the training list, sorted, and <BOS> behind them. Yours are marked."
CAVEAT = (
    "An id is a row number, not a quantity: 4 is not twice 2, and neighbours in the list have "
    "nothing in common. The probabilities are of this model at this step: a low loss says that a "
    "name is spelled like the training list, not that it is a better name."
)
CODE = """
from pathlib import Path
from wordlm_core import checkpoint
from wordlm_core.lens import tokens

loaded = checkpoint.load(Path({path}))
model = loaded.model_at({step})
table = tokens.read(loaded.vocabulary, {text}, model.config.context_length)
print([token.label for token in table.tokens], [token.id for token in table.tokens])
for pair, loss in zip(table.trained, tokens.losses(model, table)):
    print(pair.position, pair.input.label, "->", pair.target.label, loss)
print(table.strange)  # what the vocabulary lacks
"""

pickers, boxes = layout.columns(2, 5)
with pickers:
    opened = controls.checkpoint(family="microgpt")
    step = controls.step(opened)
with boxes:
    shared, own = tokens_page.texts(opened)
model = opened.model_at(step)

left, right = layout.columns(1, 1)
with left:
    first = tokens.read(opened.vocabulary, shared, model.config.context_length)
    tokens_page.side(model, first)
with right:
    second = tokens_page.own_name(opened, own)
    if second is not None:
        tokens_page.side(model, second)
layout.help_line(tokens_page.uniform(opened))

layout.section("What cannot be read", REFUSAL)
tokens_page.refused(opened)

layout.section("The vocabulary", ROWS)
rows = tokens_page.rows(opened)
bars = figures.token_bars(rows, tokens_page.marked([first, second]))
layout.plot(bars, "vocabulary", name="vocabulary")
tokens_page.vocabulary(rows)

layout.caveat(CAVEAT)
layout.downloads(
    "tokens",
    csv=lambda: exports_gpt.tokens_csv(first, tokens.losses(model, first)),
    data=lambda: exports_gpt.tokens_json(first, tokens.losses(model, first)),
)
layout.code(CODE, {"path": words.paths([opened])[0], "step": step, "text": shared.strip()})
