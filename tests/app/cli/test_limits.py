"""`footnote limits` sets, shows and removes the limits of a key or a tenant."""

import pytest

from tests.app.cli.command_line import CommandLine

DEFAULTS = "The server's defaults apply to your tenant and all its keys.\n"


def _key(footnote: CommandLine) -> tuple[str, str]:
    """Id and secret of a new key."""
    line, secret = footnote.said("keys", "create", "laptop").splitlines()
    return line.split()[0], secret


def test_limits_are_set_shown_replaced_and_removed(footnote: CommandLine) -> None:
    key_id, _ = _key(footnote)
    assert footnote.said("limits", "list") == DEFAULTS

    said = footnote.said("limits", "set", "--api-key", key_id, "--requests", "60", "--tokens", "100000")
    footnote.said("limits", "set", "--tenant", "default", "--concurrent", "4")
    rows = footnote.run("limits", "list").rows

    assert said == "60 requests and 100,000 tokens a minute, any at once\n"
    assert rows[0] == ["whose", "requests", "a", "minute", "tokens", "a", "minute", "at", "once", "since"]
    assert [row[:5] for row in rows[1:]] == [
        ["tenant", "default", "any", "any", "4"],
        ["key", key_id, "60", "100,000", "any"],
    ]

    footnote.said("limits", "set", "--api-key", key_id, "--concurrent", "1")
    assert footnote.run("limits", "list").rows[2][:5] == ["key", key_id, "any", "any", "1"], "in place, not beside"
    assert footnote.said("limits", "remove", "--api-key", key_id) == "The defaults apply.\n"
    assert footnote.said("limits", "remove", "--tenant", "default") == "The defaults apply.\n"
    assert footnote.said("limits", "remove", "--tenant", "default") == "The defaults apply.\n", "once more is no error"
    assert footnote.said("limits", "list") == DEFAULTS


def test_the_operator_sees_what_another_tenant_may_take_by_asking_for_it(footnote: CommandLine) -> None:
    acme = footnote.said("tenants", "add", "acme").splitlines()[1]
    footnote.said("tenants", "add", "globex")
    footnote.said("limits", "set", "--tenant", "acme", "--requests", "300")

    assert footnote.said("limits", "list") == DEFAULTS, "its own"
    for secret in ({}, {"key": acme}):
        assert footnote.run("limits", "list", "--tenant", "acme", **secret).rows[1][:5] == [
            "tenant",
            "acme",
            "300",
            "any",
            "any",
        ]
    assert footnote.run("limits", "list", key=acme).rows[1][:2] == ["tenant", "acme"]
    assert footnote.run("limits", "list", "--tenant", "globex").rows[1][-2:] == ["the", "default"]
    assert footnote.refused("limits", "list", "--tenant", "globex", key=acme) == "There is no such tenant."
    assert footnote.refused("limits", "set", "--tenant", "acme", "--requests", "900", key=acme)
    assert footnote.run("limits", "list", key=acme).rows[1][2] == "300"


@pytest.mark.parametrize("command", ["set", "remove"])
def test_limits_need_exactly_one_of_api_key_and_tenant(footnote: CommandLine, command: str) -> None:
    for arguments in ([], ["--api-key", "key_1", "--tenant", "default"]):
        assert footnote.refused("limits", command, *arguments).endswith("give --api-key or --tenant.")


def test_a_number_that_limits_nothing_is_refused(footnote: CommandLine) -> None:
    for name in ("--requests", "--tokens", "--concurrent"):
        ended = footnote.run("limits", "set", "--tenant", "default", name, "0")
        assert (ended.status, ended.out) == (2, "")
        assert "0 is not in the range" in ended.err
    assert "1000000000000" in footnote.refused("limits", "set", "--tenant", "default", "--tokens", str(10**12 + 1))
    assert footnote.said("limits", "list") == DEFAULTS


@pytest.mark.parametrize("command", ["set", "remove"])
def test_what_is_no_id_reaches_no_limits(footnote: CommandLine, command: str) -> None:
    key_id, _ = _key(footnote)
    footnote.said("limits", "set", "--api-key", key_id, "--requests", "60")
    footnote.said("limits", "set", "--tenant", "default", "--requests", "600")
    before = footnote.said("limits", "list"), footnote.said("audit")

    for no_id in ("", ".", "..", "nobody", "default?", "../default", "[/x]"):
        assert footnote.refused("limits", command, "--api-key", no_id).startswith("There is no")
    for no_id in ("", ".", "..", "nobody", "default?", f"../keys/{key_id}", "[/x]"):
        assert footnote.refused("limits", command, "--tenant", no_id).startswith("There is no")

    assert (footnote.said("limits", "list"), footnote.said("audit")) == before


def test_limits_are_set_in_the_data_dir_while_no_server_runs(command_line: CommandLine) -> None:
    command_line.run("limits", "set", "--tenant", "default", "--requests", "60")

    assert command_line.run("limits", "list").rows[1][:3] == ["tenant", "default", "60"]
