"""What does temperature do?"""

from app import controls, drawing, exports, figures, layout, results
from wordlm_core.lens import sampling

LENGTH = 24
CAVEAT = (
    "A probability says how often this model would draw a token, not how good or true it "
    "is. Temperature, top-k and top-p reshape the draw; the model knows no more and no less. "
    "The receipt counts exact neighbours only: it shows what was seen, not why the model agrees."
)
RECEIPT = "Did the model copy its training text, or go beyond it?"
DRAWS = "Same seed, same text, whatever anyone else does; ∎ ends it."
CODE = """
from pathlib import Path
from wordlm_core import checkpoint
from wordlm_core.lens import sampling

loaded = checkpoint.load(Path({path}))
model = loaded.model_at({step})
text, window = {text}, model.config.context_length
probe = loaded.vocabulary.probe(text, window) if text else loaded.vocabulary.beginning()
options = {options}
after = sampling.distribution_after(model, loaded.vocabulary, probe, **options)
print(after.entropy, after.effective, after.ranked(5))
drawn = sampling.generate(
    model, loaded.vocabulary, probe, seed={seed}, max_tokens={length}, samples={count}, **options
)
print([sample.text for sample in drawn])
"""

_, view = controls.opening(begin=True)
probe = view.probe

sliders, bars = layout.columns(2, 3)
with sliders:
    options = drawing.reshaping()
    before = sampling.distribution_after(view.model, view.vocabulary, probe)
    after = sampling.distribution_after(view.model, view.vocabulary, probe, **options)
    results.openness(before, after, options["temperature"])
candidates = figures.candidates_of(before, after)
with sliders:
    append = drawing.force(view, candidates.tokens)
with bars:
    chart = figures.next_bars(candidates, view.model.kind)
    layout.plot(chart, "next", append=append, name="next_word")

draws, receipt = layout.columns(3, 2)
with draws:
    layout.section("Draw continuations", DRAWS)
    drawn, seed = drawing.samples(view, options, LENGTH)
    chosen = drawing.sample(drawn)
    results.samples(view, drawn, chosen, options["temperature"])
with receipt:
    if view.vocabulary.unit == "word":
        layout.section("Corpus receipt", RECEIPT)
        found = drawing.corpus_counts(view, len(view.vocabulary))
        if found is not None:
            results.receipt(found, before)

layout.section("Step through the sample", "What each of its tokens was drawn from.")
where, how = layout.columns(2, 3)
with where:
    index, token = drawing.drawn_token(view, drawn[chosen])
    so_far = drawn[chosen].ids[:index]
    plain = sampling.distribution_after(view.model, view.vocabulary, probe, so_far)
    shaped = sampling.distribution_after(view.model, view.vocabulary, probe, so_far, **options)
    results.drawn(token, shaped, options["temperature"])
    results.sample_so_far(probe, drawn[chosen], index, token)
with how:
    of_token = figures.candidates_of(plain, shaped, 10, token)
    layout.plot(figures.next_bars(of_token, view.model.kind), "drawn", name="drawn_word")

layout.caveat(CAVEAT)
layout.downloads(
    "generate",
    csv=lambda: exports.next_csv(before, after),
    data=lambda: exports.next_json(after, drawn, probe),
)
shown = {"options": options, "seed": seed, "length": LENGTH, "count": len(drawn)}
layout.code(CODE, controls.quoted(view) | shown)
