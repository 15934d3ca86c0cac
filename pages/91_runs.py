"""Which runs wait, train or are done, and how does their loss go?"""

from app import layout, person, runs_act, runs_choice, runs_page

CAVEAT = (
    "A curve is one training with one seed: another seed differs by a little, so a small "
    "difference between two runs says nothing. Each step's loss is of other text than the one "
    "before; the average shows what was learned, on training text. Losses of two corpora or "
    "vocabularies measure two different tasks. The time left is the speed of late, not a promise."
)

shown = runs_choice.choose()
if shown is None:
    runs_act.row(None)
    runs_page.teach()
else:
    runs_act.row(shown.job)
    runs_page.live(shown)
    runs_choice.more(shown)
    runs_page.details(shown)
layout.caveat(CAVEAT)
person.mount()
if shown is not None:
    csv, data = runs_page.files(shown)
    layout.downloads("runs", csv=csv, data=data)
    layout.code(*runs_page.code(shown))
