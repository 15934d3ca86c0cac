"""Which model predicts better, by how much, at what cost?"""

from app import controls, figures, layout, state, summary

COMMAND = "python -m wordlm_core benchmark --corpus tinystories --out artifacts"
NEXT = "The same sentence, read by every kind of model here."
CAVEAT = (
    "A prediction on one sentence is not evidence for a model: that takes held-out text and "
    "several seeds, and holds for these sizes and this corpus only."
)

library = state.library()
measured = library.benchmark

layout.hero(
    "Open a tiny language model and look inside.",
    "Every answer is computed live, on your own sentence, by models small enough to read.",
)
if library.checkpoints:
    checkpoint = controls.best_checkpoint()
    probe = controls.probe_or_hint(checkpoint)
    if probe is not None:
        views = controls.rivals(state.view(checkpoint, checkpoint.selected_label, probe))
        layout.section("What comes next?", NEXT)
        layout.plot(figures.next_words(controls.panels(views, {})), "next", name="next_words")
layout.cards(
    ("20_attention.py", "**Attention** · Where does each position look?", ":material/grid_on:"),
    ("30_ablation.py", "**Ablation** · Take a word away: what changes?", ":material/content_cut:"),
    ("40_embeddings.py", "**Embeddings** · How did the words move?", ":material/scatter_plot:"),
    ("50_neighbours.py", "**Neighbours** · What is near what?", ":material/hub:"),
    ("60_context.py", "**Context** · Same word, different text?", ":material/compare_arrows:"),
    ("70_generate.py", "**Generate** · What does temperature do?", ":material/casino:"),
    ("80_logits.py", "**Logit view** · What do heads push?", ":material/swap_vert:"),
    ("81_microgpt_map.py", "**microgpt** · A GPT of names, line by line", ":material/map:"),
)

if measured is None:
    layout.section("No comparison yet", "This command trains every model over three seeds:")
    layout.command(COMMAND)
else:
    layout.section("The measured answer")
    layout.answer(*summary.conclusion(measured))
    layout.table(
        summary.RESULT_HEADS, summary.results(measured), label="Mean and deviation over seeds"
    )

traces = summary.traces(measured, library.checkpoints)
curves, dots = layout.columns(3, 2)
if traces:
    with curves:
        layout.section("While it trains", "Loss on held-out validation text; lower is better.")
        layout.plot(figures.learning_curves(traces), "curves", name="learning_curves")
if measured is not None:
    with dots:
        layout.section("Is it luck?", "One dot a seed, a line at the mean.")
        layout.plot(figures.seeds(summary.perplexities(measured), "test perplexity"), "seeds")
    layout.help_line(summary.claim_scope(measured))
    with layout.folded("What was measured, on what", ":material/fact_check:"):
        layout.table(summary.SPLIT_HEADS, summary.splits(measured), label="Corpus audit")
        layout.table(("protocol", ""), summary.protocol(measured), words=(0, 1), label="Protocol")

layout.section("Checkpoints in the folder")
layout.table(
    summary.FILE_HEADS, summary.files(library.checkpoints), words=(0, 1), label="Checkpoints"
)
layout.unreadable(library.unreadable)
layout.caveat(CAVEAT)
