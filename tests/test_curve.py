"""A run is drawn from its figures."""

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("torch")
pytest.importorskip("tyro")

from training import curve


def test_a_run_is_drawn(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    names = ("plays", "over_counting", "over_counting_low", "over_counting_high")
    rows = [",".join(names), "1000,,,", "2000,-1.5,-2,-1", "3000,0.5,0.25,0.75"]
    (run / "metrics.csv").write_text("\n".join(rows) + "\n")
    measured = curve.read_measurements(run)
    assert measured == [(2000, -1.5, -2.0, -1.0), (3000, 0.5, 0.25, 0.75)]
    curve.draw(measured, "a-policy", tmp_path / "a-policy.svg")
    assert "a-policy" in (tmp_path / "a-policy.svg").read_text()


def test_one_measurement_is_a_point_with_its_interval(tmp_path):
    curve.draw([curve.Measurement(10**6, 0.5, 0.25, 0.75)], "short", tmp_path / "short.svg")
    text = (tmp_path / "short.svg").read_text()
    # The point, and a bar with two caps: all in the colour of the curve.
    assert text.count(curve.COLOUR) >= 4


COLUMNS = "plays,over_counting,over_counting_low,over_counting_high\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "has no metrics.csv"),
        (COLUMNS, "has no measurement"),
        (COLUMNS + "1,,,\n", "has no measurement"),
        ("plays,over_counting\n1,\n", "has no column 'over_counting_low'"),
        (COLUMNS + "1,2,3\n", "line 2 has 3 figures; expected 4"),
        (COLUMNS + "1,2,3,much\n", "line 2: over_counting_high is 'much'; expected a number"),
    ],
)
def test_a_run_without_figures_is_not_drawn(text, words, tmp_path):
    if text is not None:
        (tmp_path / "metrics.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        curve.read_measurements(tmp_path)
