"""The picture of a view: what is known stands in it, and nothing else does."""

import copy
import itertools
import pickle
import sys
import xml.etree.ElementTree as ET
from collections import Counter

import gymnasium
import numpy as np
import pytest

from pisti_env import pisti_v0
from pisti_env.agents import ask, load
from pisti_env.cards import CARD_NAMES
from pisti_env.knowledge import deal_unknown, make_view
from pisti_env.render import as_text, frame, gif, png, svg, tell_play
from pisti_env.render.lettering import width_of
from pisti_env.rules import Rules
from pisti_env.single import PistiEnv

TABLES = (
    {},
    {"target": 151},
    {"players": 3},
    {"players": 4},
    {"players": 4, "partners": False, "target": 101},
    {"players": 5},
    {"players": 6},
    {"rules": "bottom_shown"},
    {"rules": "istanbul", "players": 3},
)


def moments(agent="greedy", seed=0, every=5, **arguments):
    """An environment of this kind at every fifth play of an episode, and at its end."""
    env = pisti_v0.raw_env(**arguments)
    env.reset(seed=seed)
    player = load(agent, env.rules)
    for number in itertools.count():
        over = all(env.terminations.values())
        if number % every == 0 or over:
            yield env
        if over:
            return
        env.step(ask(env, player))


def cards_in(picture):
    """The cards that lie face up in a picture, as often as they do."""
    root = ET.fromstring(picture)
    named = (element.get("data-card") for element in root.iter())
    return Counter(name for name in named if name is not None)


def texts_in(picture):
    """Every line of text in a picture."""
    return [one.text or "" for one in ET.fromstring(picture).iter() if one.tag.endswith("}text")]


def known_cards(view):
    """The cards that a picture shows face up, as often as it does; and apart from them the cards
    that the last play took, of which the newest are shown."""
    cards = list(view.hand or ())
    if view.to_play is None:
        return Counter(cards), ()
    cards += view.shown_jacks
    if view.stock_size and view.bottom_card is not None:
        cards.append(view.bottom_card)
    if view.pile_size > len(view.pile):
        cards += view.known_starters
    taken = view.last_play.captured if view.last_play is not None else ()
    return Counter([*cards, *view.pile]), taken


@pytest.mark.parametrize("arguments", TABLES, ids=str)
def test_every_known_card_is_drawn_and_no_other(arguments):
    for env in moments(**arguments):
        for seat in (None, *range(env.rules.players)):
            view = env.view(seat)
            cards, taken = known_cards(view)
            drawn = Counter(map(CARD_NAMES.index, cards_in(svg(view)).elements()))
            newest = (drawn - cards).total()
            assert drawn == cards + Counter(taken[len(taken) - newest :])
            assert newest >= min(len(taken), 6)


@pytest.mark.parametrize("arguments", TABLES[:6], ids=str)
def test_what_a_seat_does_not_know_changes_nothing(arguments):
    for env in moments(**arguments):
        games = env._tables.games.copy()
        for seat in (None, 0):
            drawn = svg(make_view(games, env.rules, seat, None))
            deal_unknown(games, env.rules, seat, seed=5)
            assert svg(make_view(games, env.rules, seat, None)) == drawn


def test_other_seats_are_revealed_by_their_own_views():
    for env in moments(players=4):
        views = [env.view(seat) for seat in range(4)]
        hands = Counter(CARD_NAMES[card] for view in views for card in view.hand)
        assert hands <= cards_in(svg(env.view(None), reveal=views))
    two, other = (next(moments(seed=seed)) for seed in (1, 2))
    for draw, wrong in itertools.product(
        (svg, as_text), ([other.view(1)], [None], [two.view(0), other.view(1)])
    ):
        with pytest.raises(ValueError, match=r"reveal has .*; expected views of other seats"):
            draw(two.view(0), reveal=wrong)


def test_plates_tell_names_points_and_the_dealer():
    for env in moments(players=4, target=151):
        view = env.view(1)
        texts = texts_in(svg(view, names=["ann", "bob", "cem", "döndü"]))
        assert {"ann", "bob", "cem", "döndü", "D"} <= {text.strip() for text in texts}
        for points, match in zip(view.public_points, view.match_scores, strict=True):
            assert {f"{points} pts", f"match {match}"} <= set(texts)
        if view.to_play is not None:
            assert {f"stock {view.stock_size}", "match to 151"} <= set(texts)


def test_pistis_lie_crosswise():
    seen = set()
    for seed in range(40):
        for env in moments("random", seed=seed, every=48):
            view = env.view(None)
            picture = svg(view)
            for kind, pistis in (("rank", view.pistis), ("jack", view.jack_pistis)):
                crosswise = picture.count(f'data-pisti="{kind}"')
                assert crosswise == sum(min(3, one) for one in pistis)
                seen.add((kind, crosswise))
    assert {("rank", 0), ("rank", 1), ("rank", 2), ("jack", 1)} <= seen


def test_the_end_has_a_sheet_of_the_score():
    *_, env = moments(target=101)
    texts = texts_in(svg(env.view(0)))
    best = max(side["match_points"] for side in env.score())
    [winner] = [side for side in range(2) if env.score()[side]["match_points"] == best]
    assert f"seat {winner} wins the match" in texts
    for side in env.score():
        assert {str(side["points"]), str(side["match_points"]), str(side["cards"])} <= set(texts)
    *_, env = moments(players=3)
    assert any(text.endswith("the deal") for text in texts_in(svg(env.view(None))))


def test_names_are_text_whatever_they_are():
    hostile = "</text><script>alert(1)</script>"
    env = next(moments())
    for name in (hostile, '"&\x00\x1b[31m', "名" * 300, ""):
        picture = svg(env.view(0), names=[name, "b"])
        assert not [e for e in ET.fromstring(picture).iter() if "script" in e.tag]
        png(env.view(0), names=[name, "b"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 0}, "size is 0; expected an int from 120"),
        ({"size": 480.0}, "size is 480.0; expected an int"),
        ({"names": ["a"]}, "names is .* expected 2 texts"),
        ({"names": "ab"}, "names is 'ab'; expected 2 texts"),
        ({"reveal": 3}, "reveal is 3; expected views of other seats"),
        ({"names": [1, 2]}, "names is .* expected a text for each seat"),
    ],
    ids=str,
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        svg(next(moments()).view(0), **arguments)
    with pytest.raises(ValueError, match="view is None; expected a View"):
        svg(None)


def test_frames_have_the_size_that_is_asked_for():
    view = next(moments(players=6)).view(2)
    for size in (480, 1200, 121):
        pixels = frame(view, size)
        assert pixels.shape == (size * 3 // 4, size, 3) and pixels.dtype == np.uint8
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20
    assert view._repr_svg_() == svg(view)


@pytest.mark.parametrize("players", range(2, 7))
def test_nothing_is_drawn_over_the_edge(players):
    names = ["Wilhelmina the very long-named"] * players
    for env in moments("random", every=24, players=players):
        views = [env.view(seat) for seat in range(players)]
        for view in (None, *views):
            pixels = frame(views[1] if view is None else view, 480, views, names)
            edges = (pixels[:3], pixels[-3:], pixels[:, :3], pixels[:, -3:])
            assert len({tuple(one) for edge in edges for one in edge.reshape(-1, 3)}) == 1
            assert len(svg(views[0], 480, views, names)) < 25_000  # a page holds fifty


def test_a_text_that_is_too_long_is_cut():
    env = next(moments())
    for name in ("W" * 40, "i" * 90, "名" * 40, "a name that is rather long"):
        [shown] = [text for text in texts_in(svg(env.view(0), names=[name, ""])) if "…" in text]
        assert name.startswith(shown[:-1].rstrip()) and 3 < len(shown) < len(name)
        assert width_of(shown, 10.5) < 100


def test_a_name_is_seen_in_pixels():
    view = next(moments()).view(0)  # so the font is there, with Turkish letters
    for names in (["", "b"], ["ğ", "b"], ["g", "b"]):
        assert frame(view, names=names).shape == (360, 480, 3)
    plain, breve = frame(view, names=["g", "b"]), frame(view, names=["ğ", "b"])
    assert (plain != frame(view, names=["", "b"])).any() and (plain != breve).any()


def test_an_animation_has_its_frames():
    import io

    from PIL import Image

    frames = [frame(env.view(0)) for env in moments(every=12)]
    animation = Image.open(io.BytesIO(gif(frames, [0.5] * len(frames))))
    assert animation.n_frames == len(frames) and animation.size == (480, 360)
    animation.seek(1)
    shown = np.asarray(animation.convert("RGB")).astype(int)
    assert np.abs(shown - frames[1]).mean() < 6  # of 255; a palette has 128 colours


# Environments.


@pytest.mark.parametrize("reveal", [False, True])
def test_environments_give_the_picture_of_their_view(reveal):
    raw = pisti_v0.raw_env(render_mode="rgb_array", reveal=reveal)
    raw.reset(seed=3)
    others = [raw.view(seat) for seat in range(2)] if reveal else None
    assert (raw.render() == frame(raw.view(None), reveal=others)).all()
    one = gymnasium.make("Pisti-v0", render_mode="rgb_array", seat=1, reveal=reveal)
    one.reset(seed=3)
    others = [one.unwrapped.view(seat) for seat in range(2)] if reveal else None
    assert (one.render() == frame(one.unwrapped.view(1), reveal=others)).all()
    many = gymnasium.make_vec("Pisti-v0", 3, render_mode="rgb_array", seat=1, reveal=reveal)
    many.reset(seed=3)
    frames = many.render()
    assert isinstance(frames, tuple) and [one.shape for one in frames] == [(360, 480, 3)] * 3
    others = [many.unwrapped.view(2, seat) for seat in range(2)] if reveal else None
    assert (frames[2] == frame(many.unwrapped.view(2, 1), reveal=others)).all()
    text = pisti_v0.raw_env(render_mode="ansi", reveal=reveal)
    text.reset(seed=3)
    assert (text.render().count("▒") == 3) == reveal  # the starters; else both hands, too


def test_nothing_is_drawn_after_a_failure():
    env = pisti_v0.raw_env(render_mode="rgb_array")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.render()
    agent = load("greedy")
    one = PistiEnv(agent, seat=0, render_mode="rgb_array", reveal=True)
    one.reset(seed=0)
    one.render()
    agent.act = None  # so that the other seat fails, in the middle of a step
    with pytest.raises(TypeError):
        one.step(int(one.action_masks().argmax()))
    with pytest.raises(gymnasium.error.ResetNeeded):
        one.render()


def test_without_a_screen_the_table_is_printed(capsys, monkeypatch):
    for variable in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(variable, raising=False)
    env = pisti_v0.env(render_mode="human")
    env.reset(seed=0)
    assert env.render() is None
    assert "Pişti" in capsys.readouterr().out
    env.step(int(env.observe(env.agent_selection)["action_mask"].argmax()))
    assert "last play" in capsys.readouterr().out
    one = gymnasium.make("Pisti-v0", render_mode="human", seat=0).unwrapped
    one.reset(seed=0)
    assert capsys.readouterr().out == one._core.draw(0, False) + "\n"
    env.close()


def test_a_window_shows_pictures_and_is_no_part_of_copies(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setitem(pisti_v0.raw_env.metadata, "render_fps", 1000)
    env = pisti_v0.raw_env(render_mode="human")
    env.reset(seed=0)
    assert env._window._window is not None
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert other._window._window is None
        other.step(
            int(
                other.observe("player_0" if other.agent_selection == "player_0" else "player_1")[
                    "action_mask"
                ].argmax()
            )
        )
        other.close()
    env.close()
    assert env._window._window is None


def test_a_window_that_its_user_closes_stays_closed(monkeypatch, capsys):
    import pygame

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = pisti_v0.raw_env(render_mode="human")
    env._window.pictures_a_second = 1000
    env.reset(seed=0)
    shown = env._window._window.get_surface()
    assert (pygame.surfarray.array3d(shown).swapaxes(0, 1) == frame(env.view(None), 720)).all()
    env._window.pictures_a_second = 0.001  # it looks for events while a picture is shown
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    env.render()
    assert env._window._window is None
    for _ in range(3):
        env.step(env.view(env.view(None).to_play).hand[0])  # and the game goes on
    assert env._window._window is None and not capsys.readouterr().out
    env.close()


def test_a_screen_that_takes_no_window_is_none(monkeypatch, capsys):
    import pygame

    def refuse(*arguments):
        raise pygame.error("no")

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(pygame, "Window", refuse)
    env = pisti_v0.raw_env(render_mode="human")
    env.reset(seed=0)
    assert capsys.readouterr().out == env.draw() + "\n"


@pytest.mark.parametrize(
    ("module", "mode", "extra"),
    [
        ("resvg_py", "rgb_array", "render"),
        ("PIL.Image", "rgb_array", "render"),
        ("pygame", "human", "window"),
    ],
)
def test_what_is_missing_is_named(module, mode, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    env = pisti_v0.raw_env(render_mode=mode)  # others ask for pictures that they never look at
    if mode == "rgb_array":
        env.reset(seed=0)
    with pytest.raises(gymnasium.error.DependencyNotInstalled) as caught:
        env.render() if mode == "rgb_array" else env.reset(seed=0)
    assert f'pip install "pisti-env[{extra}]"' in str(caught.value)
    assert module in str(caught.value) and "\n" not in str(caught.value)


# The sentence on a play.


def test_a_play_is_told_in_a_sentence():
    deck = "5C 6C 7C 8C 8D 9C 2C 3C JC JD 4C 5D".split()
    rest = [name for name in CARD_NAMES if name not in deck]
    env = pisti_v0.raw_env()
    env.reset(options={"deck": deck + rest, "dealer": 1})
    told = [tell_play(env.view(None), ["a", "b"])]
    for name in "8D JC 9C JD".split():
        env.step(CARD_NAMES.index(name))
        told.append(tell_play(env.view(None), ["a", "b"]))
    assert told == [
        "",
        "a plays 8D and takes 5 cards",  # no pişti: the starters lie below
        "b plays JC",
        "a plays 9C",
        "b plays JD and takes 3 cards: card points +2",  # JC 9C JD: a jack is a point
    ]
    assert Rules().jack_pisti_points == 20
