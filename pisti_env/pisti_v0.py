"""Pişti, Turkey's fishing card game, as a turn-based PettingZoo environment.

| | |
|---|---|
| Agents | `player_0` … in playing order, 2 to 6; `player_i` sits in seat i |
| Action space | `Discrete(52)`, the card to play; with the kinds encodings `Discrete(15)`, its kind |
| Observation | `Dict(observation=Box(0, 1, (d,), float32), action_mask=Box(0, 1, (a,), int8))` |
| State space | `Box(0, 1, (s,), float32)`, the whole table, for critics |

```python
from pisti_env import pisti_v0

env = pisti_v0.env(rules="standard", render_mode="ansi")
env.reset(seed=42)
for agent in env.agent_iter():
    observation, reward, termination, truncation, info = env.last()
    if termination or truncation:
        action = None
    else:
        action = env.action_space(agent).sample(observation["action_mask"])
    env.step(action)
```

From PettingZoo 1.27 on, `pettingzoo.make("aec", "pisti/pisti-v0", players=4)` makes it too, once
`pisti_env` has been imported.

### The game

Each seat in turn plays one card on the pile. A card of the top card's rank captures the pile, and
so does a jack, whatever the top card is. Capturing a lone card by equal rank is a pişti. `Rules`
has the options, and the presets `standard`, `text_a`, `text_b`, `loose`, `istanbul`, `short` and
`bottom_shown`.

### Arguments

- `rules`: a `Rules`, a preset's name or a dict of fields; any field may also be given by itself
  and overrides it: `env(rules="istanbul", players=4)`. With a `target` the episode is a match of
  several deals, without one it is one deal.
- `observation`: the encoding.
  `"basic"`: hand, top card, pile size, how many jacks the seat has seen.
  `"full"` (default): all that a player keeps in mind, over the 52 card faces.
  `"kinds"`: the same over 15 kinds (the thirteen ranks, `2C`, `TD`), which are the actions too; a
  kind plays the lowest such card of the hand. Learns fastest.
  `"history"` and `"kinds_history"`: these and every play of the deal in order.
- `mask_in`: `"observation"` (default), or `"info"`: the observation is the Box alone. Either way
  `infos[agent]["action_mask"]` holds the mask. It is all zero for an agent that is not to act. What
  is written into a mask changes nothing: the game decides which actions are legal.
- `rewards`: in card points, a side's gain less the mean gain of the other sides.
  `"difference"` (default) pays what is public at once, and what is not (the face-down starters, the
  last pile, the majority) when the deal is scored; `"terminal"` pays all at the end of the episode;
  `"win"` pays there the same formula with 1 for the winning side, split if the win is shared.
- `render_mode`: `None`; `"ansi"`, `render()` returns a spectator's view as text; `"rgb_array"`, as a
  picture (360, 480, 3) uint8, with the extra `render`; `"human"`, it is shown in a window after every
  step, with the extra `window` (without a screen it is printed).
- `reveal`: True draws all hands face up, for those who may see them. Observations stay as they are.

### Reset

`reset(seed=…, options={"deck": […], "dealer": i, "scores": […]})`, each of them optional. A seed
begins a stream of deals; without one the stream goes on. `deck` holds every card in dealing order,
ints or text such as `"TD"`: four starters, of which the fourth is turned up, then the packets, hand
after hand beginning with the leader. If the fourth is a jack, see `Rules.starter_jack` for what is
turned up instead. `scores` are a match's starting scores, one per side. Seeds are ints from 0 to
2**64 - 1; before the first seed the stream is an unpredictable one. A wrong seed, deck, dealer,
score or option raises `ValueError` and changes nothing.

`options={"position": …}`, a line of `position(seat)` or what `read_position` makes of one, goes on
from there. What that seat does not know is drawn, from the stream and so that each deal that fits
is equally likely; or it is that of a `deck` given beside it. `deals` then begins with the deal
before, if the line tells of one.

### Beside the PettingZoo interface

All of it is in `env.unwrapped`, and none of it is an observation but `observe_as` and `view(seat)`.

- `observe_as(agent, encoding)`: the same moment in another encoding.
- `view(seat)`: what a seat knows, a frozen dataclass, see `pisti_env.knowledge.View`; `view(None)` is what
  everyone knows. `draw(seat)` is its drawing as text.
- `score()`: a dict per side, seat 0's first, of the current deal: `points` (face-down starters
  included), `cards`, `pistis`, `jack_pistis`, `match_points`. `deals` lists the finished deals' scores.
- `deck`, `dealer`: the current deal's, as `reset` takes them.
- `state()`: the whole table as numbers, `describe("state")`.
- `illegal_actions`: how many there were so far, in all episodes.
- `position(seat)`: the view as one line of text, which `pisti_env.position.read_position` reads.
- `record()`: the episode so far as a `pisti_env.record.Record`, which can be written to a file.

`copy.copy`, `copy.deepcopy` and `pickle` give an environment that goes on by itself and identically,
in mid-deal too. One thread at a time may use an environment; another one's call meanwhile is a
`RuntimeError`. After a step or reset that was broken off (by Ctrl-C) everything but `reset` raises
`gymnasium.error.ResetNeeded`.

### Illegal actions

`raw_env.step` raises `ValueError` and changes nothing. `env` ends the episode: `terminations` and
`truncations` are True for all agents (nothing else sets `truncations`), the offender's reward is
minus the most that a side can lose in a deal (for `"win"`, by losing), the others' is 0.

### Observation

What `describe("full", Rules())` prints; `decode(observation, "full", Rules())` turns the numbers back
into counts, by name. Pieces over seats or sides begin with the observer's own.
Cards are in the order A 2 … K of clubs, diamonds, hearts, spades; kinds in the order A 2 … K, `2C`,
`TD`; both as actions are. Numbers are counts divided by what 1.0 stands for, which with the kinds
encodings is `packs * copies` instead of `packs`, and 15 instead of 52. `max_deal_points` is the
most that a side can score in a deal: all card points, the majority, and the dearest pişti in every
second play.

| numbers | name | meaning | 1.0 is |
|---|---|---|---|
| 0-51 | `hand` | own hand | packs |
| 52-103 | `top` | top card, one-hot | 1 |
| 104-155 | `pile` | face-up part of the pile | packs |
| 156-207 | `played` | cards put face up so far: the turned-up starter and every play | packs |
| 208-259 | `known_starters` | the face-down starters, once the observer knows them | packs |
| 260-263 | `shown` | jacks turned up before the starter, unless in hand, played or known_starters; by suit (faces) or in all (kinds) | packs |
| 264-315 | `packet_pile` | face-up part of the pile when the packet was dealt | packs |
| 316 | `packet_top` | top card then: action + 1, 0 for none | 52 |
| 317-324 | `packet_plays` | plays of the packet, for each seat in its order: action + 1, 0 for none | 52 |
| 325-326 | `hand_sizes` | cards in each hand | hand_size |
| 327 | `pile_size` | cards on the table, face-down ones included | deck |
| 328 | `stock_size` | cards in the stock | deck |
| 329-330 | `captured` | cards captured by each side | deck |
| 331-332 | `public_points` | public points of each side | max_deal_points |
| 333-334 | `pistis` | pişti by equal rank, of each side | plays // 2 |
| 335-336 | `jack_pistis` | pişti of jack on jack, of each side | plays // 2 |
| 337-338 | `last_capturer` | who captured last, one-hot, all 0 for nobody | 1 |
| 339-340 | `dealer` | who dealt, one-hot | 1 |
| 341 | `packet` | number of the packet, from 1 | packets |
| 342-343 | `match_scores` | match points of each side, clipped at 1 | target + max_deal_points |
| 344 | `target` | target of the match, 0 for none | target + max_deal_points |

### Version history

* v0: first version (0.1.0)
"""

import copy
import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

from pisti_env import render
from pisti_env.checks import (
    check_dealer,
    check_deck,
    check_scores,
    check_viewer,
    is_int,
    refusal,
)
from pisti_env.game import MAX_PLAYERS
from pisti_env.knowledge import View, hand_of, make_view
from pisti_env.observation import Encoder, decode, describe, encoder, state_encoder
from pisti_env.plain import printable
from pisti_env.position import Position, check_position, write_position
from pisti_env.quote import quote
from pisti_env.rules import RulesLike, check_keywords, resolve_rules
from pisti_env.shuffle import check_seed
from pisti_env.tables import PlayedDeal, Tables, ToPlay, own_arrays, warm_up

if TYPE_CHECKING:
    from pisti_env.record import Record

__all__ = ["decode", "describe", "env", "raw_env"]

_ONE = np.zeros(1, np.int64)  # the rows of the only table
_SEATS = np.arange(MAX_PLAYERS)[:, np.newaxis]
_RESET_OPTIONS = ("deck", "dealer", "scores", "position")
_PETTINGZOO_OPTION = "options"  # what PettingZoo's api_test sends, of no meaning


def env(**kwargs: Any) -> AECEnv:
    """Return `raw_env` in PettingZoo's standard wrappers; arguments as in this module's manual."""
    bare = raw_env(**kwargs)
    wrapped = EndIllegal(bare, illegal_reward=-bare.most_to_lose)
    return InOrder(wrappers.AssertOutOfBoundsWrapper(wrapped))


class EndIllegal(wrappers.TerminateIllegalWrapper):
    """PettingZoo's wrapper, with the mask of the game itself: its own is the one that it last gave
    away, into which somebody may have written."""

    def step(self, action: Any) -> None:
        game: raw_env = self.env
        game._check_under_way()
        self._prev_obs = {"action_mask": game._to_play.mask}
        super().step(action)


class InOrder(wrappers.OrderEnforcingWrapper):
    """PettingZoo's wrapper, of which `copy.copy` copies the game too."""

    def __copy__(self) -> "InOrder":
        return copy.deepcopy(self)

    def __str__(self) -> str:
        return str(self.env)


class Episode(NamedTuple):
    """What an environment keeps of the episode so that it can be recorded."""

    seed: int | None
    """That of the reset, if it had one."""
    ended: list[tuple[bytes, bytes]]
    """Of each deal that is over, the table's record and the deck: copied in no time, and read if it
    is asked for."""
    next_decks: list[np.ndarray]
    """Decks (1, deck_size) of a match that are dealt before those of the seed."""


class raw_env(AECEnv):
    """The bare environment. See this module's manual for arguments, spaces and rewards."""

    metadata: ClassVar[dict[str, Any]] = {
        "render_modes": ["human", "ansi", "rgb_array"],
        "name": "pisti_v0",
        "is_parallelizable": False,
        "render_fps": 2,
    }

    def __init__(
        self,
        rules: RulesLike = "standard",
        observation: str = "full",
        mask_in: str = "observation",
        rewards: str = "difference",
        render_mode: str | None = None,
        reveal: bool = False,
        **fields: Any,
    ):
        super().__init__()
        check_keywords(raw_env.__init__, fields)
        self.rules = resolve_rules(rules, **fields)
        if mask_in not in ("observation", "info"):
            raise ValueError(f"mask_in is {quote(mask_in)}; expected 'observation' or 'info'")
        render.check_render_mode(render_mode, self.metadata)
        self._encoder = encoder(observation, self.rules)
        warm_up()
        self.mask_in = mask_in
        self.render_mode = render_mode
        self.reveal = bool(reveal)
        self._window = render.Window(self.metadata["render_fps"])
        self._tables = Tables(self.rules, 1, rewards=rewards)
        self._seats = {f"player_{seat}": seat for seat in range(self.rules.players)}
        self._sides = {name: self.rules.side(seat) for name, seat in self._seats.items()}
        self._to_play = ToPlay(self._encoder, 1)
        self._agent_to_act: str | None = None  # None once the episode is over
        self._under_way = False  # whether all is as the last reset or step leaves it
        self._no_mask = np.zeros(self._encoder.num_actions, np.int8)
        self.deals: list[list[dict[str, int]]] = []
        self.illegal_actions = 0  # so far, in all episodes
        self._episode = Episode(None, [], [])  # beyond 30 attributes Python finds each more slowly

        self.possible_agents = list(self._seats)
        self.agents: list[str] = []
        self.agent_selection = self.possible_agents[0]
        box = spaces.Box(0.0, 1.0, (self._encoder.size,), np.float32)
        mask_box = spaces.Box(0, 1, (self._encoder.num_actions,), np.int8)
        space = (
            spaces.Dict({"observation": box, "action_mask": mask_box})
            if mask_in == "observation"
            else box
        )
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        self.action_spaces = {
            agent: spaces.Discrete(self._encoder.num_actions) for agent in self.possible_agents
        }
        self.state_space = spaces.Box(0.0, 1.0, (state_encoder(self.rules).size,), np.float32)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the agent's observation space, always the same object."""
        try:
            return self.observation_spaces[agent]
        except (KeyError, TypeError):  # TypeError: of what no dict can have
            raise self._unknown(agent) from None

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the agent's action space, always the same object."""
        try:
            return self.action_spaces[agent]
        except (KeyError, TypeError):
            raise self._unknown(agent) from None

    def _unknown(self, agent: Any) -> ValueError:
        """Return what to raise for what is no agent's name."""
        return ValueError(
            f"agent is {quote(agent)}; expected one of {', '.join(self.possible_agents)}"
        )

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode. A seed begins its stream of deals; without one the stream goes on.

        Raises `ValueError`, and changes nothing, for a wrong seed, deck, dealer, score or position
        or an unknown option.
        """
        if options is not None and not isinstance(options, dict):
            raise ValueError(f"options is {quote(options)}; expected a dict or None")
        deck, dealer, scores, position = self._read_options(options or {})
        if seed is not None:
            check_seed(seed)
        with self._tables.one_thread():
            self._under_way = False
            if seed is not None:
                self._tables.reseed(seed)
            if position is None:
                self._tables.start(_ONE, deck, dealer, scores)
            else:
                position.start(self._tables, _ONE, None if deck is None else deck[0].tolist())
            last_deal = None if position is None else position.view.last_deal
            self._begin([] if last_deal is None else [[dict(side) for side in last_deal]], seed)
            self._tables.observe(self._to_play, _ONE)
            self._give_turn(over=False)
            self._under_way = True
        if self.render_mode == "human":
            self.render()

    def _begin(self, deals: list[list[dict[str, int]]], seed: int | None) -> None:
        """Set what an episode begins with: the finished deals' scores, and what follows from none
        having ended it."""
        self.deals = deals
        self._episode = Episode(seed, [], [])
        self.agents = self.possible_agents[:]
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.truncations = dict.fromkeys(self.agents, False)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self._skip_agent_selection = None

    def go_on_from(
        self,
        decks: Sequence[Sequence[int]],
        dealer: int,
        scores: Sequence[int],
        plays: Sequence[int],
        seed: int,
    ) -> None:
        """Begin an episode in which these cards have been played, one deal after the other: the
        first of `decks` dealt by `dealer` at match scores `scores`, then those of a match that
        follow. After them a match goes on with the decks that come after as many of the seed's.

        `Record.replay` calls it, which looks at all of this first: nothing is checked here.
        """
        tables = self._tables
        with tables.one_thread():
            self._under_way = False
            tables.reseed(seed)
            self._begin([], seed)
            first, *others = [np.array([deck], np.int8) for deck in decks]
            self._episode.next_decks.extend(others)
            tables.start(_ONE, first, np.array([dealer]), np.array(scores, np.int64))
            over = False
            for card in plays:
                tables.cards[0] = card
                tables.play()
                over = tables.scored.item() and self._end_deal()
            if not over:
                tables.observe(self._to_play, _ONE)
            self._give_turn(over)
            self._under_way = True
        if self.render_mode == "human":
            self.render()

    def _read_options(self, options: dict[str, Any]) -> tuple[Any, Any, Any, Position | None]:
        """Return what `reset` was given, checked; None for what was not."""
        for name in options:
            if name not in (*_RESET_OPTIONS, _PETTINGZOO_OPTION):
                raise ValueError(
                    f"reset option is {quote(name)}; expected one of {', '.join(_RESET_OPTIONS)}"
                )
        deck, dealer, scores, position = (options.get(name) for name in _RESET_OPTIONS)
        if position is not None:
            for name, value in (("dealer", dealer), ("scores", scores)):
                if value is not None:
                    raise ValueError(f"{name} is {quote(value)}; expected none with a position")
            position = check_position(self.rules, position)
        if deck is not None:
            deck = check_deck(self.rules, deck)[np.newaxis]
            if position is not None:
                position.check_deck_fits(deck[0].tolist())
        return (
            deck,
            None if dealer is None else np.array([check_dealer(self.rules, dealer)]),
            None if scores is None else check_scores(self.rules, scores),
            position,
        )

    def step(self, action: int | None) -> None:
        """Play a card. The play that ends a deal scores it; if the match goes on, the next deal is
        dealt in the same step.

        Raises `ValueError`, and changes nothing, for an action that is not in the hand.
        """
        tables, to_play = self._tables, self._to_play
        with tables.one_thread():
            if not self._under_way:
                self._ask_for_reset()
            if not self.agents:
                raise gymnasium.error.ResetNeeded("the episode is over; call reset() first")
            agent = self.agent_selection
            if self.terminations[agent] or self.truncations[agent]:
                self._was_dead_step(action)
                return
            to_play.actions[0] = self._check_action(agent, action)
            self._under_way = False  # until all of it is done: it may be broken off
            tables.play_on(to_play)
            over = tables.scored.item() and self._end_deal()
            self._cumulative_rewards[agent] = 0.0
            by_side = tables.rewards.tolist()[0]
            if any(by_side):
                self.rewards = {name: by_side[side] for name, side in self._sides.items()}
                self._accumulate_rewards()
            else:  # as after most plays, and quicker
                self.rewards = dict.fromkeys(self.agents, 0.0)
            self._give_turn(over)
            self._under_way = True
        if self.render_mode == "human":
            self.render()

    def _check_action(self, agent: str, action: Any) -> int:
        """Return the action as an int; raise `ValueError` if it is illegal."""
        mask = self._to_play.mask
        if (type(action) is int or is_int(action)) and 0 <= action < len(mask):
            number = int(action)
            if mask.item(number):
                return number
        self.illegal_actions += 1
        hand = hand_of(self._tables.games, self._seats[agent])
        raise refusal(f"action of {agent}", action, self._encoder.action_names, "its hand", hand)

    def _end_deal(self) -> bool:
        """Note the deal's score; deal the next one of the match, or end the episode. Returns
        whether that is over."""
        tables = self._tables
        self.deals.append(tables.score(0))
        self._episode.ended.append((tables.games.tobytes(), tables.decks.tobytes()))
        if tables.over.item():
            self.terminations = dict.fromkeys(self.agents, True)
            return True
        decks = self._episode.next_decks
        tables.next_deals(_ONE, decks.pop(0) if decks else None)
        tables.observe(self._to_play, _ONE)
        return False

    def _give_turn(self, over: bool) -> None:
        """Select who is next, and set the infos."""
        if over:
            self.agent_selection, self._agent_to_act = self.agents[0], None
        else:
            agent = self.possible_agents[self._to_play.seats.item()]
            self.agent_selection = self._agent_to_act = agent
        self._set_infos(self._agent_to_act)

    def _set_infos(self, to_act: str | None) -> None:
        """Set the infos: everyone's mask, a new array, empty for all but the agent to act."""
        legal, none = self._to_play.mask, self._no_mask
        self.infos = {
            agent: {"action_mask": (legal if agent is to_act else none).copy()}
            for agent in self.agents
        }

    def _deads_step_first(self) -> str:
        """No agent is to act once an illegal action has ended the episode: no mask has a 1.

        `TerminateIllegalWrapper` calls this, and only then.
        """
        self.illegal_actions += 1
        self._set_infos(None)
        return super()._deads_step_first()

    def observe(self, agent: str) -> Any:
        """Return what an agent observes, at any time: fresh arrays, in the form of its space."""
        if not self._under_way:
            self._ask_for_reset()
        to_play = self._to_play
        if self._is_to_act(agent):
            observation, mask = to_play.observation.copy(), to_play.mask
        else:
            observation, mask = self._encode(agent, self._encoder), self._no_mask
        if self.mask_in == "info":
            return observation
        return {"observation": observation, "action_mask": mask.copy()}

    def observe_as(self, agent: str, encoding: str) -> Any:
        """Return what `observe` would in another encoding, of the same moment and in its form."""
        other = encoder(encoding, self.rules)
        observation = self._encode(agent, other)
        if self.mask_in == "info":
            return observation
        mask = np.zeros((1, other.num_actions), np.int8)
        if self._is_to_act(agent):
            with self._tables.one_thread():
                other.mask(self._tables.games, _ONE, mask)
        return {"observation": observation, "action_mask": mask[0]}

    def _is_to_act(self, agent: str) -> bool:
        """Return whether it is the agent's turn, and nothing has ended the episode."""
        return agent == self._agent_to_act and not (
            self.terminations[agent] or self.truncations[agent]
        )

    def _encode(self, agent: str, encoder: Encoder) -> np.ndarray:
        seat = self._seats.get(agent) if isinstance(agent, str) else None
        if seat is None:
            raise self._unknown(agent)
        observation = np.empty((1, encoder.size), np.float32)
        with self._tables.one_thread():
            self._check_under_way()
            encoder.encode(self._tables.games, _ONE, _SEATS[seat], observation)
        return observation[0]

    def moment(self) -> tuple[np.ndarray, Encoder]:
        """Return a copy of the table's record (1,), and the encoder of the observations: what
        `pisti_env.agents.ask` asks agents with. Raises `ResetNeeded` if nobody is to act."""
        self._check_under_way()
        if not self._is_to_act(self.agent_selection):
            raise gymnasium.error.ResetNeeded("the episode is over; call reset() first")
        return self._tables.games.copy(), self._encoder

    def state(self) -> np.ndarray:
        """Return what the rest of the deal depends on, hidden cards included, (s,) float32 in
        [0, 1] as in `describe("state")`. For critics; never part of an observation."""
        state = np.empty((1, self.state_space.shape[0]), np.float32)
        with self._tables.one_thread():
            self._check_under_way()
            state_encoder(self.rules).encode(self._tables.games, _ONE, _SEATS[0], state)
        return state[0]

    def score(self) -> list[dict[str, int]]:
        """Return a dict per side, seat 0's first: points (face-down starters included), cards,
        pistis, jack_pistis, match_points. Not an observation: for tests, logs and displays."""
        self._check_under_way()
        return self._tables.score(0)

    def view(self, seat: int | None) -> View:
        """Return what a seat knows, or with None what everyone does."""
        seat = check_viewer(self.rules, seat)
        self._check_under_way()
        last_deal = self.deals[-1] if self.deals else None
        return make_view(self._tables.games, self.rules, seat, last_deal)

    def record(self, agents: Sequence[str] = (), date: datetime.date | None = None) -> "Record":
        """Return the episode so far as a record, nothing left out: every deal since the reset, the
        last one as far as it was played.

        `agents` are the names of who sits in each seat, if they are to be kept; `date` is the day,
        today's by UTC if none is given. The seed is kept if the reset had one and the decks are
        its. After a reset to a position the deal that this is in is the first one.
        """
        from pisti_env.record import record_of  # it is built on this module

        self._check_under_way()
        tables, episode = self._tables, self._episode
        ended = list(episode.ended)
        if not tables.scored.item():
            ended.append((tables.games.tobytes(), tables.decks.tobytes()))
        played = [PlayedDeal.of(self.rules, record, deck) for record, deck in ended]
        scores = [side["match_points"] for side in self._tables.score(0)]
        today = datetime.datetime.now(datetime.UTC).date()
        return record_of(self.rules, played, scores, episode.seed, tuple(agents), date or today)

    @property
    def deck(self) -> list[int]:
        """The current deal's cards in dealing order, as `reset` takes them."""
        self._check_under_way()
        return self._tables.decks[0].tolist()

    @property
    def dealer(self) -> int:
        """The seat that dealt the current deal."""
        self._check_under_way()
        return int(self._tables.games["dealer"][0])

    def _check_under_way(self) -> None:
        """Raise before the first reset, and where a step was broken off: there is no whole deal."""
        if not self._under_way:
            self._ask_for_reset()

    def _ask_for_reset(self) -> NoReturn:
        raise gymnasium.error.ResetNeeded(
            "no deal has been dealt yet, or the last step was broken off; call reset() first"
        )

    def draw(self, seat: int | None = None) -> str:
        """Return the table as text: a spectator's view, or a seat's with its hand; with `reveal`
        all hands. In plain letters where standard output lacks others."""
        return printable(render.as_text(self.view(seat), self._revealed()))

    def _revealed(self) -> list[View] | None:
        """Return the views whose hands are drawn too, None if there are none."""
        return [self.view(seat) for seat in range(self.rules.players)] if self.reveal else None

    def position(self, seat: int | None = None) -> str:
        """Return what a seat, or a spectator, knows as one line of text; see `position.py`."""
        return write_position(self.view(seat))

    def render(self) -> str | np.ndarray | None:
        """Return a spectator's view as text ("ansi") or as a picture ("rgb_array"), or show it
        ("human"); with `reveal` all hands are seen."""
        if self.render_mode is None:
            gymnasium.logger.warn(render.NO_RENDER_MODE)
            return None
        if self.render_mode == "ansi":
            return self.draw()
        if self.render_mode == "rgb_array":
            return render.frame(self.view(None), reveal=self._revealed())
        self._window.show(self.view(None), self._revealed())
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        self._window.close()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(own_arrays(state))

    def __copy__(self) -> "raw_env":
        return copy.deepcopy(self)

    @property
    def most_to_lose(self) -> float:
        """The most that a side can lose in a deal (or, paid for wins, in an episode)."""
        return self._tables.most_to_lose
