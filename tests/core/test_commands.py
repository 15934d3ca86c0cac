"""The command line: JSON exactly as designed, and one sentence for bad input."""

import json
import math
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests import tiny
from wordlm_core import checkpoint, scalar_gpt
from wordlm_core.__main__ import build_parser, main
from wordlm_core.corpora import stories
from wordlm_core.training import resume_path

ROOT = Path(__file__).resolve().parents[2]
TEXT = "the cat saw the dog and the bird"


@pytest.fixture(scope="session")
def files(checkpoints, tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("files")
    for name, value in checkpoints.items():
        checkpoint.save(value, folder / f"{name}.npz")
    return {name: str(folder / f"{name}.npz") for name in checkpoints}


@pytest.fixture(scope="session")
def corpus_file(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("corpus") / "some.jsonl"
    documents = stories.load(profile=None, documents=60).documents
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    return str(path)


@pytest.fixture
def ask(capsys):
    """Return a function that runs a command in this process and gives its JSON."""

    def run(*arguments: str) -> dict:
        assert main([*arguments, "--json"]) == 0
        out, _ = capsys.readouterr()
        assert "NaN" not in out
        assert "Infinity" not in out
        return json.loads(out)

    return run


@pytest.fixture
def refuse(capsys):
    """Return a function that runs a command that must fail, and gives its sentence."""

    def run(*arguments: str) -> str:
        try:
            status = main(list(arguments))
        except SystemExit as stop:
            status = stop.code
        out, err = capsys.readouterr()
        assert status == 2
        assert out == ""
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        return err

    return run


KEYS = {
    "inspect": {
        "path", "kind", "vocab_size", "context_length", "d_model", "n_head", "n_layer",
        "parameters", "steps", "selected_step", "metrics", "corpus",
    },
    "attend": {"tokens", "unknown", "dropped", "attention"},
    "ablate": {"tokens", "prediction", "ablations", "rank_correlation"},
    "knockout": {"tokens", "heads"},
    "logits": {"tokens"},
    "next": {"entropy", "distribution"},
}  # fmt: skip


@pytest.mark.parametrize("command", KEYS)
def test_json_has_the_designed_keys(ask, files, command):
    text = [] if command == "inspect" else ["--text", TEXT]
    assert set(ask(command, files["multihead"], *text)) >= KEYS[command]


def test_attend_gives_layer_head_query_key(ask, files):
    answer = ask("attend", files["multihead"], "--text", TEXT)
    weights = np.array(answer["attention"])
    assert answer["tokens"] == ["<BOS>", *TEXT.split()]
    assert weights.shape == (1, 4, 9, 9)
    assert np.allclose(weights.sum(-1), 1)
    assert not np.triu(weights[0, 0], 1).any()


def test_ablate_addresses_positions_not_words(ask, files):
    answer = ask("ablate", files["attention"], "--text", "the cat the")
    assert [a["position"] for a in answer["ablations"]] == [1, 2, 3]
    assert [a["token"] for a in answer["ablations"]] == ["the", "cat", "the"]
    assert answer["ablations"][0]["kl"] != answer["ablations"][2]["kl"]
    for effect in answer["ablations"]:
        assert effect["replacement"] == "<UNK>"
        assert effect["kl"] > 0
        assert np.array(effect["attention"]).shape == (1, 1)
        assert set(effect["changes"][0]) == {"token", "before", "after", "delta"}


def test_ablate_of_the_mlp_has_no_attention_and_no_rank_correlation(ask, files):
    answer = ask("ablate", files["mlp"], "--text", TEXT)
    assert answer["rank_correlation"] is None
    assert {effect["attention"] for effect in answer["ablations"]} == {None}


def test_ablate_by_a_word_and_by_deletion(ask, files):
    by_word = ask("ablate", files["attention"], "--text", TEXT, "--replace", "cat")
    assert by_word["ablations"][1] | {"kl": 0.0} == by_word["ablations"][1]
    assert {effect["replacement"] for effect in by_word["ablations"]} == {"cat"}
    deleted = ask("ablate", files["attention"], "--text", TEXT, "--delete")
    assert {effect["replacement"] for effect in deleted["ablations"]} == {None}


def test_a_long_text_keeps_the_last_tokens_and_says_how_many_went(ask, files):
    context = ask("inspect", files["attention"])["context_length"]
    for length in (context - 1, context, 10 * context):
        answer = ask("attend", files["attention"], "--text", "cat " * length)
        assert len(answer["tokens"]) == context
        assert answer["dropped"] == length + 1 - context


def test_answers_never_echo_the_typed_text(ask, files):
    secret = "xyzzysecret"
    for command in ("attend", "ablate", "next", "knockout", "logits"):
        answer = ask(command, files["attention"], "--text", f"the {secret} cat")
        assert secret not in json.dumps(answer)
        assert answer["tokens"] == ["<BOS>", "the", "<UNK>", "cat"]
        assert answer["unknown"] == [2]


def test_neighbours_and_their_steps(ask, files):
    first = ask("neighbours", files["attention"], "--word", " Cat ", "--top", "3")
    assert first["word"] == "cat"
    assert len(first["neighbours"]) == 3
    assert "cat" not in [item["token"] for item in first["neighbours"]]
    everything = ask("neighbours", files["attention"], "--word", "cat", "--top", "100000")
    loaded = checkpoint.load(Path(files["attention"]))
    assert len(everything["neighbours"]) == len(loaded.vocabulary) - 5
    early = ask("neighbours", files["attention"], "--word", "cat", "--step", loaded.steps[0])
    assert early["neighbours"] != first["neighbours"]


def test_similarity_is_symmetric_and_agrees_with_neighbours(ask, files):
    answer = ask("similarity", files["attention"], "--words", "cat, dog,bird")
    assert answer["words"] == ["cat", "dog", "bird"]
    cosines = np.array(answer["cosines"])
    assert np.allclose(cosines, cosines.T)
    assert np.allclose(cosines.diagonal(), 1)
    near = ask("neighbours", files["attention"], "--word", "cat", "--top", "100")["neighbours"]
    listed = {item["token"]: item["cosine"] for item in near}
    assert np.allclose(cosines[0, 1:], [listed["dog"], listed["bird"]])


def test_trajectory_keys(ask, files):
    answer = ask("trajectory", files["attention"], files["mlp"], "--words", "cat,dog")
    loaded = checkpoint.load(Path(files["attention"]))
    d_model = loaded.model.config.d_model
    assert np.array(answer["mean"]).shape == (d_model,)
    assert np.array(answer["basis"]).shape == (2, d_model)
    assert len(answer["explained"]) == 2
    assert len(answer["paths"]) == 4
    for path in answer["paths"]:
        assert set(path["points"][0]) == {"step", "x", "y"}


def test_separately_fitted_maps_say_how_far_words_seem_to_jump(ask, files):
    run = ("trajectory", files["attention"], "--words", "cat,dog")
    assert "separately" not in ask(*run)
    (told,) = ask(*run, "--separately")["separately"]
    assert told["checkpoint"] == "attention"
    assert told["apart"] > 0
    assert told["common"] > 0


def test_contextual_keys_and_its_refusals(ask, refuse, files):
    file = files["attention"]
    answer = ask("contextual", file, "--a", "the cat", "--b", "a dog saw the cat")
    assert answer["token"] == "cat"
    assert (answer["position_a"], answer["position_b"]) == (2, 5)
    assert answer["lookup_equal"] is True
    assert answer["lookup_cosine"] == pytest.approx(1)
    assert answer["contextual_l2"] > 0
    named = ask(
        "contextual", file, "--a", "the cat saw", "--b", "the cat saw the cat", "--word", "cat"
    )
    assert (named["position_a"], named["position_b"]) == (2, 5)
    refuse("contextual", file, "--a", "the cat", "--b", "the dog")
    refuse("contextual", files["mlp"], "--a", "the cat", "--b", "a cat")


def test_next_is_a_distribution(ask, files):
    answer = ask("next", files["attention"], "--text", TEXT, "--limit", "1000")
    probs = [item["prob"] for item in answer["distribution"]]
    assert math.isclose(sum(probs), 1, rel_tol=1e-6)
    assert probs == sorted(probs, reverse=True)
    assert not {"<PAD>", "<BOS>", "<UNK>"} & {item["token"] for item in answer["distribution"]}
    entropy = -sum(p * math.log(p) for p in probs if p > 0)
    assert math.isclose(answer["entropy"], entropy, rel_tol=1e-6)
    greedy = ask("next", files["attention"], "--text", TEXT, "--temperature", "0")
    assert [item["prob"] for item in greedy["distribution"]] == [1.0]
    assert greedy["entropy"] == 0


def test_generate_is_seeded_and_greedy_at_zero(ask, files):
    run = ("generate", files["attention"], "--text", "the cat", "--samples", "3")
    first = ask(*run, "--seed", "5")["samples"]
    assert first == ask(*run, "--seed", "5")["samples"]
    assert first != ask(*run, "--seed", "6")["samples"]
    greedy = ask(*run, "--temperature", "0")["samples"]
    assert len(set(greedy)) == 1


def test_train_evaluate_and_resume(ask, refuse, corpus_file, tmp_path):
    out = str(tmp_path / "v1.2.npz")
    sizes = ["--steps", "16", "--width", "8", "--hidden", "8", "--context", "12", "--batch", "8"]
    answer = ask("train", "--family", "attention", "--corpus", corpus_file, "--out", out, *sizes)
    assert set(answer) >= {
        "out", "parameters", "steps", "selected_step", "loss_history", "metrics",
    }  # fmt: skip
    assert answer["out"] == out
    assert len(answer["loss_history"]) == 16
    assert os.listdir(tmp_path) == ["v1.2.npz"]
    measured = ask("evaluate", out, "--corpus", corpus_file)
    assert measured["loss"] == pytest.approx(answer["metrics"]["test_loss"], rel=1e-6)
    assert measured["perplexity"] == pytest.approx(math.exp(measured["loss"]))
    assert measured["targets"] == answer["metrics"]["test_targets"]
    message = refuse(
        "train", "--family", "mlp", "--corpus", corpus_file, "--out", out, "--resume", *sizes
    )
    assert "nothing to resume" in message


def test_ctrl_c_saves_the_state_and_resume_gives_the_weights_of_one_go(corpus_file, ask, tmp_path):
    sizes = shlex.split("--steps 400 --width 8 --hidden 8 --context 12 --batch 8 --json")
    run = [sys.executable, "-m", "wordlm_core", "train", "--family", "mlp"]
    run += ["--corpus", corpus_file, *sizes, "--out"]
    stopped, whole = tmp_path / "stopped.npz", tmp_path / "whole.npz"
    state = resume_path(stopped)
    with subprocess.Popen([*run, str(stopped)], cwd=ROOT, stderr=subprocess.PIPE) as training:
        while not state.exists():
            assert training.poll() is None
            time.sleep(0.01)
        training.send_signal(signal.SIGINT)
        _, err = training.communicate(timeout=60)
    assert training.returncode == 130
    assert b"--resume goes on from there" in err
    assert b"Traceback" not in err
    assert not stopped.exists()
    main([*run[3:], str(stopped), "--resume"])
    main([*run[3:], str(whole)])
    assert sorted(os.listdir(tmp_path)) == ["stopped.npz", "whole.npz"]
    assert checkpoint.load(stopped).sha256 == checkpoint.load(whole).sha256


def test_a_diverged_training_fails_and_leaves_a_file_that_opens(ask, capsys, corpus_file, tmp_path):
    out = str(tmp_path / "x.npz")
    sizes = "--steps 40 --width 8 --hidden 8 --context 12 --batch 8 --lr 1e5"
    line = f"train --family mlp --corpus {corpus_file} --out {out} {sizes}"
    assert main(shlex.split(line)) == 2
    message = capsys.readouterr().err.splitlines()[-1]  # the progress bar stands before it
    assert message.startswith("error: ")
    assert "the weights and the curve up to there are in x.npz" in message
    assert ask("inspect", out)["parameters"] > 0


def test_evaluate_needs_only_the_split_it_reads(ask, files, tmp_path):
    path = tmp_path / "few.txt"
    path.write_text("the cat saw the dog\nthe bird was happy\nshe ran away\na big red ball\n")
    assert ask("evaluate", files["mlp"], "--corpus", str(path), "--split", "train")["loss"] > 0


def test_a_row_in_numbers_is_the_attention_row(ask, files):
    whole = ask("attend", files["multihead"], "--text", TEXT)
    row = ask("row", files["multihead"], "--text", TEXT, "--query", "4", "--head", "2")
    assert [key["weight"] for key in row["keys"]] == whole["attention"][0][2][4]
    assert [key["masked"] for key in row["keys"]] == [False] * 5 + [True] * 4
    for key in row["keys"]:
        assert key["scaled"] == pytest.approx(key["dot"] / math.sqrt(2))


def test_a_shuffle_keeps_the_last_word(ask, files):
    answer = ask("shuffle", files["multihead"], "--text", TEXT, "--seed", "3")
    assert answer["shuffled"][-1] == "bird"
    assert sorted(answer["shuffled"]) == sorted(answer["tokens"])
    assert answer["kl"] > 0
    without = ask("shuffle", files["no_positions"], "--text", TEXT, "--seed", "3")
    assert without["kl"] < 1e-9


def test_history_ends_with_the_neighbours_of_now(ask, files):
    now = ask("neighbours", files["attention"], "--word", "cat", "--top", "3")["neighbours"]
    told = ask("history", files["attention"], "--word", "cat", "--top", "3")
    assert {item["token"] for item in now} <= {entry["token"] for entry in _entries(told)}


def _entries(told):
    return [entry for value in told.values() if isinstance(value, list) for entry in _flat(value)]


def _flat(value):
    for item in value:
        if isinstance(item, dict) and "token" in item:
            yield item
        elif isinstance(item, dict):
            for inner in item.values():
                yield from _flat(inner if isinstance(inner, list) else [])


def test_corpora_lists_each(ask):
    listed = {entry["name"]: entry for entry in ask("corpora")["corpora"]}
    assert set(listed) >= {"tinystories", "stories"}
    assert listed["stories"]["available"] is True
    for entry in listed.values():
        assert set(entry) >= {"name", "documents", "licence", "available", "how_to_get"}


TRAIN = "train --family mlp --corpus stories --out x.npz"
BAD = {
    "no file": "inspect /nowhere/x.npz",
    "a folder": "inspect /",
    "empty text": "attend {attention} --text ''",
    "blank text": "ablate {attention} --text ' \n '",
    "mlp": "attend {mlp} --text 'the cat'",
    "step": "attend {attention} --text the --step abc",
    "unknown word": "neighbours {attention} --word kinng",
    "two words": "neighbours {attention} --word 'the cat'",
    "special": "neighbours {attention} --word '<UNK>'",
    "top 0": "neighbours {attention} --word cat --top 0",
    "top -1": "ablate {attention} --text cat --top -1",
    "temperature -1": "next {attention} --text cat --temperature -1",
    "temperature nan": "next {attention} --text cat --temperature nan",
    "temperature inf": "generate {attention} --temperature inf",
    "top-k 0": "next {attention} --text cat --top-k 0",
    "top-p 0": "next {attention} --text cat --top-p 0",
    "top-p 2": "next {attention} --text cat --top-p 2",
    "top-p nan": "next {attention} --text cat --top-p nan",
    "samples 0": "generate {attention} --samples 0",
    "replacement": "ablate {attention} --text cat --replace kinng",
    "both ways": "ablate {attention} --text cat --replace the --delete",
    "position": "logits {attention} --text cat --position 9",
    "no words": "trajectory {attention} --words ' , '",
    "corpus": "evaluate {attention} --corpus nothing",
    "lr nan": f"{TRAIN} --lr nan",
    "steps 0": f"{TRAIN} --steps 0",
    "documents 0": f"{TRAIN} --documents 0",
    "family": "train --family rnn --corpus stories --out x.npz",
    "out": "train --family mlp --corpus stories --out x.txt",
    "seeds": "benchmark --corpus stories --out x --seeds a,b",
    "no command": "",
    "unknown command": "frobnicate",
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_status_two(refuse, files, case):
    refuse(*(argument.format(**files) for argument in shlex.split(BAD[case])))


def test_every_command_prints_a_table_too(capsys, files):
    for command in ("inspect", "attend", "ablate", "knockout", "logits", "next"):
        text = [] if command == "inspect" else ["--text", TEXT]
        assert main([command, files["multihead"], *text]) == 0
        assert len(capsys.readouterr().out.splitlines()) > 3


def test_as_a_program_it_is_quiet_and_quick_to_refuse(files, tmp_path):
    cut = tmp_path / "cut.npz"
    cut.write_bytes(Path(files["attention"]).read_bytes()[:500])
    done = subprocess.run(
        [sys.executable, "-m", "wordlm_core", "inspect", str(cut), "--json"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: cut.npz: it is damaged or not an .npz file\n"


@pytest.mark.parametrize("reader", ["true", "head -c 20"])
def test_a_reader_that_goes_away_is_no_error(files, reader):
    command = f"{sys.executable} -m wordlm_core attend {files['attention']} --text '{TEXT}' --json"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{command} | {reader}"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_sentence(files):
    done = subprocess.run(
        f"{sys.executable} -m wordlm_core inspect {files['attention']} > /dev/full",
        cwd=ROOT, shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "error: the answer could not be written: No space left on device\n"


def test_the_readme_lists_every_command():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = build_parser()._subparsers._group_actions[0].choices
    missing = [name for name in commands if f"`{name}" not in readme]
    assert not missing


# -- microgpt


@pytest.fixture(scope="module")
def names(tmp_path_factory) -> tuple[str, str]:
    """A list of names and a microgpt trained on it by the command."""
    folder = tmp_path_factory.mktemp("names")
    (folder / "names.txt").write_text("\n".join(tiny.ITEMS), encoding="utf-8")
    corpus, out = str(folder / "names.txt"), str(folder / "gpt.npz")
    line = f"train --family microgpt --corpus {corpus} --steps 60 --seed 7 --out {out} --width 8"
    assert main(shlex.split(f"{line} --heads 2 --json")) == 0
    return corpus, out


def test_training_a_microgpt_gives_every_loss_unrounded(ask, names, tmp_path):
    out = str(tmp_path / "again.npz")
    sizes = ("--steps", "60", "--seed", "7", "--width", "8", "--heads", "2")
    answer = ask("train", "--family", "microgpt", "--corpus", names[0], "--out", out, *sizes)
    settings = scalar_gpt.Settings(n_head=2, d_model=8)
    slow = scalar_gpt.train(tiny.ITEMS, settings, steps=60, seed=7, stop_after=4)
    assert answer["loss_history"][:4] == pytest.approx(slow.losses, abs=1e-12)
    assert len(answer["loss_history"]) == answer["selected_step"] == answer["steps"] == 60
    assert not Path(str(resume_path(Path(out)))).exists()
    assert checkpoint.load(Path(out)).sha256 == checkpoint.load(Path(names[1])).sha256


def test_every_lens_command_takes_a_microgpt(ask, names):
    gpt = names[1]
    answer = ask("inspect", gpt)
    assert (answer["kind"], answer["n_layer"], answer["n_head"]) == ("microgpt", 1, 2)
    attention = ask("attend", gpt, "--text", "anna")["attention"]
    assert np.shape(attention) == (1, 2, 5, 5)
    ablations = ask("ablate", gpt, "--text", "anna")["ablations"]
    assert [entry["replacement"] for entry in ablations] == [None] * 4
    assert ask("ablate", gpt, "--text", "anna", "--replace", "e")["ablations"][0]["kl"] > 0
    assert len(ask("neighbours", gpt, "--word", "a")["neighbours"]) == 7
    assert len(ask("trajectory", gpt, "--words", "a,e")["paths"][0]["points"]) == 61
    pair = ask("contextual", gpt, "--a", "anna", "--b", "eva")
    assert pair["lookup_equal"]
    assert sum(
        item["prob"] for item in ask("next", gpt, "--text", "ann", "--limit", "99")["distribution"]
    ) == pytest.approx(1)
    assert ask("logits", gpt, "--text", "anna")["heads"]
    loss = ask("evaluate", gpt, "--corpus", names[0])
    assert loss["targets"] == sum(len(item) + 1 for item in tiny.ITEMS)


def test_samples_say_whether_they_stand_in_the_list(ask, names):
    answer = ask("generate", names[1], "--samples", "30", "--seed", "0", "--temperature", "0.8")
    seen = [text in tiny.ITEMS for text in answer["samples"]]
    assert answer["seen_in_training"] == seen
    assert len(set(seen)) == 2


def test_the_commands_of_the_microgpt_pages(ask, names):
    gpt = names[1]
    assert ask("autograd", "--expression", "(a*b + c)**2")["grads"] == {"a": -24, "b": 16, "c": 8}
    table = ask("tokens", gpt, "--text", "eva")
    assert table["tokens"] == ["<BOS>", "e", "v", "a", "<BOS>"]
    assert table["loss"] == pytest.approx(np.mean([pair["loss"] for pair in table["pairs"]]))
    listed = ask("parameters", gpt)
    assert listed["parameters"] == ask("inspect", gpt)["parameters"]
    assert ask("position", gpt, "--text", "eva", "--position", "2")["target"] == "a"
    step = ask("step", gpt, "--text", "eva", "--step", "0")
    assert step["fell_by"] > 0
    questions = ask("quiz", gpt, "--seed", "3")["questions"]
    assert len(questions) >= 40
    assert questions == ask("quiz", gpt, "--seed", "3")["questions"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("attend GPT --text mary-jane", "'y' (character 4) is none of the 8 characters"),
        ("tokens GPT --text Anna", "it does know 'a'"),
        ("train --family microgpt --corpus NAMES --out x.npz --steps 0", "1 or more"),
        ("train --family microgpt --corpus NAMES --out x.npz --width 10", "do not divide"),
        ("train --family microgpt --corpus NAMES --out x.npz --batch 4", "one document a step"),
        ("train --family mlp --corpus NAMES --out x.npz --tokens char", "word models read words"),
        ("evaluate GPT --corpus NAMES --split test", "it has no splits"),
        ("survey GPT --corpus NAMES --out x.npz", "needs a model that reads words"),
        ("autograd --expression __import__('os')", "error: "),
        ("position GPT --text eva --position 9", "no position 9"),
        ("quiz GPT --topic cooking", "topics are"),
    ],
)
def test_bad_input_to_microgpt_is_one_sentence(refuse, names, line, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    filled = line.replace("GPT", names[1]).replace("NAMES", names[0])
    assert message in refuse(*filled.split())


def test_a_learning_rate_of_a_million_leaves_the_curve(capsys, names, tmp_path):
    out = tmp_path / "wild.npz"
    line = f"train --family microgpt --corpus {names[0]} --steps 50 --lr 1e6 --out {out}"
    assert main(shlex.split(line)) == 2
    assert "probably too high" in capsys.readouterr().err
    assert checkpoint.load(out).metadata["loss_history"]


def test_a_sample_is_looked_up_together_with_the_text_it_continues(ask, names):
    line = ("generate", names[1], "--text", "an", "--samples", "40", "--temperature", "0.7")
    answer = ask(*line)
    whole = ["an" + text for text in answer["samples"]]
    assert answer["seen_in_training"] == [text in tiny.ITEMS for text in whole]
    assert True in answer["seen_in_training"]
    assert ask(*line, "--max-tokens", "1")["seen_in_training"].count(None) > 0


def test_a_word_level_microgpt_knows_its_own_stories(ask, tmp_path):
    (tmp_path / "two.txt").write_text("The cat ran.\nA dog sat!\n", encoding="utf-8")
    corpus, out = str(tmp_path / "two.txt"), str(tmp_path / "gpt.npz")
    sizes = ("--tokens", "word", "--min-freq", "1", "--steps", "300", "--width", "8")
    ask("train", "--family", "microgpt", "--corpus", corpus, "--out", out, "--heads", "2", *sizes)
    answer = ask("generate", out, "--samples", "8", "--temperature", "0.3")
    told = [text in ("the cat ran .", "a dog sat !") for text in answer["samples"]]
    assert answer["seen_in_training"] == told
    assert any(told)


def test_a_stopped_training_is_not_trained_over(refuse, names, tmp_path):
    out = tmp_path / "x.npz"
    resume_path(out).write_bytes(b"precious")
    line = ("train", "--family", "microgpt", "--corpus", names[0], "--out", str(out))
    assert "--resume goes on with it" in refuse(*line)
    assert resume_path(out).read_bytes() == b"precious"


def test_a_name_that_is_too_long_is_one_sentence(refuse, names, tmp_path):
    for length in (248, 300):
        out = str(tmp_path / ("a" * length + ".npz"))
        message = refuse("train", "--family", "microgpt", "--corpus", names[0], "--out", out)
        assert "too long" in message
