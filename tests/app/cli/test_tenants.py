"""`footnote tenants` creates, disables and enables tenants and creates their keys."""

import pytest

from tests.app.cli.command_line import CommandLine

NO_IDS = ["", ".", "..", "acme/keys", "../users", "ac me", "acme?x", "acme#x", "%61cme", "[/acme]"]


def test_a_tenant_is_made_with_a_key_that_administers_it_and_nothing_else(footnote: CommandLine) -> None:
    made = footnote.said("tenants", "add", "acme", "--name", "Acme [b]Ltd.[/b]").splitlines()
    listed = footnote.said("tenants", "list").splitlines()

    (key_id, role), secret = made[0].split(), made[1]
    assert (len(made), role) == (2, "admin")
    assert [line.split()[0] for line in listed] == ["id", "default", "acme"]
    assert "  Acme [b]Ltd.[/b]  " in listed[2]
    assert listed[2].split()[-1] == "works"
    assert key_id in footnote.said("keys", "list", key=secret)
    assert key_id not in footnote.said("keys", "list")
    assert footnote.refused("tenants", "list", key=secret) == footnote.refused("tenants", "add", "x", key=secret)


def test_without_a_name_it_is_called_as_it_is_named(footnote: CommandLine) -> None:
    footnote.said("tenants", "add", "acme")

    assert footnote.run("tenants", "list").rows[2][:2] == ["acme", "acme"]


def test_another_key_is_made_and_both_work(footnote: CommandLine) -> None:
    first = footnote.said("tenants", "add", "acme").splitlines()[1]
    key_line, second = footnote.said("tenants", "key", "acme").splitlines()

    assert first != second
    for secret in (first, second):
        assert key_line.split()[0] in footnote.said("keys", "list", key=secret)


def test_nobody_of_a_disabled_tenant_is_let_in_until_it_is_enabled(footnote: CommandLine) -> None:
    secret = footnote.said("tenants", "add", "acme").splitlines()[1]

    assert footnote.said("tenants", "disable", "acme") == "Disabled.\n"
    assert footnote.run("tenants", "list").rows[2][3] == "disabled"
    assert footnote.refused("users", "list", key=secret)
    assert footnote.said("tenants", "enable", "acme") == "Enabled.\n"
    assert footnote.run("tenants", "list").rows[2][3:] == ["works"]
    assert footnote.said("users", "list", key=secret)


def test_what_the_server_refuses_is_said_in_its_words_and_whole(footnote: CommandLine) -> None:
    footnote.said("tenants", "add", "acme")

    assert footnote.refused("tenants", "add", "acme") == "There is a tenant with this id already."
    assert "'^[a-z0-9][a-z0-9_-]{0,62}$'" in footnote.refused("tenants", "add", "A/B")
    assert "cannot be disabled" in footnote.refused("tenants", "disable", "default")
    assert footnote.refused("tenants", "key", "nobody") == "There is no such tenant."
    assert footnote.run("tenants", "add").status == 2


@pytest.mark.parametrize("command", ["key", "disable", "enable"])
def test_what_is_no_tenants_id_reaches_no_tenant_and_nothing_else(footnote: CommandLine, command: str) -> None:
    footnote.said("tenants", "add", "acme")
    before = footnote.said("tenants", "list"), footnote.said("audit")

    for no_id in NO_IDS:
        assert footnote.refused("tenants", command, no_id).startswith(("There is no", "Method Not Allowed"))

    assert (footnote.said("tenants", "list"), footnote.said("audit")) == before


def test_tenants_are_managed_in_the_data_dir_while_no_server_runs(command_line: CommandLine) -> None:
    made = command_line.run("tenants", "add", "acme")
    listed = command_line.run("tenants", "list")

    assert (made.status, len(made.out.splitlines())) == (0, 2)
    assert [row[0] for row in listed.rows] == ["id", "default", "acme"]
