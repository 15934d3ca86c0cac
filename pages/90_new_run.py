"""What is trained, how long does it take, and how good can it get?"""

from app import layout, new_run_checkpoint, new_run_choice, new_run_plan, new_run_start, person

CAVEAT = (
    "The time was measured for a moment, on this machine as busy as it was then: others who "
    "train make it longer. No loss below the floor is to be expected, and nothing says that "
    "this model gets there. One seed is one draw: differences of a few hundredths need several."
)

person.mount()
choice, estimate = layout.columns(6, 5)
with choice:
    asked = new_run_choice.choose()
with estimate:
    found = new_run_plan.estimate(asked)
    new_run_start.start(asked, found)

new_run_plan.preview(asked, found)
new_run_checkpoint.section()
layout.caveat(CAVEAT)
if asked is not None:
    layout.downloads("new_run", data=lambda: new_run_start.data(asked, found), with_figures=False)
new_run_start.code(asked)
