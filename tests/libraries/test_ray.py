"""`pisti evaluate --ray`: the same figures as in one process."""

import json
import re

import pytest
import ray

from pisti_env import cli, cluster
from pisti_env.record import read_records


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch):
    monkeypatch.setattr(cluster, "SHARD", 500)  # several, of few decks
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # or a busy machine takes minutes
    yield
    assert not ray.is_initialized()


@pytest.mark.parametrize(
    "arguments",
    [
        ["pisti-2p", "counting", "random", "--deals", "1700"],
        ["pisti-4p", "greedy", "--deals", "600", "--sample"],
        ["counting", "greedy", "random", "--rules", "players=3", "--deals", "1001"],
    ],
    ids=" ".join,
)
def test_a_cluster_finds_what_one_process_finds(arguments, tmp_path, capsys):
    one, many = tmp_path / "one.json", tmp_path / "many.json"
    kept = ["--record-every", "7", "--record"]
    cli.main(["evaluate", *arguments, "--json", str(one), *kept, f"{one}.toml"])
    printed = capsys.readouterr().out.replace("one.json", "many.json")
    cli.main(["evaluate", *arguments, "--ray", "--json", str(many), *kept, f"{many}.toml"])
    assert json.loads(one.read_text()) == json.loads(many.read_text())
    assert read_records(f"{one}.toml") == read_records(f"{many}.toml")
    assert capsys.readouterr().out == printed


def test_a_cluster_that_is_not_there_is_one_line(capsys):
    with pytest.raises(SystemExit):
        cli.main(["evaluate", "random", "greedy", "--deals", "10", "--ray", "127.0.0.1:1"])
    assert re.fullmatch(
        r"pisti evaluate: no Ray cluster answers at 127\.0\.0\.1:1 \(.*\); ray start .*\n",
        capsys.readouterr().err,
    )


@pytest.mark.parametrize("error", [ConnectionError, ray.exceptions.AuthenticationError])
def test_a_cluster_that_lets_nobody_in_is_one_line(error, monkeypatch, capsys):
    def refuse(**options):
        raise error("Invalid token\nand how to set one, over many lines")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(SystemExit):
        cli.main(["evaluate", "random", "greedy", "--deals", "10", "--ray", "auto"])
    assert re.fullmatch(
        r"pisti evaluate: the Ray cluster at auto cannot be joined \(Invalid token.*\); .*token\n",
        capsys.readouterr().err,
    )
