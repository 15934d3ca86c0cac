"""How did the words move?"""

from app import controls, exports, figures, layout, results, state, words
from wordlm_core.lens import maps, trajectory

CAVEAT = (
    "A map of two or three axes leaves out the rest of the embedding: what is near on it can be "
    "far apart. Models trained apart share no coordinates: between them compare shapes, not places."
)
READ = (
    "One PCA basis for every lexical row of all chosen models and stored steps: movement here "
    "is movement of the rows, never of the axes. The axes end a little beyond the 1st and 99th "
    "percentile of all rows; the grey dots are every k-th row, at most about 100 a model."
)
CODE = """
from pathlib import Path
from wordlm_core import checkpoint
from wordlm_core.lens import trajectory

loaded = [checkpoint.load(Path(path)) for path in {paths}]
result = trajectory.trajectory(loaded, {words}, axes={axes})
print(result.explained)  # share of the variance along each axis
for path in result.paths:
    print(path.checkpoint, path.word, [(point.step, point.coords) for point in path.points])
"""

one, more, text = layout.columns(3, 3, 5)
with one:
    checkpoint = controls.checkpoint()
    axes = controls.dimensions()
with more:
    chosen = words.together(checkpoint)
    apart = words.separate()
with text:
    few = words.several(chosen)
result = trajectory.follow(state.tables(chosen, trajectory.fit, axes=axes), chosen, few)
kinds = [each.model.kind for each in chosen]

if apart:
    flat = trajectory.follow(state.tables(chosen, trajectory.fit, axes=2), chosen, few)
    results.misleading()
    for index, each in enumerate(chosen):
        panels = maps.refitted(each, few)
        results.apparent(maps.jumps(panels, flat, index), each.name)
        layout.plot(figures.refitted(panels, each.model.kind), f"apart_{index}", name="apart")
else:
    results.share_kept(result)
    cloud = state.tables(chosen, maps.cloud, axes=axes)
    layout.plot(figures.trails(result, cloud, kinds), "trails", name="embeddings")
    results.outside(figures.outside(result, cloud))
how, share = layout.columns(3, 2)
with how:
    layout.section("How to read the map", READ)
    layout.page_link("50_neighbours.py", "Distances: Neighbours", ":material/hub:")
with share:
    layout.plot(figures.kept(result, kinds), "kept", name="variance_kept")

layout.caveat(CAVEAT)
layout.downloads(
    "embeddings",
    csv=lambda: exports.trajectory_csv(result),
    data=lambda: exports.trajectory_json(result),
)
layout.code(CODE, {"paths": words.paths(chosen), "words": list(few), "axes": axes})
