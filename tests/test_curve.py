"""Runs are drawn from their figures."""

import json
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("torch")
pytest.importorskip("tyro")

from training import curve

COLUMNS = "update,plays,over_counting,over_counting_low,over_counting_high,entropy,plays_per_second"
SETTINGS = {"seed": 0, "epochs": 2, "hidden": [256, 256], "all_seeing_critic": True}


def make_run(folder, rows, **settings):
    folder.mkdir()
    (folder / "metrics.csv").write_text("\n".join([COLUMNS, *rows]) + "\n")
    (folder / "settings.json").write_text(json.dumps(SETTINGS | {"run": str(folder)} | settings))
    return folder


def rows_of(*margins):
    return [
        f"{number},{number}000000,{margin},{margin - 1},{margin + 1},0.5,40000"
        for number, margin in enumerate(margins, 1)
    ]


def test_the_figures_of_a_run_being_trained_are_read(tmp_path):
    rows = ["1,1000000,,,,,50000", "2,2000000,-1.5,-2,-1,0.25,40000", "3,3000000,0.5,0.25,0.7"]
    folder = make_run(tmp_path / "run", rows[:2])
    with open(folder / "metrics.csv", "a") as file:
        file.write(rows[2])  # torn
    run = curve.read_run(folder)
    assert [list(values) for values in run.margin] == [[2], [-1.5], [-2], [-1]]
    assert list(run.entropy.plays) == [2] and list(run.entropy.mean) == [0.25]
    assert list(run.speed.plays) == [1, 2] and list(run.speed.mean) == [50000, 40000]


def test_runs_that_differ_in_the_seed_are_a_mean_in_a_band_where_all_of_them_are(tmp_path):
    long = curve.read_run(make_run(tmp_path / "long", rows_of(0, 2, 4, 6), seed=1))
    rows = ["2,2000000,4,3,5,0.5,40000", "6,3000000,8,7,9,0.5,40000"]
    short = curve.read_run(make_run(tmp_path / "short", rows, seed=2, evaluate_every=3))
    ((name, runs),) = curve.grouped([long, short]).items()
    assert name == "" and runs == [long, short]
    both = curve.joined([run.margin for run in runs])
    assert [list(values) for values in both] == [[2, 3], [3, 6], [2, 4], [4, 8]]


def test_between_its_measurements_a_run_is_straight():
    a = curve.Curve(*np.array([[1.0, 3.0], [0, 4], [0, 4], [0, 4]]))
    b = curve.Curve(*np.array([[1.0, 2.0, 3.0], [2, 4, 6], [2, 4, 6], [2, 4, 6]]))
    assert list(curve.joined([a, b]).mean) == [1, 3, 5]  # a is 2 after 2 million plays


def test_other_settings_are_other_curves_named_by_what_differs(tmp_path):
    changes = [{}, {"seed": 1}, {"epochs": 3}, {"hidden": [64], "all_seeing_critic": False}]
    runs = [
        curve.read_run(make_run(tmp_path / str(number), rows_of(1, 2), **change))
        for number, change in enumerate(changes)
    ]
    groups = curve.grouped(runs)
    assert {name: len(members) for name, members in groups.items()} == {
        "epochs 2, hidden 256 256, all-seeing-critic": 2,
        "epochs 3, hidden 256 256, all-seeing-critic": 1,
        "epochs 2, hidden 64, no all-seeing-critic": 1,
    }
    curve.draw(runs, "four", tmp_path / "four.svg")
    text = (tmp_path / "four.svg").read_text()
    assert all(name in text for name in groups) and "(2 seeds)" in text
    assert all(colour in text for colour in curve.COLOURS[:3])
    curve.draw(runs, "four", tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == text


def test_one_measurement_is_a_point_with_its_interval(tmp_path):
    run = curve.read_run(make_run(tmp_path / "run", rows_of(0.5)))
    curve.draw([run], "short", tmp_path / "short.svg")
    # The point and a bar with two caps: all in the colour of the curve.
    assert (tmp_path / "short.svg").read_text().count(curve.COLOURS[0]) >= 4


def test_names_are_drawn_as_they_are(tmp_path):
    names = ["a $\\frac$ name", "<b>&"]
    runs = [
        curve.read_run(make_run(tmp_path / f"_run{n}", rows_of(1, 2), start_from=name))
        for n, name in enumerate(names)
    ]
    curve.draw(runs, "names", tmp_path / "names.svg")
    root = ElementTree.parse(tmp_path / "names.svg").getroot()
    texts = [
        "".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")
    ]
    assert {f"start-from {name}" for name in names} <= set(texts)
    curve.draw(runs[:1], "names", tmp_path / "one.svg")
    assert ">run0</text>" in (tmp_path / "one.svg").read_text()


ROW = "1,1000000,2,1,3,0.5,40000\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "has no metrics.csv"),
        (COLUMNS + "\n", "has no measurement"),
        (COLUMNS + "\n1,1,,,,,\n", "has no measurement"),
        ("update,plays,over_counting\n1,1,\n", "has no column 'over_counting_low'"),
        (COLUMNS + "\n1,2,3\n", "line 2 has 3 figures; expected 7"),
        (COLUMNS + "\n1,2,3,4,much,5,6\n", "line 2: over_counting_high is 'much'; expected a num"),
        (COLUMNS + "\n1,2,3,,4,5,6\n", "has a measurement without its interval"),
        (COLUMNS + "\n1,2,3,4,5,6,7\n", "has a measurement outside its interval"),
        (COLUMNS + "\n1,2,nan,3,4,5,6\n", "a figure in over_counting that is not finite"),
        (f"{COLUMNS}\n{ROW}2{ROW[1:]}", "has 1000000 plays at update 2; expected more than 10000"),
    ],
)
def test_a_run_without_figures_is_not_drawn(text, words, tmp_path):
    (tmp_path / "settings.json").write_text("{}")
    if text is not None:
        (tmp_path / "metrics.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        curve.read_run(tmp_path)


@pytest.mark.parametrize("settings", [None, "[]", "{", "[" * 10**5, "\xff"])
def test_settings_are_not_believed(settings, tmp_path):
    folder = make_run(tmp_path / "run", rows_of(1))
    if settings is None:
        (folder / "settings.json").unlink()
    else:
        (folder / "settings.json").write_text(settings, encoding="latin-1")
    with pytest.raises(ValueError, match=r"settings\.json"):
        curve.read_run(folder)


def test_the_command_takes_runs_and_a_picture(tmp_path):
    folders = [make_run(tmp_path / str(n), rows_of(1, 2), seed=n) for n in range(2)]
    command = [sys.executable, "-m", "training.curve", *folders, tmp_path / "two.png"]
    subprocess.run(command, check=True)
    assert (tmp_path / "two.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("runs", "picture", "words"),
    [
        (["run"], "run.gif", r"expected a name that ends in \.svg or \.png"),
        (["run", "run"], "run.svg", "is given twice"),
        (["run", "none"], "run.svg", r"none has no metrics\.csv"),
        ([], "run.svg", "expected runs and the picture to write"),
    ],
)
def test_a_mistake_is_one_sentence_and_no_picture(runs, picture, words, tmp_path):
    make_run(tmp_path / "run", rows_of(1, 2))
    with pytest.raises(SystemExit, match=words) as stopped:
        curve.main(tuple(tmp_path / run for run in runs), tmp_path / picture)
    assert "\n" not in str(stopped.value)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
