"""A deal of the policy is drawn while it trains."""

import dataclasses

import gymnasium
import numpy as np
import pytest

pytest.importorskip("tensorboard")
pytest.importorskip("torch")
pytest.importorskip("tyro")
pytest.importorskip("resvg_py")

from small_runs import TINY, run_for, same, tensors_of
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from pisti_env import Rules
from pisti_env.agents import load
from training import drawn

MEASURED = dataclasses.replace(TINY, evaluate_every=1, evaluation_decks=2)


def board_of(folder):
    board = EventAccumulator(str(folder / "tensorboard"), size_guidance={"images": 0, "tensors": 0})
    return board.Reload()


def test_the_deal_is_drawn_at_some_measurements_and_learning_is_what_it_was(tmp_path, monkeypatch):
    run_for(MEASURED, tmp_path / "drawn")
    board = board_of(tmp_path / "drawn")
    assert [event.step for event in board.Images("deal")] == [1, 2, 4]
    assert board.Images("deal")[0].width == drawn.IN_A_ROW * drawn.SIZE
    texts = board.Tensors("deal/text_summary")
    assert [event.step for event in texts] == [1, 2, 4]
    assert len(texts[0].tensor_proto.string_val[0].decode().splitlines()) == 48

    monkeypatch.setattr(drawn, "is_due", lambda settings, update: False)
    run_for(MEASURED, tmp_path / "plain")
    assert board_of(tmp_path / "plain").Tags()["images"] == []
    assert same(tensors_of(tmp_path / "drawn"), tensors_of(tmp_path / "plain"))


def test_a_run_that_is_resumed_goes_on_drawing(tmp_path):
    run_for(MEASURED, tmp_path / "run", updates=3)
    run_for(MEASURED, tmp_path / "run")
    run_for(MEASURED, tmp_path / "whole")
    assert [event.step for event in board_of(tmp_path / "run").Images("deal")] == [1, 2, 4]
    assert same(tensors_of(tmp_path / "run"), tensors_of(tmp_path / "whole"))


def test_without_the_extra_there_is_one_note_and_the_text(tmp_path, monkeypatch, capsys):
    def missing(*args, **kwargs):
        raise gymnasium.error.DependencyNotInstalled('pip install "pisti-env[render]"')

    monkeypatch.setattr(drawn, "frame", missing)
    status = run_for(MEASURED, tmp_path / "run")
    assert status["update"] == 6
    assert capsys.readouterr().err.count('pip install "pisti-env[render]"') == 1
    board = board_of(tmp_path / "run")
    assert board.Tags()["images"] == [] and len(board.Tensors("deal/text_summary")) == 3


def test_a_measurement_out_of_turn_is_drawn_too():
    settings = dataclasses.replace(TINY, evaluate_every=25)
    due = [update for update in (25, 50, 75, 100, 125, 163, 200) if drawn.is_due(settings, update)]
    assert due == [25, 50, 100, 163, 200]


@pytest.mark.parametrize("fields", [{}, {"players": 3}, {"players": 4, "target": 151}])
def test_the_deal_is_one_deal_of_the_policy_against_counting(fields):
    rules = Rules(**fields)
    deal = drawn.deal_of(load("greedy", rules), rules)
    assert len(deal) == 1 + rules.num_plays
    final = deal[-1][0]
    assert final.to_play is None and final.last_deal is not None
    again = drawn.deal_of(load("greedy", rules), rules)
    assert [views[0].plays for views in again] == [views[0].plays for views in deal]
    policy = [seat for seat, name in enumerate(drawn.names_of(rules)) if name == "policy"]
    assert policy == [seat for seat in range(rules.players) if rules.side(seat) == 0]
    assert len(drawn.told(deal).splitlines()) == rules.num_plays


def test_the_moments_drawn_are_the_dearest_plays_between_start_and_end():
    rules = Rules()
    deal = drawn.deal_of(load("greedy", rules), rules)
    moments = drawn.moments_of(deal)
    assert len(moments) == drawn.MOMENTS and moments == sorted(moments)
    assert moments[0] == 0 and moments[-1] == len(deal) - 1
    gained = np.diff([sum(views[0].public_points) for views in deal])[:-1]  # but for the end
    dearest = np.sort(gained)[::-1][: drawn.MOMENTS - 2]
    assert sorted(gained[moment - 1] for moment in moments[1:-1]) == sorted(dearest)
