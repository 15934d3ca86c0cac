"""Training: four buttons on a private copy, and what is looked back on."""

import base64
import csv
import dataclasses
import functools
import io
import json
import re
import shutil

import numpy as np
import pytest

from app import exports_gpt, figures, state, training_page, training_past, training_zeroing
from tests import tiny
from tests.ui.test_pages import html, is_fine, offered, open_page, said, specs
from wordlm_core import answers, checkpoint
from wordlm_core.lens import training_history, training_step

CHAR = tiny.char_checkpoint()
STAGES = ("forward", "loss", "backward", "adam")
MOST_BYTES = 400_000


def open_training(**parameters: str):
    return open_page("training", **{"text": "anna", **parameters})


def plain(at) -> str:
    return re.sub(r"<[^>]+>", "", html(at))


def press(at, *names: str) -> None:
    for name in names:
        at.button(f"walk_{name}").click().run()


def enabled(at) -> list[str]:
    names = (*STAGES, "next_step", "reset")
    return [name for name in names if not at.button(f"walk_{name}").disabled]


def taken(text: str = "anna", label: str = "step_0", **options) -> training_step.TrainingStep:
    model = CHAR.model_at(label)
    return training_step.training_step(
        model, CHAR.vocabulary, tiny.LETTERS.probe(text, 8), **options
    )


def read_bytes(values: dict) -> np.ndarray:
    """Return an array as the browser decodes it."""
    shape = tuple(map(int, str(values["shape"]).split(", ")))
    return np.frombuffer(base64.b64decode(values["bdata"]), f"<{values['dtype']}").reshape(shape)


# -- the four buttons


def test_each_button_is_enabled_in_turn(artifacts):
    at = open_training()
    assert is_fine(at)
    assert enabled(at) == ["forward"]
    for name, following in zip(STAGES, (*STAGES[1:], "next_step"), strict=True):
        press(at, name)
        assert is_fine(at)
        assert enabled(at) == [following, "reset"]
    press(at, "next_step")
    assert enabled(at) == ["forward", "reset"]
    assert "Step 2:" in plain(at)
    press(at, "reset")
    assert enabled(at) == ["forward"]
    assert "Step 1:" in plain(at)


def test_every_stage_shows_its_numbers_and_none_before(artifacts):
    at, step = open_training(), taken()
    prob, loss = f"{step.forward[0].prob:.3f}", f"{step.forward[0].loss:.3f}"
    assert "anna asks for 5 predictions" in plain(at)
    assert f">{prob}<" not in html(at)
    press(at, "forward")
    assert f">{prob}<" in html(at)
    assert f">{loss}<" not in html(at)
    press(at, "loss")
    assert f">{loss}<" in html(at)
    assert f"{step.loss:.3f} nats" in plain(at)
    assert f"ln {len(tiny.LETTERS)} = {step.uniform:.3f}" in plain(at)
    before = taken(label="step_0").loss
    trained = taken(label="selected_step_20").loss
    assert re.search(rf"step 0 of training</td><td>{before:.3f}", html(at))
    assert re.search(rf"step 20 of training</td><td>{trained:.3f}", html(at))
    press(at, "backward")
    for matrix in step.matrices:
        row = re.search(rf"{re.escape(matrix.name)}</td>(.*?)</tr>", html(at))
        assert row
        assert f"{matrix.norm:.3f}" in row[1]
        assert f">{matrix.reached:,}<" in row[1]
    press(at, "adam")
    change = step.loss - step.loss_after
    assert f"costs {step.loss_after:.3f} nats" in plain(at)
    assert f"it {'fell' if change > 0 else 'rose'} by {abs(change):.3f}" in plain(at)
    largest = max(step.row, key=lambda p: abs(p.gradient))
    assert f"wte[a][{largest.column}]" in html(at)
    for number in (largest.gradient, largest.mean, largest.mean_hat):
        assert f">{number:+.3g}<" in html(at)
    assert f">{largest.update:+.5f}<" in html(at)
    assert f">{largest.after:+.4f}<" in html(at)


def test_the_next_step_goes_on_from_the_updated_copy(artifacts):
    at = open_training()
    press(at, *STAGES, "next_step")
    at.text_input("text").set_value("eva").run()
    assert enabled(at) == ["forward", "reset"]
    press(at, *STAGES)
    step = taken("eva", earlier=("anna",))
    assert f"eva costs {step.loss_after:.3f} nats" in plain(at)
    assert f"after step 2 eva costs {step.loss_after:.3f}" in plain(at)
    began = f"{step.earlier[0]:.3f} → {step.loss:.3f}"
    assert f"has taken: 2. Loss when each began, the latest last: {began}." in plain(at)


def test_adam_counts_its_own_steps(artifacts):
    at = open_training()
    press(at, *STAGES)
    assert f"after step 1 anna costs {taken().loss_after:.3f}" in plain(at)
    assert f"has taken: 1. Loss when each began: {taken().loss:.3f}." in plain(at)
    assert "At Adam's first step" in plain(at).replace("&#x27;", "'")
    press(at, "next_step")
    assert "has taken: 1." in plain(at)
    press(at, *STAGES)
    assert "has taken: 2." in plain(at)
    assert "first step" not in plain(at)
    assert "step 2: m and v still hold the gradients of step 1." in plain(at)
    press(at, "next_step", *STAGES)
    assert "step 3: m and v still hold the gradients of steps 1 to 2." in plain(at)


def test_another_text_begins_the_present_step_anew_and_keeps_the_steps(artifacts):
    at = open_training()
    press(at, *STAGES, "next_step", "forward", "loss")
    offered(at, "preset", 0)
    assert enabled(at) == ["forward", "reset"]
    assert "Step 2:" in plain(at)


@pytest.mark.parametrize("change", ["step", "rate", "checkpoint"])
def test_another_start_begins_a_new_copy(folder, open_folder, tmp_path, change):
    shutil.copytree(folder, tmp_path / "artifacts")
    checkpoint.save(tiny.char_checkpoint(seed=5), tmp_path / "artifacts/microgpt_seed5.npz")
    open_folder(tmp_path / "artifacts")
    at = open_training(checkpoint="microgpt_seed42")
    press(at, *STAGES, "next_step", "forward")
    if change == "step":
        at.select_slider("step").set_value(1).run()
    elif change == "rate":
        at.button_group("rate").set_value(0).run()
    else:
        other = at.selectbox("checkpoint").options.index("microgpt_seed5")
        at.selectbox("checkpoint").set_value(other).run()
    assert enabled(at) == ["forward"]
    assert "Step 1:" in plain(at)
    what = "Another learning rate" if change == "rate" else "Another start"
    assert f"{what} begins a new copy of the model. The one before, 1 step at a rate" in plain(at)
    press(at, "forward")
    assert "begins a new copy" not in plain(at)


def test_a_copy_is_there_again_when_its_rate_is_chosen_again(artifacts):
    at = open_training()
    at.button_group("rate").set_value(0).run()
    assert "begins a new copy" not in plain(at)  # there was nothing to lose
    at.button_group("rate").set_value(2).run()
    press(at, *STAGES)
    at.button_group("rate").set_value(4).run()
    assert "1 step at a rate of 0.01, is dropped when you press Forward" in plain(at)
    at.button_group("rate").set_value(2).run()
    assert "begins a new copy" not in plain(at)
    assert f"costs {taken().loss_after:.3f} nats" in plain(at)


def test_two_people_have_copies_of_their_own(artifacts):
    one, two = open_training(), open_training()
    shared = {k: v.copy() for k, v in library_model().weights.items()}
    press(one, *STAGES, "next_step", *STAGES)
    assert enabled(two.run()) == ["forward"]
    press(two, *STAGES)
    assert f"costs {taken().loss_after:.3f} nats" in plain(two)
    for name, weights in library_model().weights.items():
        np.testing.assert_array_equal(weights, shared[name])


def library_model():
    return state.library().checkpoints["microgpt_seed42"].model


def test_the_steps_end_with_a_disabled_button(artifacts, monkeypatch):
    monkeypatch.setattr(training_page, "MOST_STEPS", 1)
    at = open_training()
    press(at, *STAGES, "next_step", *STAGES)
    assert enabled(at) == ["reset"]


# -- what is typed


def test_a_text_longer_than_the_context_is_read_from_its_beginning_everywhere(
    artifacts, monkeypatch, capsys, downloads
):
    long, other = "adamvera" + "n" * 30, "evannina" + "n" * 30  # the last tokens are the same
    at = open_training(text=other)
    press(at, "forward", "loss")
    assert f"{taken(other).loss:.3f} nats" in plain(at)
    at.text_input("text").set_value(long).run()
    press(at, *STAGES)
    step = taken(long)
    assert taken(other).loss != step.loss
    assert "on this page the first 8 tokens (<BOS> included) are read" in html_text(at)
    reads = re.findall(r"<td[^>]*>\d · ([^<]*)</td>", html(at))
    assert reads == ["&lt;BOS&gt;", *"adamver"]
    assert f"costs {step.loss_after:.3f} nats" in plain(at)
    rows = list(csv.DictReader(io.StringIO(downloads["training.csv"]())))
    assert [float(row["prob_before"]) for row in rows] == [each.prob for each in step.forward]
    press(at, "next_step")
    second = taken(long, earlier=(long,))
    press(at, *STAGES)
    assert f"costs {second.loss_after:.3f} nats" in plain(at)
    lines = next(code.value for code in at.code if "training_step" in code.value)
    monkeypatch.chdir(artifacts.parent)
    exec(lines, {})
    said_first = capsys.readouterr().out
    assert said_first.startswith(f"{second.loss} {second.uniform} {second.loss_after}")


def html_text(at) -> str:
    return plain(at).replace("&lt;", "<").replace("&gt;", ">")


@pytest.mark.parametrize("text", ["a", "anna" * 30, "  eva  ", "emma"])
def test_any_name_of_known_letters_goes_through_all_stages(artifacts, text):
    at = open_training(text=text)
    press(at, *STAGES)
    run_both(at)
    assert len(specs(at)) == 5


@pytest.mark.parametrize("text", ["", "  ", "Emma", "mary-jane", "<UNK>"])
def test_what_cannot_be_read_gives_a_sentence_and_no_figure(artifacts, text):
    at = open_training()
    at.text_input("text").set_value(text).run()
    assert [error.message for error in at.exception] == []
    assert re.search("type at least one character|is none of the", said(at))
    assert not specs(at)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [("", "type at least one character"), (" , ", "type at least"), ("anna zoe", "is none of the")],
)
def test_a_list_that_cannot_be_read_leaves_the_rest(artifacts, typed, sentence):
    at = open_training()
    at.text_input("list").set_value(typed).run()
    assert is_fine(at)
    assert sentence in said(at)
    assert len(specs(at)) == 3


def test_a_file_without_a_curve_leaves_the_rest(folder, open_folder, tmp_path):
    bare = dataclasses.replace(CHAR, metadata={"seed": 1})
    checkpoint.save(bare, tmp_path / "artifacts/microgpt_bare.npz")
    open_folder(tmp_path / "artifacts")
    at = open_training()
    assert is_fine(at)
    assert "does not hold the loss of every step" in said(at)
    assert len(specs(at)) == 2


# -- looked back on


def test_the_curve_has_its_lines(artifacts):
    chart, curve = specs(open_training())[0], training_history.curve(CHAR)
    losses, average, text = chart["data"]
    np.testing.assert_allclose(read_bytes(losses["y"]), curve.losses, rtol=1e-6)
    np.testing.assert_allclose(read_bytes(average["y"]), curve.average, rtol=1e-6)
    assert text["name"] == "anna"
    assert text["x"] == [0, 10, 20]
    expected = [taken(label=label).loss for label in tiny.STEPS]
    np.testing.assert_allclose(read_bytes(text["y"]), expected, rtol=1e-6)
    levels = [shape["y0"] for shape in chart["layout"]["shapes"]]
    assert levels == pytest.approx([curve.uniform, curve.last])
    assert "does not hold the loss of a model that knows its list" in plain(open_training())


def test_a_known_floor_is_drawn_and_said(folder, open_folder, tmp_path):
    corpus = {**CHAR.metadata["corpus"], "floor": 0.75, "longer_than_context": 0}
    known = dataclasses.replace(CHAR, metadata={**CHAR.metadata, "corpus": corpus})
    checkpoint.save(known, tmp_path / "artifacts/microgpt_floor.npz")
    open_folder(tmp_path / "artifacts")
    at = open_training()
    assert [s["y0"] for s in specs(at)[0]["layout"]["shapes"]][-1] == 0.75
    assert "by heart would cost 0.75 nats a token" in plain(at)
    assert "counts every prediction alike" not in plain(at)
    assert "numbers have to do for 8 items, 20 steps have shown the model one" in plain(at)


def test_the_curve_says_what_was_lost_before_training(artifacts):
    curve, before = training_history.curve(CHAR), taken(label="step_0").loss
    text = plain(open_training())
    assert f"From {curve.losses[0]:.2f}, the first item" in text
    assert f"Before training anna cost {before:.3f}" in text
    assert f"alike costs {curve.uniform:.3f}" in text


def through_of(*losses: float, steps=(0, 10, 20)) -> training_history.Through:
    return training_history.Through(("a",), steps, np.array(losses), np.zeros((3, 1, 1, 1)))


def curve_of(*losses: float) -> training_history.Curve:
    stored = np.array(losses)
    average = training_history.moving_average(stored)
    return training_history.Curve(stored, average, float(stored.mean()), 3.0, None)


FALLING, RISING = curve_of(*np.linspace(3, 2, 20)), curve_of(*np.linspace(2, 3, 20))


@pytest.mark.parametrize(
    ("curve", "losses", "rose"),
    [
        (FALLING, (3.0, 2.0, 2.5), True),
        (FALLING, (3.0, 2.0, 2.05), False),
        (FALLING, (3.0, 2.5, 2.0), False),
        (FALLING, (2.0, 2.5, 3.0), False),
        (RISING, (3.0, 2.0, 2.5), False),
    ],
)
def test_a_rise_of_the_text_is_said_only_where_the_mean_falls(curve, losses, rose):
    told = " ".join(training_past.beside(curve, through_of(*losses), "anna"))
    assert f"Before training anna cost {losses[0]:.3f}" in told
    assert ("After step 10 anna rose again, from 2.00 to 2.50" in told) is rose
    if rose:
        fell = f"from {curve.average[9]:.2f} to {curve.average[-1]:.2f}"
        assert f"fell all the same, {fell}" in told


def test_without_the_first_weights_nothing_is_said_of_them():
    through = through_of(3.0, 2.5, 2.0, steps=(5, 10, 20))
    assert training_past.beside(FALLING, through, "anna") == []


@pytest.mark.parametrize(
    ("gap", "told"),
    [
        (0.784, "This model is 0.78 above."),
        (0.004, "This model costs the same."),
        (-1e-16, "This model costs the same."),
        (-0.06, "The last steps cost 0.06 less"),
    ],
)
def test_the_gap_to_the_floor_is_never_below_nothing(gap, told):
    assert training_past.above(gap).startswith(told)
    assert "-" not in training_past.above(gap)


def test_a_very_long_curve_is_thinned_out():
    long = dataclasses.replace(CHAR, metadata={"loss_history": [2.0, 1.0] * 20_001})
    through = training_history.through_training(CHAR, tiny.LETTERS, tiny.LETTERS.probe("eva", 8))
    chart = figures.training_curve(training_history.curve(long), through, "eva")
    drawn = chart.spec["data"][0]
    assert len(read_bytes(drawn["y"])) <= 5_000
    assert drawn["dx"] == 9
    assert "every 9" in drawn["name"]


def test_letters_move_through_every_stored_step(artifacts):
    chart, result = specs(open_training())[1], training_history.letters_map(CHAR)
    vowels, others = chart["data"]
    assert vowels["text"] == ["a", "e", "i"]
    assert others["text"] == ["d", "m", "n", "r", "v"]
    assert vowels["marker"]["color"] != others["marker"]["color"]
    frames = chart["frames"]
    assert [frame["name"] for frame in frames] == ["0", "10", "20"]
    slider = chart["layout"]["sliders"][0]
    assert [each["args"][0] for each in slider["steps"]] == [["0"], ["10"], ["20"]]
    for index, frame in enumerate(frames):
        for letter, x, y in zip(
            vowels["text"], frame["data"][0]["x"], frame["data"][0]["y"], strict=True
        ):
            path = next(p for p in result.trajectory.paths if p.word == letter)
            assert (x, y) == pytest.approx(path.points[index].coords, abs=0.006)
    assert frames[-1]["data"][0]["x"] == vowels["x"]


def test_heads_move_through_every_stored_step(artifacts):
    chart = specs(open_training())[2]
    probe = tiny.LETTERS.probe("anna", 8)
    through = training_history.through_training(CHAR, tiny.LETTERS, probe)
    assert len(chart["data"]) == 2
    for index, frame in enumerate(chart["frames"]):
        assert frame["traces"] == [0, 1]
        for head in range(2):
            drawn = read_bytes(frame["data"][head]["z"])
            np.testing.assert_array_equal(drawn, np.rint(100 * through.attention[index, head]))
    for axis, title in (("xaxis", "key (source)"), ("yaxis", "query (receiver)")):
        assert chart["layout"][axis]["ticktext"] == ["&lt;BOS&gt;", "a", "n", "n", "a"]
        assert chart["layout"][axis]["title"]["text"] == title
    assert chart["layout"]["sliders"][0]["active"] == 2


def test_a_hundred_steps_of_a_full_context_stay_small():
    stored = {f"step_{n}": tiny.weights_of(wide().model.config.shapes, n) for n in range(101)}
    made = checkpoint.Checkpoint.from_training(wide().model, tiny.LETTERS, {}, stored)
    full = tiny.LETTERS.probe("anna" * 4, 16)
    through = training_history.through_training(made, tiny.LETTERS, full)
    assert len(through.steps) == 101
    for chart in (
        figures.heads_through(through),
        figures.letters_map(training_history.letters_map(made)),
    ):
        assert len(json.dumps(chart.spec)) < MOST_BYTES


def wide():
    return tiny.char_checkpoint(context_length=16, n_head=4)


def test_a_deep_model_offers_its_layers(folder, open_folder, tmp_path):
    checkpoint.save(tiny.char_checkpoint(n_layer=2), tmp_path / "artifacts/microgpt_deep.npz")
    open_folder(tmp_path / "artifacts")
    at = open_training()
    first = specs(at)[2]["data"][0]["z"]
    at.button_group("layer").set_value(1).run()
    assert is_fine(at)
    assert specs(at)[2]["data"][0]["z"] != first
    press(at, *STAGES)
    assert is_fine(at)


# -- zeroing left out


def run_both(at):
    at.button("run_both").click().run()
    assert is_fine(at)
    return at


def test_both_ways_are_drawn_and_said(artifacts):
    at = run_both(open_training(list="anna eva, adam", rate="0.03"))
    model = CHAR.model_at("step_0")
    result = training_step.zeroing(model, tiny.LETTERS, names=("anna", "eva", "adam"), rate=0.03)
    losses, norms = specs(at)[3:]
    for chart, pair in (
        (losses, (result.zeroed, result.kept)),
        (norms, (result.zeroed_norms, result.kept_norms)),
    ):
        for drawn, values in zip(chart["data"], pair, strict=True):
            np.testing.assert_allclose(read_bytes(drawn["y"]), values, rtol=1e-6)
    assert losses["data"][0]["x"] == list(range(0, 51, 5))
    assert losses["layout"]["shapes"][0]["y0"] == pytest.approx(result.floor)
    zeroed, kept = f"{result.zeroed[-1]:.2f} nats", f"{result.kept[-1]:.2f} nats"
    assert f"After 50 steps at a rate of 0.03 the list costs {zeroed} with" in plain(at)
    assert f"zeroing and {kept} without" in plain(at)
    assert training_zeroing.verdict(result, 0.03) in plain(at)


def test_nothing_is_trained_before_it_is_asked_for_and_a_result_stays(artifacts, monkeypatch):
    trained: list[tuple[str, ...]] = []
    zeroing = training_step.zeroing

    @functools.wraps(zeroing)
    def noted(*parts, **options):
        trained.append(options["names"])
        return zeroing(*parts, **options)

    monkeypatch.setattr(training_step, "zeroing", noted)
    at = open_training(list="vera anna", rate="0.03")
    assert (trained, len(specs(at))) == ([], 3)
    run_both(at)
    assert (trained, len(specs(at))) == ([("vera", "anna")], 5)
    at.text_input("text").set_value("eva").run()
    assert len(specs(at)) == 5
    at.text_input("list").set_value("vera anna adam").run()
    assert len(specs(at)) == 3
    at.text_input("list").set_value("vera, anna").run()
    assert (trained, len(specs(at))) == ([("vera", "anna")], 5)
    at.text_input("list").set_value("vera adam")
    run_both(at)  # straight from the box
    assert trained[1:] == [("vera", "adam")]


def test_a_model_that_is_too_large_gets_a_sentence(artifacts, monkeypatch):
    monkeypatch.setattr(training_step, "MOST_WORK", 1_000)
    at = run_both(open_training(list="anna"))
    assert "choose a model of up to 20" in said(at)
    assert len(specs(at)) == 3


@pytest.mark.parametrize("worse", [True, False])
def test_the_verdict_follows_the_numbers(worse):
    ends = np.array([3.0, 4.0]), np.array([3.0, 2.0])
    zeroed, kept = ends[::-1] if worse else ends
    norms = np.full(7, 2.0), np.full(7, 9.6)
    result = training_step.Zeroing((0, 7), zeroed, kept, *norms, 0.1)
    told = training_zeroing.verdict(result, 0.001)
    assert "at step 7 its gradient is 5 times as long" in told
    assert ("did no harm" in told) is not worse
    assert ("past the place" in told) is worse
    assert ("Try a rate" in training_zeroing.verdict(result, 0.1)) is False


def test_a_list_known_by_heart_gives_no_endless_number():
    result = training_step.zeroing(CHAR.model, tiny.LETTERS, names=("a",), rate=0.1)
    assert result.kept_norms[-1] > 1e6 * result.zeroed_norms[-1]
    told = training_zeroing.verdict(result, 0.1)
    assert "its gradient is more than a million times as long" in told
    assert not re.search(r"\d{5}", told)


# -- files


def test_the_csv_has_a_row_a_prediction_before_and_after():
    step = taken()
    rows = list(csv.DictReader(io.StringIO(exports_gpt.training_step_csv(step))))
    assert [row["target"] for row in rows] == ["a", "n", "n", "a", "<BOS>"]
    for row, was, now in zip(rows, step.forward, step.forward_after, strict=True):
        assert float(row["prob_before"]) == was.prob
        assert float(row["loss_after"]) == now.loss


def test_the_json_is_the_commands():
    step = taken()
    expected = json.loads(json.dumps(answers.of_training_step(step)))
    assert json.loads(exports_gpt.training_step_json(step)) == expected


def test_the_code_on_the_page_gives_its_numbers(artifacts, tmp_path, monkeypatch, capsys):
    at = open_training()
    press(at, *STAGES, "next_step")
    lines = next(code.value for code in at.code if "training_step" in code.value)
    monkeypatch.chdir(artifacts.parent)
    exec(lines, {})
    step = taken(earlier=("anna",))
    assert capsys.readouterr().out.startswith(f"{step.loss} {step.uniform} {step.loss_after}")
