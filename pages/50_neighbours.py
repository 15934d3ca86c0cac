"""What is near what?"""

from app import controls, exports, figures, layout, results, words
from wordlm_core.lens import neighbours

TOP = 8
CAVEAT = (
    "Near means that two lookup rows point the same way: used alike in this training, not alike "
    "in meaning. Of many rows in few dimensions some are near by chance, before any training."
)
RANKS = (
    "The nearest at every stored step, best on top: coloured ones stayed to the end, "
    "grey ones left."
)
CODE = """
from pathlib import Path
from wordlm_core import checkpoint
from wordlm_core.lens import neighbours

loaded = checkpoint.load(Path({path}))
vocabulary, table = loaded.vocabulary, loaded.embedding_at({step})
word_id = vocabulary.word_id({word})
print(neighbours.nearest(table, vocabulary, word_id, {top}).items)
ids = [vocabulary.word_id(word) for word in {words}]
print(neighbours.similarity(table, vocabulary, ids).cosines)
"""

pickers, text = layout.columns(2, 3)
with pickers:
    checkpoint = controls.checkpoint()
    step = controls.stored_step(checkpoint)
with text:
    word_id = words.one(checkpoint)
vocabulary, table = checkpoint.vocabulary, checkpoint.embedding_at(step)
near = words.near(checkpoint, step, word_id, TOP)

results.nearest(near)
for index, place in enumerate(layout.columns(*[1] * len(near))):
    with place:
        bars = figures.neighbour_bars(near[index], near)
        layout.plot(bars, f"near_{index}", pick="near", name="neighbours")

history, matrix = layout.columns(3, 2)
past = neighbours.history(checkpoint, word_id, TOP)
with history:
    layout.section("Biography", RANKS)
    if past.steps:
        results.arrivals(past)
        ranks = figures.biography(past, checkpoint.model.kind, step)
        layout.plot(ranks, "ranks", name="biography")
        with layout.folded("Who came and who left, step by step", ":material/table_rows:"):
            results.comings(past)
    else:
        layout.help_line("This file stores no embeddings over training.")
with matrix:
    layout.section("Each with each", "Cosines in the picked checkpoint, at the picked step.")
    few = words.several([checkpoint], "Compare")
    ids = [vocabulary.word_id(word) for word in few]
    alike = neighbours.similarity(table, vocabulary, ids)
    layout.plot(figures.similarity_matrix(alike), "matrix", name="similarity")

layout.caveat(CAVEAT)
layout.downloads(
    "neighbours",
    csv=lambda: exports.neighbours_csv(near, past),
    data=lambda: exports.neighbours_json(near[0].result),
)
values = {"step": step, "word": near[0].result.word, "top": TOP, "words": list(few)}
layout.code(CODE, {"path": words.paths([checkpoint])[0], **values})
