"""Pişti as a game of OpenSpiel: CFR, exploitability, IS-MCTS, NFSP and the like. Needs the extra
`openspiel`; importing this module registers the game.

```python
import pyspiel
import pisti_env.openspiel

game = pyspiel.load_game("python_pisti", {"rules": "players=3,hand_size=2"})
game = pyspiel.load_game("python_pisti(rules=loose+players:3+hand_size:2)")  # in a name: + and :
```

One deal, since OpenSpiel knows no matches: rules with a target are refused. Player i sits in seat
i; player 0 leads, so the last one deals. Returns are what the environment pays in all: the points
of the player's side, less the mean of the other sides'. Actions are the 15 kinds of cards, of
plays and of chance alike. Information states are the encoding `"kinds_history"`, observations
`"kinds"`; `observation.describe` says what is in them, and the observers have their pieces by name.

Chance is explicit, and draws a card only when somebody gets to see it: a hand when its packet is
dealt, the face-down starters when they are captured, what nobody has seen before the last play.
That is exact, since cards that nobody has seen are equally likely in any order. A hand is drawn
from its lowest kind to its highest, since the order in it means nothing, and where only one outcome
is left there is no chance node. So the tree is as small as the game allows.

Suits do not matter, and the cards of a kind are drawn in order of suit. It follows that a card
which everyone knows to be in a hand (`bottom_card_shown`, a `starter_jack` in the stock) is played
before another one of its kind.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyspiel

from pisti_env import game as engine
from pisti_env.agents import Agent
from pisti_env.agents.hosting import choose_card
from pisti_env.cards import KIND_NAMES, KIND_OF_CARD, NUM_KINDS
from pisti_env.game import NOBODY
from pisti_env.openspiel.deal import Deal, Table, encoding_of
from pisti_env.quote import quote
from pisti_env.rules import Rules, parse_rules, rules_text

_ONE = np.zeros(1, np.int64)  # the rows of the only table
# Pieces of encodings: the face-down starters, which some players know or all; cards that everyone
# saw lie in the stock, told as they concern an observer; the plays of the deal.
_STARTERS = ("known_starters", "starter_order")
_TO_AN_OBSERVER = ("shown", "bottom_card", "exposed_in_hands")
_HISTORY = ("history_seats", "history_cards")

GAME_TYPE = pyspiel.GameType(
    short_name="python_pisti",
    long_name="Pişti",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=engine.MAX_PLAYERS,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification={"rules": "standard"},
)


class PistiGame(pyspiel.Game):
    """One deal of Pişti under some rules, given as on the command line."""

    def __init__(self, params: dict[str, Any] | None = None):
        text = (params or {}).get("rules", "standard")
        rules = parse_rules(text.replace("+", ",").replace(":", "="))
        if rules.target is not None:
            raise ValueError(
                f"target is {rules.target}, but python_pisti plays one deal; allowed: None, which "
                "rules such as 'istanbul,target=None' set"
            )
        self.rules = rules
        self.table = Table(rules)
        most = float(rules.max_deal_points)
        info = pyspiel.GameInfo(
            num_distinct_actions=NUM_KINDS,
            max_chance_outcomes=NUM_KINDS,
            num_players=rules.players,
            min_utility=-most / (rules.sides - 1),
            max_utility=most,
            utility_sum=0.0,
            max_game_length=rules.num_plays,
        )
        # OpenSpiel's names of games have no commas or equals signs within a parameter.
        text = rules_text(rules).replace(",", "+").replace("=", ":")
        super().__init__(GAME_TYPE, info, {"rules": text})

    def max_chance_nodes_in_history(self) -> int:
        """Return a bound: each card that is ever seen is drawn once, and if all are, the last one
        left is drawn without a chance node."""
        rules = self.rules
        unseen = rules.num_leftovers if rules.leftovers == "burn" else 0
        return int(rules.deck_size - max(1, unseen))

    def new_initial_state(self) -> "PistiState":
        """Return a state in which nothing has been dealt."""
        return PistiState(self)

    def make_py_observer(
        self, iig_obs_type: Any = None, params: dict[str, Any] | None = None
    ) -> "PistiObserver | None":
        """Return an observer of information states (perfect recall) or of observations: of all that
        a player knows (the default), of what is public, or of what is not. None for what several
        players know together, and for nothing."""
        if params:
            raise ValueError(f"params is {quote(params)}; expected none")
        kind = iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False)
        private = kind.private_info == pyspiel.PrivateInfoType.SINGLE_PLAYER
        if kind.private_info == pyspiel.PrivateInfoType.ALL_PLAYERS:
            return None
        if not (kind.public_info or private):
            return None
        return PistiObserver(self.rules, kind.perfect_recall, kind.public_info, private)


class PistiState(pyspiel.State):
    """A deal in progress, see `Deal`."""

    def __init__(self, game: PistiGame):
        super().__init__(game)
        self.deal = Deal(game.table)

    def current_player(self) -> int:
        """Return whose turn it is."""
        if self.deal.outcomes:
            return int(pyspiel.PlayerId.CHANCE)
        return int(pyspiel.PlayerId.TERMINAL) if self.is_terminal() else self.deal.to_play

    def is_terminal(self) -> bool:
        """Return whether the deal is scored."""
        return not self.deal.outcomes and self.deal.to_play == NOBODY

    def returns(self) -> list[float]:
        """Return every player's points less the mean of the other sides', 0 before the end."""
        return self.deal.margins() if self.is_terminal() else [0.0] * self.num_players()

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Return the kinds that may be drawn, with their probabilities."""
        return list(self.deal.outcomes)

    def resample_from_infostate(self, player: int, probability_sampler: Any) -> "PistiState":
        """Return a state that `player` cannot tell from this one: the cards that it has not seen
        are dealt anew, all deals equally likely. The sampler gives numbers from 0 to 1."""
        if not self.deal.is_dealt:  # nobody has seen a card of its own
            return self.clone()
        rng = np.random.default_rng(int(probability_sampler() * 2**53))
        turned, deck = self.deal.redeal(player, rng)
        return deal_out(self.get_game(), turned, deck, self.deal.plays())

    def _legal_actions(self, player: int) -> list[int]:
        return self.deal.legal_kinds()

    def _apply_action(self, action: int) -> None:
        if self.deal.outcomes:
            self.deal.deal_kind(action)
        else:
            self.deal.play(action)

    def _action_to_string(self, player: int, action: int) -> str:
        verb = "draw" if player == pyspiel.PlayerId.CHANCE else "play"
        return f"{verb} {KIND_NAMES[action]}"

    def __str__(self) -> str:
        return self.deal.text(range(self.num_players()))


class PistiObserver:
    """What a player knows, or the public or the private part of it, as numbers (`tensor`, and by
    name in `dict`) and as text. The public part is the same for every player: as seat 0 sees it."""

    def __init__(self, rules: Rules, perfect_recall: bool, public: bool, private: bool):
        self._perfect_recall, self._public, self._private = perfect_recall, public, private
        # The public part has jacks turned up and the bottom card as in histories.
        self._encoder = encoding_of(rules, perfect_recall or not private)
        self._buffer = np.zeros((1, self._encoder.size), np.float32)
        rows = [row for row in self._encoder.layout if self._tells(row.name)]
        sizes = [row.slice.stop - row.slice.start for row in rows]
        self._numbers = np.concatenate([np.arange(row.slice.start, row.slice.stop) for row in rows])
        self.tensor = np.zeros(len(self._numbers), np.float32)
        pieces = np.split(self.tensor, np.cumsum(sizes)[:-1])
        self.dict = {row.name: piece for row, piece in zip(rows, pieces, strict=True)}

    def _tells(self, piece: str) -> bool:
        if self._public and self._private:
            return True
        if self._private:
            return piece in ("hand", *_STARTERS)
        if piece in _HISTORY:
            return self._perfect_recall
        return piece != "hand" and piece not in _TO_AN_OBSERVER

    def set_from(self, state: PistiState, player: int) -> None:
        """Write what `player` knows; nothing before the first packet is dealt."""
        deal = state.deal
        if not deal.is_dealt:
            self.tensor.fill(0)
            return
        seat = player if self._private else 0
        self._encoder.encode(deal.games, _ONE, np.array([seat]), self._buffer)
        np.take(self._buffer[0], self._numbers, out=self.tensor)
        if self._public != self._private and self._public != deal.starters_are_public:
            for name in self.dict.keys() & set(_STARTERS):
                self.dict[name].fill(0)

    def string_from(self, state: PistiState, player: int) -> str:
        """Return what `player` knows as text; equal texts are equal information states."""
        seats = [player] if self._private else []
        if self._perfect_recall:
            return state.deal.text(seats, self._public)
        self.set_from(state, player)
        pieces = [f"{name}:{values.tolist()}" for name, values in self.dict.items() if values.any()]
        return " ".join([*(f"p{seat}" for seat in seats), *pieces])


def ask(agent: Agent, state: PistiState) -> int:
    """Return the kind that one of the package's agents plays at a player's node. Raises
    `ValueError` if it answers with what it may not play; the state stays as it is.

    An agent that tells suits apart sees some of which nobody should make anything: see above.
    """
    return int(KIND_OF_CARD[choose_card(agent, state.get_game().rules, state.deal.games)])


def deal_out(
    game: PistiGame, turned: Sequence[int], deck: np.ndarray, plays: Iterable[int]
) -> PistiState:
    """Return the state after a deck has been dealt, as `Deal.redeal` returns it, and played."""
    state, plays = game.new_initial_state(), iter(plays)
    while not state.is_terminal():
        if state.deal.outcomes:
            state.apply_action(state.deal.next_of(turned, deck))
        elif (kind := next(plays, None)) is not None:
            state.apply_action(kind)
        else:
            break
    return state


pyspiel.register_game(GAME_TYPE, PistiGame)
