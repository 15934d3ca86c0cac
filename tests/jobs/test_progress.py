"""A run's curve as a file: no line is lost, torn or told twice."""

import json
import math
import os
import threading

import numpy as np
import pytest

from app.jobs.progress import Reader, Writer
from wordlm_core.training import Progress


def told(step: int, loss: float, steps: int = 10, validation: float | None = None) -> Progress:
    return Progress(step, steps, loss, validation, step * 100, step / 10)


def write(path, *reports: Progress, note: str = "") -> None:
    writer = Writer(path)
    for each in reports:
        writer.report(each, note)
    writer.close()


def test_every_step_comes_back(tmp_path):
    path = tmp_path / "progress.jsonl"
    losses = [4 - step / 10 for step in range(1, 11)]
    reports = [
        told(i, loss, validation=3.0 if i == 5 else None) for i, loss in enumerate(losses, 1)
    ]
    write(path, *reports, note="mlp, seed 11")
    curve = Reader(path, 10).curve()
    assert (curve.step, curve.tokens, curve.note) == (10, 1000, "mlp, seed 11")
    assert np.allclose(curve.losses, losses)
    assert curve.validation == ((5, 3.0),)
    assert curve.remaining is None or curve.remaining == 0


def test_nothing_there_is_an_empty_curve(tmp_path):
    curve = Reader(tmp_path / "none", 10).curve()
    assert (curve.step, len(curve.losses), curve.at) == (0, 0, 0.0)


def test_a_reader_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "progress.jsonl"
    reader = Reader(path, 10)
    write(path, told(1, 5.0, validation=5.0))
    assert reader.curve().step == 1
    write(path, told(2, 4.0, validation=4.5))
    assert reader.curve().losses.tolist() == [5.0, 4.0]
    assert reader.curve().validation == ((1, 5.0), (2, 4.5))


@pytest.mark.parametrize("torn", [b'{"step": 2, "los', b"{", b"\xff\xfe"])
def test_a_torn_last_line_is_passed_over_and_then_removed(tmp_path, torn):
    path = tmp_path / "progress.jsonl"
    write(path, told(1, 5.0, validation=5.0))
    with path.open("ab") as file:
        file.write(torn)
    assert Reader(path, 10).curve().step == 1
    write(path, told(2, 4.0, validation=4.0))
    assert [json.loads(line)["step"] for line in path.read_bytes().splitlines()] == [1, 2]


def test_steps_that_are_told_again_after_a_kill_count_once(tmp_path):
    path = tmp_path / "progress.jsonl"
    write(path, *(told(step, 5.0, validation=9.0) for step in range(1, 7)))
    write(path, *(told(step, 1.0, validation=2.0) for step in range(4, 6)))  # from step 3 again
    curve = Reader(path, 10).curve()
    assert curve.losses.tolist() == [5.0, 5.0, 5.0, 1.0, 1.0]
    assert [step for step, _ in curve.validation] == [1, 2, 3, 4, 5]
    assert curve.step == 5


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b'{"step": 99, "losses": [1], "seconds": 1, "tokens": 1, "at": 1}',
        b'{"step": -1, "losses": [], "seconds": 1, "tokens": 1, "at": 1}',
        b'{"step": 1, "losses": "x", "seconds": 1, "tokens": 1, "at": 1}',
        b'{"step": 1, "losses": [[1]], "seconds": 1, "tokens": 1, "at": 1}',
        b'{"step": 1e999, "losses": [1], "seconds": 1, "tokens": 1, "at": 1}',
        b'{"step": 1, "losses": [1], "seconds": 1, "tokens": 1, "at": 1, "validation": "x"}',
        b"null",
    ],
)
def test_a_line_that_says_nothing_hides_no_other(tmp_path, line):
    path = tmp_path / "progress.jsonl"
    write(path, told(1, 5.0, validation=5.0))
    with path.open("ab") as file:
        file.write(line + b"\n")
    write(path, told(2, 4.0, validation=4.0))
    assert Reader(path, 10).curve().losses.tolist() == [5.0, 4.0]


def test_a_loss_that_is_no_number_is_a_gap(tmp_path):
    path = tmp_path / "progress.jsonl"
    write(path, told(1, math.inf), told(2, 4.0, validation=4.0))
    losses = Reader(path, 10).curve().losses
    assert np.isnan(losses[0])
    assert losses[1] == 4.0


def test_readers_beside_a_writer_see_whole_lines_only(tmp_path):
    path = tmp_path / "progress.jsonl"
    steps, seen, failures = 3000, [], []
    stop = threading.Event()

    def poll() -> None:
        reader, last = Reader(path, steps), 0
        while not stop.is_set():
            curve = reader.curve()
            if curve.step < last or not np.array_equal(curve.losses, np.arange(curve.step) / 8):
                failures.append(curve.step)
            last = curve.step
        seen.append(last)

    threads = [threading.Thread(target=poll) for _ in range(4)]
    for thread in threads:
        thread.start()
    write(path, *(told(s, (s - 1) / 8, steps, validation=1.0) for s in range(1, steps + 1)))
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert Reader(path, steps).curve().step == steps
    assert len(path.read_bytes().splitlines()) == steps


def test_a_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    path = tmp_path / "progress.jsonl"
    write(path, told(1, 5.0, validation=5.0))
    before = path.read_bytes()
    writer = Writer(path)
    real = os.write

    def part(file, data):
        if len(data) > 20:
            return real(file, data[:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", part)
    with pytest.raises(OSError, match="No space"):
        writer.report(told(2, 4.0, validation=4.0))
    writer.close()
    assert path.read_bytes() == before
