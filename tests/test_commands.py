"""`pisti watch`, `replay` and `check`: deals on the screen, as a page, in pictures."""

import builtins
import dataclasses
import html.parser
import io
import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

from pisti_env import Rules, cli, pisti_v0
from pisti_env.agents import ask, load
from pisti_env.cards import CARD_NAMES
from pisti_env.record import EVERYONE, Comment, read_records, write_records
from pisti_env.render import as_text, svg, tell_play
from pisti_env.replay import page

SMALL = {"ranks": 4, "hand_size": 3}  # four starters, twelve plays
BAD_NAME = "</script><img src=x onerror=alert(1)>{{data}}"


@pytest.fixture
def pisti(capsys, monkeypatch):
    """Run a command in this process, with these lines typed in; what it printed, and its status."""

    def run(*arguments, typed=None):
        monkeypatch.setattr("sys.stdin", io.StringIO("" if typed is None else typed))
        for module in ("replay", "watch"):
            path = f"pisti_env.commands.{module}.on_terminal"
            monkeypatch.setattr(path, lambda: typed is not None)
        status = 0
        try:
            cli.main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = stop.code or 0
        printed = capsys.readouterr()
        return SimpleNamespace(status=status, out=printed.out, err=printed.err)

    return run


def refused(ran, *words):
    assert ran.status == 2 and ran.out == "", ran
    [line] = ran.err.splitlines()
    assert line.startswith("pisti "), line
    assert all(word in line for word in words), line


def played(rules, names, plays=None, seed=7):
    """An environment in which agents play, all of an episode or some plays of it."""
    env = pisti_v0.raw_env(rules=rules)
    env.reset(seed=seed)
    agents = {agent: load("random", rules, 1) for agent in env.possible_agents}
    while plays != 0 and not env.terminations[env.agent_selection]:
        env.step(ask(env, agents[env.agent_selection]))
        plays = None if plays is None else plays - 1
    return env.record(names)


@pytest.fixture(scope="module")
def deal():
    record = played(Rules(**SMALL), ("ayşe", "bora"))
    [only] = record.deals
    comments = (Comment(0, "before"), Comment(3, "why?\nnobody knows"))
    return dataclasses.replace(
        record,
        deals=(dataclasses.replace(only, comments=comments),),
        comments=("of all of it",),
    )


@pytest.fixture(scope="module")
def match():
    return played(Rules(**SMALL, target=60), ("ayşe", "bora"))


@pytest.fixture
def file(tmp_path, deal, match):
    path = tmp_path / "deals.toml"
    write_records(path, [deal, match])
    return path


# pisti watch


def test_watch_shows_what_it_keeps(pisti, tmp_path):
    path = tmp_path / "deal.toml"
    command = ["watch", "greedy", "random", "--rules", "ranks=4,hand_size=3", "--seed", 3]
    ran = pisti(*command, "--record", path)
    assert ran.status == 0 and ran.err == "" and ran.out.endswith(f"written to {path}\n")
    [record] = read_records(path)
    record.check()
    assert record.agents == ("greedy", "random") and record.seed == 3
    for play in range(13):
        views = [record.view(0, play, seat) for seat in (None, 0, 1)]
        shown = as_text(views[0], views[1:], record.agents)
        assert f"deal 0, play {play} of 12\n{shown}\n" in ran.out
    a, b = record.deals[0].scores
    assert f"\nscore: greedy {a}, random {b}\n" in ran.out
    assert pisti(*command).out == ran.out[: ran.out.index("\nwritten")]  # the same deal again
    assert pisti(*command, "--seed", 4).out != pisti(*command).out


def test_watch_shows_a_seat_what_it_knows(pisti, tmp_path):
    path = tmp_path / "deal.toml"
    command = ["watch", "greedy", "random", "--rules", "ranks=4,hand_size=3", "--seat", 1]
    ran = pisti(*command, "--record", path)
    [record] = read_records(path)
    assert record.viewer is None  # what is kept is whole
    for play in range(13):
        assert as_text(record.view(0, play, 1), None, record.agents) in ran.out
    [head, *_] = ran.out.splitlines()
    assert head == "greedy against random, as seat 1 saw it"


def test_watch_a_match_of_partners(pisti):
    ran = pisti("watch", "greedy", "random", "--match", "--rules", "players=4,ranks=6,hand_size=2")
    assert "deal 1, play 0 of " in ran.out and "greedy 2 (side 0)" in ran.out
    assert re.search(
        r"score: greedy \d+, random \d+\nmatch to 151: greedy \d+, random \d+", ran.out
    )
    by_seat = pisti("watch", "greedy", "counting", "greedy", "counting", "--rules", "players=4")
    by_side = pisti("watch", "greedy", "counting", "--rules", "players=4")
    assert by_seat.status == 0 and by_seat.out == by_side.out


def test_watch_pauses_on_a_terminal_alone(pisti, monkeypatch):
    pauses = []
    monkeypatch.setattr("time.sleep", pauses.append)
    command = ["watch", "greedy", "random", "--rules", "ranks=4,hand_size=3"]
    pisti(*command)
    assert set(pauses) == {0.0}
    pauses.clear()
    pisti(*command, typed="")
    assert pauses == [1.0] * 13
    pauses.clear()
    pisti(*command, "--pause", 0.25)
    assert set(pauses) == {0.25}


def test_watch_plays_the_policy_that_comes_with_the_package(pisti):
    first = pisti("watch").out
    assert first.startswith("pisti-2p against greedy\n") and "deal 0, play 48 of 48" in first
    ran = pisti("watch", "pisti-2p", "pisti-2p", "--match", "--rules", "target=20")
    assert ran.status == 0 and len(ran.err.splitlines()) == 1
    assert ran.err.startswith("warning: ") and "other rules (target None -> 20)" in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["greedy"], ["number of agents is 1", "2"]),
        (["greedy"] * 3 + ["--rules", "players=4"], ["is 3", "2, one for each side, or 4"]),
        (["greedy", "nobody"], ["'nobody'"]),
        (["--seat", "2"], ["seat is 2", "from 0 to 1"]),
        (["--seat", "-1"], ["seat is -1"]),
        (["--seat", "x" * 10_000], ["--seat", "everyone"]),
        (["--pause", "-1"], ["pause is -1"]),
        (["--pause", "nan"], ["pause is nan"]),
        (["--seed", "-1"], ["seed is -1"]),
        (["--rules", "no"], ["'no'"]),
        (["--record", "no/such/file"], ["no/such/file", "cannot be written"]),
    ],
)
def test_mistakes_of_who_watches_are_one_line(pisti, arguments, words):
    refused(pisti("watch", *arguments), *words)


# pisti check


def test_check_counts_what_is_right(pisti, file, deal, match):
    deals = 1 + len(match.deals)
    ran = pisti("check", file)
    assert ran.status == 0 and ran.err == ""
    assert ran.out == f"{file}: 2 records, {deals} deals, {12 * deals} plays, all by the rules\n"
    write_records(file, [deal.seen_by(0)])
    ran = pisti("check", file)
    assert ran.out.endswith("all by the rules; 1 record without what the viewer did not see\n")
    assert "1 record, 1 deal, 12 plays" in ran.out


def test_check_tells_the_first_wrong_line(pisti, file, match):
    text = file.read_text()
    [scores] = [f"scores = [{a}, {b}]" for a, b in [match.deals[1].scores]]
    lines = text.splitlines()
    wrong = max(number for number, line in enumerate(lines) if line == scores)
    lines[wrong] = "scores = [100, 0]"
    file.write_text("\n".join(lines))
    refused(pisti("check", file), str(file), f"line {wrong + 1}", "scores", "[100, 0]")
    file.write_text("format = 1")
    refused(pisti("check", file), str(file), "line 1")
    refused(pisti("check", file.parent / "nothing"), "nothing")
    refused(pisti("check", file.parent), str(file.parent))
    write_records(file, [])
    refused(pisti("check", file), "has no records")


# pisti replay in the terminal


def test_replay_prints_every_play_where_nobody_types(pisti, file, deal, match):
    ran = pisti("replay", file)
    assert ran.status == 0 and ran.err == ""
    assert ran.out.startswith("ayşe against bora\ncomment: of all of it\n\ndeal 0, play 0 of 12\n")
    for play in range(13):
        views = [deal.view(0, play, seat) for seat in (None, 0, 1)]
        assert as_text(views[0], views[1:], deal.agents) in ran.out
    assert ran.out.count("\ndeal 0, play") == 13 and "  comment: why?\n    nobody" in ran.out
    assert re.findall(r"deal (\d), play (\d+) of", pisti("replay", file, "--play", 11).out) == [
        ("0", "11"),
        ("0", "12"),
    ]
    shown = pisti("replay", file, "--record", 1, "--deal", 1).out
    assert shown.count("\ndeal ") == 13 * (len(match.deals) - 1) and "deal 0, play" not in shown


def test_replay_goes_where_it_is_told(pisti, file):
    ran = pisti("replay", file, "--record", 1, typed="\nn\nb\n7\nd1\nb\nn\nd 0\nb\n99\nwhat\nq\n")
    assert ran.status == 0
    places = [tuple(map(int, found)) for found in re.findall(r"deal (\d), play (\d+) of", ran.out)]
    assert places == [
        *[(0, 0), (0, 1), (0, 2), (0, 1), (0, 7), (1, 0), (0, 12), (1, 0), (0, 0)],
    ]
    assert "this is the beginning" in ran.out and "'what' is unknown" in ran.out
    assert "play is 99; expected a number from 0 to 12" in ran.out
    ended = pisti("replay", file, "--play", 12, typed="n\n")  # and then the input ends
    assert ended.status == 0 and "this is the end" in ended.out


def test_replay_of_what_a_viewer_saw(pisti, file, deal):
    whole, path = pisti("replay", file, "--seat", 0).out, file.parent / "seen"
    for viewer in (0, EVERYONE):
        seen = deal.seen_by(viewer)
        write_records(path, [seen])
        shown = pisti("replay", path).out
        name = "seat 0" if viewer == 0 else "everyone"
        assert shown.startswith(f"ayşe against bora, as {name} saw it\n")
        seat = None if viewer == EVERYONE else 0
        assert as_text(deal.view(0, 5, seat), None, deal.agents) in shown
        assert pisti("replay", file, "--seat", viewer).out == shown
    assert "why?" not in whole  # a comment may tell what was hidden
    refused(pisti("replay", path, "--seat", 1), "viewer is 1", "everyone")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--record", "2"], ["record is 2", "from 0 to 1"]),
        (["--record", "-1"], ["record is -1"]),
        (["--deal", "1"], ["deal is 1", "from 0 to 0"]),
        (["--deal", "-1"], ["deal is -1"]),
        (["--play", "13"], ["play is 13", "from 0 to 12"]),
        (["--play", "-1"], ["play is -1"]),
        (["--play", "9" * 1000], ["play is 999"]),
        (["--seat", "2"], ["viewer is 2"]),
        (["--svg", "no/such/file"], ["no/such/file", "cannot be written"]),
        (["--html", "x", "--gif", "x"], ["x is given twice"]),
        (["--svg", "a.svg", "--size", "1"], ["size is 1", "120"]),
        (["--svg", "a.svg", "--size", "0"], ["size is 0", "120"]),
        (["--html", "a.html", "--size", "5000"], ["size is 5000"]),
        (["--gif", "a.gif", "--size", "1601"], ["size is 1601", "1600"]),
    ],
)
def test_mistakes_of_who_replays_are_one_line(pisti, file, arguments, words, monkeypatch):
    monkeypatch.chdir(file.parent)
    refused(pisti("replay", file, *arguments), *words)
    assert list(file.parent.iterdir()) == [file]


def test_a_record_that_breaks_the_rules_is_not_shown(pisti, file):
    text = file.read_text()
    first = text.index("dealer = ")
    file.write_text(text[:first] + f"dealer = {1 - int(text[first + 9])}" + text[first + 10 :])
    refused(pisti("replay", file), str(file), "line 24: records[0].deals[0].scores")


def test_interrupting_a_replay_is_quiet(pisti, file, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(builtins, "input", interrupt)
    ran = pisti("replay", file, typed="")
    assert (ran.status, ran.err) == (130, "pisti replay: interrupted\n")


def test_a_screen_that_is_closed_ends_a_replay(pisti, file, monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("sys.stdout", Closed())
    ran = pisti("replay", file)
    assert (ran.status, ran.err) == (141, "")


# Pictures


def test_a_picture_of_a_play(pisti, file, deal):
    out = file.parent / "out.svg"
    ran = pisti("replay", file, "--play", 5, "--svg", out)
    assert ran.status == 0 and ran.out == f"written to {out}\n"
    views = [deal.view(0, 5, seat) for seat in (None, 0, 1)]
    assert out.read_text() == svg(views[0], 480, views[1:], deal.agents)
    pisti("replay", file, "--play", 5, "--svg", out, "--size", 600, "--seat", 1)
    assert out.read_text() == svg(views[2], 600, None, deal.agents)


def test_an_animation_has_a_frame_for_every_play(pisti, file, match):
    out = file.parent / "out.gif"
    ran = pisti("replay", file, "--record", 1, "--deal", 1, "--gif", out, "--size", 160)
    assert ran.status == 0 and out.read_bytes().startswith(b"GIF89a")
    with Image.open(out) as image:
        assert image.n_frames == len(match.deals[1].plays) + 1 and image.size == (160, 120)
        assert image.info["loop"] == 0


def test_without_what_draws_pixels_one_line_tells_what_to_install(pisti, file, monkeypatch):
    real = __import__("importlib").import_module

    def missing(name, *arguments):
        if name in ("PIL.Image", "resvg_py"):
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr("pisti_env.render.raster.import_module", missing)
    out = file.parent / "out"
    refused(pisti("replay", file, "--gif", out), 'pip install "pisti-env[render]"')
    assert not out.exists()
    for option in ("--svg", "--html"):  # these need nothing
        assert pisti("replay", file, option, out).status == 0


# The page


class Page(html.parser.HTMLParser):
    """What stands in a page: its elements, and the text of some."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self._open = [], {}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._open.append(dict(attributes).get("id") or tag)

    def handle_endtag(self, tag):
        if self._open:
            self._open.pop()

    def handle_data(self, data):
        for name in self._open[-1:]:
            self.texts[name] = self.texts.get(name, "") + data

    @property
    def data(self):
        return json.loads(self.texts["data"])

    def pictures(self, deal):
        return [
            "".join(self.data["parts"][part] for part in picture)
            for picture in self.data["deals"][deal]["pictures"]
        ]


def test_a_page_has_all_pictures_and_sentences(pisti, file, match):
    out = file.parent / "out.html"
    ran = pisti("replay", file, "--record", 1, "--deal", 1, "--play", 4, "--html", out)
    assert ran.status == 0 and ran.out == f"written to {out}\n"
    text = out.read_text()
    found = Page(text)
    assert (found.data["deal"], found.data["play"]) == (1, 4)
    assert len(found.data["deals"]) == len(match.deals) > 2
    for number in (0, 1, len(match.deals) - 1):
        views = [[match.view(number, p, seat) for seat in (None, 0, 1)] for p in range(13)]
        expected = [svg(view[0], 800, view[1:], match.agents) for view in views]
        assert found.pictures(number) == expected
        if number == 1:
            assert expected[4] in text  # without JavaScript too
        assert found.data["deals"][number]["plays"] == [
            tell_play(view[0], match.agents) for view in views
        ]
    assert found.texts["h1"] == "ayşe against bora"


def test_the_end_of_a_deal_is_not_that_of_the_match(match):
    found = Page(page(match))
    for number in range(len(match.deals)):
        what = "match" if number + 1 == len(match.deals) else "deal"
        a, b = match.deals[number].scores if what == "deal" else match.scores_before(number + 1)
        told = f"{'ayşe' if a > b else 'bora'} wins the {what}"
        assert (told if a != b else f"the {what} has no single winner") in found.pictures(number)[
            -1
        ]


def test_a_page_needs_no_network_and_runs_its_own_script_alone(deal):
    text = page(deal)
    found = Page(text)
    [policy] = [a["content"] for tag, a in found.elements if a.get("http-equiv")]
    assert policy.startswith("default-src 'none'; script-src 'sha256-") and "http" not in policy
    assert "unsafe" not in policy.replace("style-src 'unsafe-inline'", "")
    outside = {"src", "href", "srcset", "action"}
    for tag, attributes in found.elements:
        links = {name for name in outside & set(attributes) if attributes[name][:1] != "#"}
        assert not links and not any(name.startswith("on") for name in attributes), (tag, links)
    assert set(re.findall(r"https?://[\w./]*", text)) == {"http://www.w3.org/2000/svg"}


def test_buttons_and_fields_of_a_page_have_names(deal):
    found = Page(page(deal))
    for tag, attributes in found.elements:
        if tag in ("button", "input"):
            assert attributes["aria-label"]
    assert ("label", {"for": "deal"}) in found.elements
    assert ("html", {"lang": "en"}) in found.elements


def test_names_in_a_page_are_harmless(deal):
    record = dataclasses.replace(deal, agents=(BAD_NAME, "bora"), comments=(BAD_NAME,))
    text = page(record)
    assert BAD_NAME not in text and "<img" not in text
    found = Page(text)
    assert [tag for tag, _ in found.elements if tag in ("img", "script")] == ["script"] * 2
    assert found.texts["h1"] == f"{BAD_NAME} against bora"
    assert any(BAD_NAME in told for told in found.data["deals"][0]["plays"])
    assert not any("<img" in picture for picture in found.pictures(0))


@pytest.mark.parametrize("viewer", [0, 1, EVERYONE])
@pytest.mark.parametrize("rules", [Rules(**SMALL), Rules(players=4, bottom_card_shown=True)])
def test_what_a_viewer_did_not_see_stands_nowhere(pisti, tmp_path, rules, viewer):
    names = tuple("abcd"[: rules.players])
    seen = played(rules, names, plays=5).seen_by(viewer)
    whole = [seen.replay(0, 5, seed=seed).record(names, seen.date) for seed in range(6)]
    assert len({record.deals for record in whole}) > 1
    shown = set()
    for record in whole:
        path, out = tmp_path / "deal.toml", tmp_path / "out"
        write_records(path, [record])
        texts = [pisti("replay", path, "--seat", viewer).out]
        for option in ("--html", "--svg"):
            pisti("replay", path, "--seat", viewer, option, out)
            texts.append(out.read_text())
        shown.add(tuple(texts))
    assert len(shown) == 1
    [(text, *_)] = shown
    unknown = {CARD_NAMES[card] for card in rules.deck_cards()} - {
        CARD_NAMES[card] for card in seen.deals[0].deck if card >= 0
    }
    assert unknown and not any(card in text for card in unknown)


@pytest.mark.compiled  # hundreds of moments, each played from the start of its deal
def test_the_page_of_a_long_match_is_not_large():
    rules = Rules(players=4, target=151)
    match = played(rules, ("a", "b", "a", "b"))
    match = dataclasses.replace(match, deals=match.deals[:10])
    assert len(match.deals) >= 5 and len(page(match)) < 120_000 * len(match.deals)


@pytest.mark.skipif(shutil.which("node") is None, reason="runs the page's script in Node")
def test_the_script_of_a_page_shows_what_is_asked_for(tmp_path, match):
    text = page(match, deal=1, play=2)
    [script] = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    found = Page(text)
    (tmp_path / "page.js").write_text(
        BROWSER.replace("DATA", json.dumps(found.texts["data"])) + script + STEPS
    )
    ran = subprocess.run(
        ["node", tmp_path / "page.js"], capture_output=True, text=True, check=True, timeout=60
    )
    told = json.loads(ran.stdout)
    pictures = [found.pictures(deal) for deal in (0, 1)]
    places = [(1, p) for p in (2, 3, 2, 12, 12, 0, 0, 7, 5)] + [(0, 0), (0, 1)]
    assert [one["picture"] for one in told] == [pictures[deal][play] for deal, play in places]
    plays = [found.data["deals"][deal]["plays"][play] for deal, play in places]
    assert all(play in one["told"] for play, one in zip(plays, told, strict=True))
    assert [one["current"] for one in told] == [play for _, play in places]
    # Two plays of the list are seen at once, of 10 each.
    assert all(0 <= 10 * one["current"] - one["scrolled"] <= 10 for one in told)


BROWSER = """
Set.prototype.remove = Set.prototype.delete;
class Element {
  classList = new Set(); children = []; attributes = {}; listeners = {}; tagName = "DIV";
  hidden = true; scrollTop = 0;
  get firstChild() { return this.children[0]; }
  get offsetHeight() { return elements.list.hidden ? 0 : 10; }
  get clientHeight() { return 2 * this.offsetHeight; }
  get offsetTop() { return this.offsetHeight * elements.plays.children.indexOf(this); }
  addEventListener(name, run) { this.listeners[name] = run; }
  setAttribute(name, value) { this.attributes[name] = value; }
  removeAttribute(name) { delete this.attributes[name]; }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  querySelectorAll() {
    return this.children.map((item) => item.firstChild).filter(isCurrent);
  }
}
const isCurrent = (button) => "aria-current" in button.attributes;
const elements = {};
const document = new Element();
document.createElement = () => new Element();
document.getElementById = (id) => (elements[id] ??= new Element());
document.getElementById("data").textContent = DATA;
"""
STEPS = """
const seen = [];
const look = () => seen.push({
  picture: elements.picture.innerHTML,
  told: elements.told.textContent,
  scrolled: elements.plays.scrollTop,
  current: elements.plays.children.findIndex((item) => isCurrent(item.firstChild)),
});
const press = (key) => document.listeners.keydown({ key, target: document, preventDefault() {} });
const click = (id) => elements[id].listeners.click({});
look();
click("next"); look();
click("back"); look();
click("last"); look();
press("ArrowRight"); look();
click("first"); look();
press("ArrowLeft"); look();
elements.plays.children[7].firstChild.listeners.click({}); look();
elements.slider.listeners.input({ target: { value: "5" } }); look();
elements.deal.listeners.change({ target: { value: "0" } }); look();
press("ArrowRight"); look();
console.log(JSON.stringify(seen));
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["replay", "deals.toml", "--svg", "deals.toml"],
        ["replay", "deals.toml", "--html", "link.toml"],
        ["coach", "deals.toml", "--seat", "0", "--json", "./deals.toml"],
        ["explain", "deals.toml", "--json", "deals.toml"],
        ["explain", "-", "--agent", "deals.toml", "--json", "deals.toml"],
        ["watch", "deals.toml", "greedy", "--record", "deals.toml"],
        ["evaluate", "greedy", "deals.toml", "--json", "deals.toml"],
    ],
)
def test_a_file_that_is_read_is_not_overwritten(arguments, tmp_path, monkeypatch, capsys):
    """By whatever name: a record, a checkpoint, a position."""
    monkeypatch.chdir(tmp_path)
    Path("deals.toml").write_text("worth keeping", encoding="utf-8")
    Path("link.toml").symlink_to("deals.toml")
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "is read and would be overwritten; expected another name" in line
    assert Path("deals.toml").read_text(encoding="utf-8") == "worth keeping"


def test_a_file_without_a_position_says_how_plays_of_records_are_explained(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("deals.toml").write_text("format = 'pisti-records'\nversion = 1\n", encoding="utf-8")
    for file in ("deals.toml", "none.toml"):
        with pytest.raises(SystemExit):
            cli.main(["explain", file])
        assert len(capsys.readouterr().err.splitlines()) == 1
    with pytest.raises(SystemExit):
        cli.main(["explain", "deals.toml"])
    assert "pisti coach FILE --seat SEAT --play N" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["check", "none.toml"])
    assert "none.toml cannot be read: No such file" in capsys.readouterr().err
