"""How does a GPT work? A walk in seven sections."""

from app import figures, layout, map_page, map_sheet

WARM_UPS = "Python of the kind that microgpt is written in. Predict what it prints, then see."
CAVEAT = (
    "The picture follows one position and shows which step feeds which: not the earlier positions "
    "that attention reads, and not what a trained model has learned in any step. A model sentence "
    "is one good answer among many."
)
CODE = """
from wordlm_core import corpora

documents = corpora.load({corpus}).documents  # or your own file, one name a line
itos = [*sorted(set("".join(documents))), "<BOS>"]
print(len(documents), "names,", len(itos), "tokens")
print([itos.index("<BOS>"), *map(itos.index, documents[0]), itos.index("<BOS>")])
"""

picture, writing = layout.columns(2, 3)
with writing:
    part = map_page.part()
    map_page.write(part)
    map_page.jump()
with picture:
    drawn = figures.gpt_map(part, [section.title for section in map_sheet.SECTIONS])
    layout.plot(drawn, "map", click=("customdata", "part"), name="microgpt_map")

written = map_page.entries()
map_page.sheet(written)

map_page.landing()
layout.section("Python warm-ups", WARM_UPS)
seen = map_page.warm_up()

layout.section("Section by section", "A page each, in the order of the code.")
map_page.links()

layout.caveat(CAVEAT)
layout.downloads("microgpt_map", data=lambda: map_sheet.everything(written, seen))
layout.code(CODE, {"corpus": "names"})
