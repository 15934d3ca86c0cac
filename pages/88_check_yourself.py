"""What can you compute, predict and explain about this model?"""

from app import controls, layout, quiz_page, scorecard

CAVEAT = (
    "A score counts first answers to these questions about this model. It does not show how well "
    "you understand it, and a lucky choice counts like a reasoned one: explain it to somebody."
)
CODE = """
from pathlib import Path
from wordlm_core import checkpoint, quiz

loaded = [checkpoint.load(Path(path)) for path in {paths}]
asked = {{question.key: question for question in quiz.questions(loaded, seed={seed})}}
question = asked[{key}]
print(question.text)
print(question.expected.shown)  # computed, not looked up
print(question.why)
"""

pickers, card = layout.columns(1, 2)
with pickers:
    chosen = controls.checkpoint("microgpt")
    topic = quiz_page.topic()
    seed = quiz_page.seed()
everything = quiz_page.questions(chosen, seed)
asked = quiz_page.picked(everything, topic, seed)
place = quiz_page.place_of(chosen, seed)
with card:
    question = quiz_page.turn(asked, quiz_page.answers(place))
    quiz_page.ask(question, place)
with pickers:
    quiz_page.missing(chosen)

quiz_page.aloud(question.topic, place)
made = quiz_page.card(chosen, seed, everything)

layout.caveat(CAVEAT)
layout.downloads(
    "check_yourself",
    csv=lambda: scorecard.as_csv(made),
    data=lambda: scorecard.as_json(made),
    with_figures=False,
)
layout.code(CODE, quiz_page.quoted(chosen, seed, question))
