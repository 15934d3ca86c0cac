"""A tiny scalar Value: what does backward do?"""

from app import autograd_page, exports_gpt, figures, layout
from wordlm_core.lens import expression

CAVEAT = (
    "A gradient is a slope at these very numbers: it says what a tiny change would do, not a large "
    "one, and nothing about other numbers. It is no measure of importance. A model is the same "
    "graph with many thousand nodes; there, matrices take the place of single boxes."
)
CHECK = (
    "Is a grad true? An intervention: each letter alone is really moved and all computed again. "
    "The change should be about 0.001 times its grad; what is left over is the curve."
)
CODE = """
from wordlm_core.autograd import Value, in_order
from wordlm_core.lens import expression

a, b, c = Value({a}), Value({b}), Value({c})
result = expression.build({text}, dict(a=a, b=b, c=c))  # what Python's operators make of it
before = result.data
for _ in range({calls}):  # nothing is zeroed in between
    result.backward()
print(result.data, a.grad, b.grad, c.grad)
for node in in_order(result):
    print(node.operation, node.data, node.grad, node.local_grads)
for letter in "abc":  # the numeric check
    moved = dict(a=Value({a}), b=Value({b}), c=Value({c}))
    moved[letter].data += 0.001
    after = expression.build({text}, moved).data
    print(letter, after, after - before)
"""

asked, numbers = layout.columns(5, 4)
with asked:
    text = autograd_page.expression()
with numbers:
    letters = autograd_page.letters()
    calls = autograd_page.calls()
result = expression.evaluate(text, letters, calls)

said, moved = layout.columns(5, 4)
with moved:
    step = autograd_page.backward_step(result)
with said:
    autograd_page.outcome(result, step)
    autograd_page.passed(result, step)
picture, table = autograd_page.places(result)
with picture:
    graph = figures.expression_graph(result, step)
    layout.plot(graph, autograd_page.graph_key(result), name="autograd")
with table:
    autograd_page.gradients(result, step)
autograd_page.repeated(result, step)

layout.section("Numeric check", CHECK)
autograd_page.nudged(result, step)

layout.caveat(CAVEAT)
layout.downloads(
    "autograd",
    csv=lambda: exports_gpt.expression_csv(result),
    data=lambda: exports_gpt.expression_json(result),
)
layout.code(CODE, letters | {"text": text.strip(), "calls": calls})
