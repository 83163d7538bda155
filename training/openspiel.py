"""Play Pişti with OpenSpiel's algorithms. Needs the extra `openspiel`.

    python -m training.openspiel cfr --minutes 5       # solve a small pack, exactly
    python -m training.openspiel nfsp --minutes 30     # learn the real game by fictitious self-play
    python -m training.openspiel ismcts --minutes 5    # search, against `random` and `greedy`

`cfr`: CFR+ on a game that is small enough to write its whole tree down, two packets of two cards
with twelve cards if nothing else is said. NashConv is what all players together could still gain by
answering best to the others; it falls to 0. It is also measured of the package's own agents.

`nfsp`: neural fictitious self-play. Two agents learn from each other, each in all seats. The policy
that is written is the first one's average policy, and plays everywhere a policy does.

`ismcts`: information set Monte Carlo tree search, with random play to the end of the deal.

A run's folder gets `result.json`, and `policy.json` (cfr: the chances of each kind, for every
information state) or `policy.safetensors` (nfsp).
"""

import dataclasses
import importlib.metadata
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyspiel
import torch
import tyro
from open_spiel.python import rl_environment
from open_spiel.python.algorithms.ismcts import ISMCTSBot
from open_spiel.python.algorithms.mcts import RandomRolloutEvaluator
from open_spiel.python.pytorch.nfsp import MODE, NFSP

from pisti_env.agents import Agent, load
from pisti_env.agents.checkpoint import Checkpoint, make_checkpoint, write_checkpoint, write_file
from pisti_env.arena import evaluate
from pisti_env.cards import KIND_NAMES, KIND_OF_CARD
from pisti_env.openspiel import PistiGame, PistiState, ask
from pisti_env.rules import parse_rules, rules_text
from training.runs import Budget, say

MAX_NODES = 3_000_000  # of a tree that is written down, a few gigabytes


@dataclasses.dataclass(frozen=True)
class Cfr:
    """Solve a small game with CFR+, and measure how exploitable agents are in it."""

    rules: str = "ranks=3,hand_size=2"
    """A preset and fields; the pack must be small."""
    minutes: float = 5.0
    """Budget in minutes, after the tree has been written."""
    steps: int | None = None
    """Budget in iterations."""
    seed: int = 0
    """For agents that draw."""
    agents: tuple[str, ...] = ("random", "greedy", "counting")
    """Agents to measure in this game."""
    run: Path | None = None
    """Folder of the run, which must not exist yet; default: runs/openspiel- and the time."""


@dataclasses.dataclass(frozen=True)
class Nfsp:
    """Learn by neural fictitious self-play (PyTorch)."""

    rules: str = "standard"
    """A preset and fields."""
    minutes: float = 5.0
    """Budget in minutes."""
    steps: int | None = None
    """Budget in decisions, of all agents together."""
    seed: int = 0
    """Decides all that is drawn."""
    threads: int = 1
    """Threads of the networks."""
    hidden: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers."""
    anticipatory: float = 0.3
    """Share of the deals in which an agent plays its best response, not its average policy."""
    learning_rate: float = 5e-4
    """Adam's learning rate of the best response."""
    average_learning_rate: float = 3e-4
    """Adam's learning rate of the average policy."""
    learn_every: int = 16
    """An agent's decisions between two steps of its optimizers."""
    batch_size: int = 256
    """Decisions in such a step."""
    reservoir: int = 400_000
    """Decisions of best responses that the average policy is learned from."""
    replay: int = 100_000
    """Transitions that the best response is learned from."""
    reward_scale: float = 0.1
    """What a point is worth to the learner."""
    games: int = 500
    """Deals of the final measurement in OpenSpiel's own loop."""
    deals: int = 10_000
    """Decks of the final measurement in the package's."""
    run: Path | None = None
    """Folder of the run, which must not exist yet; default: runs/openspiel- and the time."""


@dataclasses.dataclass(frozen=True)
class Ismcts:
    """Measure OpenSpiel's IS-MCTS bot against the package's agents."""

    rules: str = "standard"
    """A preset and fields."""
    minutes: float = 5.0
    """Budget in minutes, the same for each opponent."""
    steps: int | None = None
    """Budget in deals, the same for each opponent."""
    seed: int = 0
    """Decides all that is drawn."""
    simulations: int = 50
    """Simulated deals before each play."""
    exploration: float = 20.0
    """How many points an untried play may be worth more than it seems (the constant of UCT)."""
    opponents: tuple[str, ...] = ("random", "greedy")
    """Agents or policies that play all other seats."""
    run: Path | None = None
    """Folder of the run, which must not exist yet; default: runs/openspiel- and the time."""


# CFR.


class Tree:
    """A game's whole tree as text (Gambit's EFG), which OpenSpiel plays without asking Python.

    Attributes: `game`, the same game from the text; `deals`, `nodes` and `states` (information
    states), how many there are.
    """

    def __init__(self, game: PistiGame, agents: dict[str, Agent]):
        self.nodes = 0
        self._rules = game.rules
        self._agents = agents
        self._choices: dict[str, dict[str, int]] = {}  # by key: what each agent plays there
        self._legal: dict[str, list[int]] = {}  # by key: kinds
        self._numbers: list[dict[str, int]] = [{} for _ in range(game.num_players())]
        decks: set[bytes] = set()
        players = " ".join(f'"{player}"' for player in range(game.num_players()))
        lines = [f'EFG 2 R "{game}" {{ {players} }}']
        self._write(game.new_initial_state(), lines, decks)
        self.deals, self.states = len(decks), len(self._legal)
        self.game = pyspiel.load_efg_game("\n".join(lines) + "\n")
        # That game numbers actions in its own way, and calls them as we did: by their kinds.
        root, actions = self.game.new_initial_state(), range(self.game.num_distinct_actions())
        self._kinds = [int(root.action_to_string(0, action)) for action in actions]

    def _write(self, state: PistiState, lines: list[str], decks: set[bytes]) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise ValueError(
                f"rules are {rules_text(self._rules)}, a game of more than {MAX_NODES:,} nodes; "
                "expected fewer ranks, copies or cards in a hand"
            )
        if self.nodes % 50_000 == 0:
            say(f"{self.nodes:,} nodes written")
        if state.is_terminal():
            games = state.deal.games
            deck = KIND_OF_CARD[games["deck"][0, : self._rules.deck_size]]
            decks.add(deck.tobytes() + games["num_shown_jacks"].tobytes())
            returns = " ".join(map(repr, state.returns()))
            lines.append(f't "" {len(lines)} "" {{ {returns} }}')
            return
        if state.is_chance_node():
            outcomes = " ".join(f'"{kind}" {chance!r}' for kind, chance in state.chance_outcomes())
            lines.append(f'c "" {len(lines)} "" {{ {outcomes} }} 0')
        else:
            player, text = state.current_player(), state.information_state_string()
            number = self._number(state, player, text)
            kinds = " ".join(f'"{kind}"' for kind in state.legal_actions())
            lines.append(f'p "" {player + 1} {number} "{text}" {{ {kinds} }} 0')
        for action in state.legal_actions():
            self._write(state.child(action), lines, decks)

    def _number(self, state: PistiState, player: int, text: str) -> int:
        """Return the number of a player's information state, from 1; note down a new one."""
        numbers = self._numbers[player]
        if text not in numbers:
            numbers[text] = len(numbers) + 1
            key = f"{player}-{player}-{numbers[text]}-{text}"  # as `game` has it
            self._legal[key] = state.legal_actions()
            self._choices[key] = {name: ask(agent, state) for name, agent in self._agents.items()}
        return numbers[text]

    def policy_of(self, name: str) -> pyspiel.TabularPolicy:
        """Return what an agent plays as a policy of `game`."""
        action_of = {kind: action for action, kind in enumerate(self._kinds)}
        table = {}
        for key, legal in self._legal.items():
            choice = self._choices[key][name]
            chances = [
                1 / len(legal) if name == "random" else float(kind == choice) for kind in legal
            ]
            table[key] = [
                (action_of[kind], chance) for kind, chance in zip(legal, chances, strict=True)
            ]
        return pyspiel.TabularPolicy(table)

    def chances(self, policy: pyspiel.TabularPolicy) -> dict[str, dict[str, float]]:
        """Return a policy of `game` as the chances of kinds, by Pişti's information states."""
        return {
            key.split("-", 3)[3]: {
                KIND_NAMES[self._kinds[action]]: chance for action, chance in actions
            }
            for key, actions in policy.policy_table().items()
        }


def solve(settings: Cfr, game: PistiGame, folder: Path) -> dict[str, Any]:
    """Write the tree, measure the agents, run CFR+; return the figures."""
    agents = {name: load(name, game.rules, settings.seed) for name in settings.agents}
    tree = Tree(game, agents)
    say(f"{tree.deals:,} deals, {tree.nodes:,} nodes, {tree.states:,} information states")
    figures: dict[str, Any] = {
        "deals": tree.deals,
        "nodes": tree.nodes,
        "information_states": tree.states,
        "agents": {},
    }
    for name in settings.agents:
        figures["agents"][name] = nash_conv = pyspiel.nash_conv(tree.game, tree.policy_of(name))
        say(f"{name}: NashConv {nash_conv:.4f} points")
    solver = pyspiel.CFRPlusSolver(tree.game)
    budget, iterations, next_measured = Budget(settings), 0, 1
    curve: list[tuple[int, float]] = []
    with budget.used_up_by_signals():
        while budget.used(iterations) < 1:
            solver.evaluate_and_update_policy()
            iterations += 1
            if iterations == next_measured:  # seldom, for it takes as long as some iterations
                next_measured = iterations + iterations // 2 + 1
                curve.append((iterations, pyspiel.nash_conv(tree.game, solver.average_policy())))
            budget.tell(iterations, f"NashConv {curve[-1][1]:.4f} points after {curve[-1][0]}")
    seconds, policy = budget.seconds, solver.tabular_average_policy()
    if not curve or curve[-1][0] != iterations:
        curve.append((iterations, pyspiel.nash_conv(tree.game, policy)))
    value = pyspiel.expected_returns(tree.game.new_initial_state(), policy, -1, True)
    write_json(folder / "policy.json", tree.chances(policy))
    say(f"{iterations:,} iterations: NashConv {curve[-1][1]:.4f}; player 0 wins {value[0]:+.4f}")
    return {**figures, "steps": iterations, "seconds": seconds, "nash_conv": curve, "value": value}


# NFSP.


def learn(settings: Nfsp, game: PistiGame, folder: Path) -> dict[str, Any]:
    """Train two or more NFSP agents on each other, write the first one's policy and measure it."""
    torch.set_num_threads(settings.threads)
    env, agents = make_learners(settings, game)
    rng = np.random.default_rng(settings.seed)
    budget, steps, episodes = Budget(settings), 0, 0
    with budget.used_up_by_signals():
        while budget.used(steps) < 1:
            seats = rng.permutation(game.num_players())
            play_episode(env, agents, seats, settings.reward_scale)
            steps, episodes = steps + game.rules.num_plays, episodes + 1
            losses = [np.nan if loss is None else float(loss) for loss in agents[0].loss]
            budget.tell(
                steps, "losses: average policy {:.3f}, best response {:.3f}".format(*losses)
            )
    seconds = budget.seconds
    checkpoint = average_policy(agents[0], settings, game)
    write_checkpoint(folder / "policy.safetensors", checkpoint)
    margin = over_random(env, agents[0], settings.games, rng)
    say(f"over random, in OpenSpiel's loop, drawn from the average policy: {interval(margin)}")
    results = {"openspiel_random": measured(margin)}
    for opponent in ("random", "greedy"):
        entrants = [folder / "policy.safetensors", opponent]
        evaluation = evaluate(entrants, game.rules, settings.deals, names=["policy", opponent])
        results[opponent] = evaluation.to_dict()
        say(evaluation)
    return {"steps": steps, "seconds": seconds, "episodes": episodes, "results": results}


def make_learners(settings: Nfsp, game: PistiGame) -> tuple[rl_environment.Environment, list[NFSP]]:
    """Return OpenSpiel's environment of the game, and an agent for each player."""
    env = rl_environment.Environment(
        game,
        observation_type=rl_environment.ObservationType.OBSERVATION,
        chance_event_sampler=rl_environment.ChanceEventSampler(settings.seed),
    )
    agents = [
        NFSP(
            player,
            env.observation_spec()["info_state"][0],
            env.action_spec()["num_actions"],
            list(settings.hidden),
            settings.reservoir,
            settings.anticipatory,
            batch_size=settings.batch_size,
            rl_learning_rate=settings.learning_rate,
            sl_learning_rate=settings.average_learning_rate,
            learn_every=settings.learn_every,
            optimizer_str="adam",
            loss_str="huber",
            replay_buffer_capacity=settings.replay,
            epsilon_start=0.1,
            epsilon_end=0.01,
            epsilon_decay_duration=500_000,
            seed=settings.seed + player,
        )
        for player in range(game.num_players())
    ]
    return env, agents


def play_episode(
    env: rl_environment.Environment, agents: Sequence[NFSP], seats: np.ndarray, scale: float
) -> None:
    """Play a deal and learn from it; agent i sits in `seats[i]`, and thinks that it is player i.

    OpenSpiel's environment gives all rewards at the end, and would lose those before a chance node.
    Here an agent gets what its side has won since its last decision.
    """
    agent_in = np.argsort(seats)
    known = np.zeros(len(agents))  # the margin that each agent has been rewarded for
    step = env.reset()
    while not step.last():
        mover = int(agent_in[step.current_player()])
        margins = np.array(env.get_state.deal.margins())[seats]
        rewards = np.zeros(len(agents))
        rewards[mover] = margins[mover] - known[mover]
        known[mover] = margins[mover]
        output = agents[mover].step(as_seated(step, seats, mover, rewards * scale))
        step = env.step([output.action])
    last = (np.array(env.get_state.returns())[seats] - known) * scale
    for agent in agents:
        agent.step(as_seated(step, seats, step.current_player(), last))


def as_seated(
    step: rl_environment.TimeStep, seats: np.ndarray, mover: int, rewards: np.ndarray
) -> rl_environment.TimeStep:
    """Return a time step in which agent i finds, as player i, what is of its seat."""
    observations = {
        **step.observations,
        "info_state": [step.observations["info_state"][seat] for seat in seats],
        "legal_actions": [step.observations["legal_actions"][seat] for seat in seats],
        "current_player": mover,
    }
    return step._replace(observations=observations, rewards=rewards.tolist())


def average_policy(agent: NFSP, settings: Nfsp, game: PistiGame) -> Checkpoint:
    """Return an agent's average policy as a policy of the package's."""
    tensors = [tensor.numpy(force=True) for tensor in agent._avg_network.state_dict().values()]
    layers = list(zip(tensors[::2], tensors[1::2], strict=True))
    named = {name: getattr(settings, name) for name in vars(settings) if name != "run"}
    training = {"algorithm": "nfsp", "settings": named, "open_spiel": version()}
    return make_checkpoint(layers, game.rules, "kinds", training, settings.seed)


def over_random(
    env: rl_environment.Environment, agent: NFSP, games: int, rng: np.random.Generator
) -> np.ndarray:
    """Return what the agent's average policy wins against random play, in all seats in turn."""
    players, margins = env.num_players, []
    for number in range(games):
        seat = number % players
        seats = (np.arange(players) + seat) % players  # agent 0 sits there
        step = env.reset()
        with agent.temp_mode_as(MODE.AVERAGE_POLICY):
            while not step.last():
                if step.current_player() == seat:
                    seated = as_seated(step, seats, 0, np.zeros(players))
                    action = agent.step(seated, is_evaluation=True).action
                else:
                    action = rng.choice(step.observations["legal_actions"][step.current_player()])
                step = env.step([action])
        margins.append(step.rewards[seat])
    return np.array(margins)


# IS-MCTS.


class AgentBot(pyspiel.Bot):
    """One of the package's agents as a bot of OpenSpiel's."""

    def __init__(self, agent: Agent):
        super().__init__()
        self._agent = agent

    def step(self, state: PistiState) -> int:
        """Return what the agent plays."""
        return ask(self._agent, state)


def search(settings: Ismcts, game: PistiGame, folder: Path) -> dict[str, Any]:
    """Play the search against each opponent, in all seats in turn; return the figures."""
    results, played, seconds = {}, 0, 0.0
    for opponent in settings.opponents:
        rng = np.random.RandomState(settings.seed)
        bot = make_search(settings, game, rng)
        margins: list[float] = []
        others = AgentBot(load(opponent, game.rules, settings.seed))
        budget = Budget(settings)
        sides = [game.rules.side(player) for player in range(game.num_players())]
        with budget.used_up_by_signals():
            while budget.used(len(margins)) < 1:
                side = len(margins) % game.rules.sides
                bots = [bot if of == side else others for of in sides]
                margins.append(play_game(game, bots, rng)[side])
                budget.tell(len(margins), f"over {opponent}: {interval(np.array(margins))}")
        if not margins:
            break
        played, seconds = played + len(margins), seconds + budget.seconds
        results[opponent] = measured(np.array(margins))
        say(f"IS-MCTS over {opponent}: {interval(np.array(margins))}")
        if budget.stopped:
            break
    return {"steps": played, "seconds": seconds, "results": results}


def play_game(
    game: PistiGame, bots: Sequence[pyspiel.Bot], rng: np.random.RandomState
) -> list[float]:
    """Return what a deal pays; `evaluate_bots` wants of bots what the search has not."""
    state = game.new_initial_state()
    while not state.is_terminal():
        if state.is_chance_node():
            kinds, chances = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(rng.choice(kinds, p=chances))
        else:
            state.apply_action(bots[state.current_player()].step(state))
    return state.returns()


def make_search(settings: Ismcts, game: PistiGame, rng: np.random.RandomState) -> ISMCTSBot:
    """Return OpenSpiel's bot in Python; the one in C++ does not play games that are in Python."""
    evaluator = RandomRolloutEvaluator(n_rollouts=1, random_state=rng)
    bot = ISMCTSBot(game, evaluator, settings.exploration, settings.simulations, random_state=rng)
    bot.set_resampler(
        lambda state, player: state.resample_from_infostate(player, rng.random_sample)
    )
    return bot


# What they have in common.


def measured(margins: np.ndarray) -> dict[str, Any]:
    """Return the mean of some deals, and how far its 95 % interval goes on either side."""
    error = None
    if len(margins) > 1:
        error = float(1.96 * margins.std(ddof=1) / len(margins) ** 0.5)
    return {"mean": float(margins.mean()), "error": error, "deals": len(margins)}


def interval(margins: np.ndarray) -> str:
    """Return the mean of some deals with its 95 % interval as text."""
    mean, error, deals = measured(margins).values()
    return f"{mean:+.2f}{'' if error is None else f' ± {error:.2f}'} points a deal, {deals} deals"


def version() -> str:
    """Return OpenSpiel's version."""
    return importlib.metadata.version("open_spiel")


def write_json(path: Path, data: Any) -> None:
    """Write data to a file."""
    write_file(path, (json.dumps(data, indent=1) + "\n").encode())


def run(settings: Cfr | Nfsp | Ismcts) -> dict[str, Any]:
    """Run what the command line says; return what `result.json` gets."""
    rules = rules_text(parse_rules(settings.rules)).replace(",", "+").replace("=", ":")
    game = pyspiel.load_game(f"python_pisti(rules={rules})")
    folder = settings.run or Path("runs") / time.strftime("openspiel-%Y%m%d-%H%M%S")
    folder.mkdir(parents=True)
    jobs: dict[type, Any] = {Cfr: solve, Nfsp: learn, Ismcts: search}
    result = jobs[type(settings)](settings, game, folder)
    result = {"library": "open_spiel", "version": version(), **result}
    result["steps_per_second"] = result["steps"] / max(result["seconds"], 1e-9)
    write_json(folder / "result.json", result)
    say(f"{folder}: {result['steps']:,} steps, {result['steps_per_second']:,.1f} a second")
    return result


def main() -> None:
    """Read the command line and run."""
    algorithms = (
        Annotated[Cfr, tyro.conf.subcommand("cfr")]
        | Annotated[Nfsp, tyro.conf.subcommand("nfsp")]
        | Annotated[Ismcts, tyro.conf.subcommand("ismcts")]
    )
    settings = tyro.cli(algorithms, description=__doc__)
    try:
        run(settings)
    except (OSError, ValueError) as error:
        sys.exit(f"training.openspiel: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    main()
