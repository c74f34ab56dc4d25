"""`footnote users` creates, disables, enables and removes the users of a tenant."""

import pytest

from tests.app.cli.command_line import CommandLine

ODD = "ada [b]l ?x=1#é%2F"  # an id may hold anything but a slash


def _key(footnote: CommandLine, user: str) -> str:
    """The secret of a new key of a user's."""
    return footnote.said("keys", "create", "laptop", "--role", "admin", "--user", user).splitlines()[1]


def test_users_are_made_and_listed_with_their_names(footnote: CommandLine) -> None:
    assert footnote.said("users", "add", "ada", "--name", "Ada [red]Lovelace") == "ada\n"
    assert footnote.said("users", "add", "bob") == "bob\n"
    listed = footnote.said("users", "list").splitlines()

    assert [line.split()[0] for line in listed] == ["id", "admin", "ada", "bob"]
    assert "  Ada [red]Lovelace  " in listed[2]
    assert all(line.split()[-1] == "works" for line in listed[1:])


@pytest.mark.parametrize("user", ["ada", ODD])
def test_a_disabled_users_keys_are_refused_until_it_is_enabled(footnote: CommandLine, user: str) -> None:
    assert footnote.said("users", "add", user) == f"{user}\n"
    secret = _key(footnote, user)

    assert footnote.said("usage", key=secret)
    assert footnote.said("users", "disable", user) == "Disabled.\n"
    assert "  disabled 20" in footnote.said("users", "list").splitlines()[2]
    assert footnote.refused("usage", key=secret)
    assert footnote.said("users", "enable", user) == "Enabled.\n"
    assert footnote.said("usage", key=secret)


@pytest.mark.parametrize("user", ["ada", ODD])
def test_a_removed_users_keys_are_refused_for_good_and_it_stays_listed(footnote: CommandLine, user: str) -> None:
    footnote.said("users", "add", user)
    secret = _key(footnote, user)

    assert footnote.said("users", "remove", user) == "Removed.\n"
    assert footnote.said("users", "list").splitlines()[2].startswith(f"{user}  ")
    footnote.said("users", "enable", user)
    assert footnote.refused("usage", key=secret), "letting it in again brings no key back"


def test_what_the_server_refuses_is_said_in_its_words_and_whole(footnote: CommandLine) -> None:
    footnote.said("users", "add", "ada")
    secret = footnote.said("keys", "create", "laptop", "--user", "ada").splitlines()[1]

    assert footnote.refused("users", "add", "ada") == "There is a user with this id already."
    assert "'^[^\\s/][^/]{0,199}$'" in footnote.refused("users", "add", "a/b")
    assert footnote.refused("users", "list", key=secret) == footnote.refused("users", "add", "x", key=secret)
    for command in ("disable", "remove"):
        assert footnote.refused("users", command, "admin").startswith("You cannot disable or delete your own user")
    assert footnote.run("users", "remove").status == 2


@pytest.mark.parametrize("command", ["disable", "enable", "remove"])
def test_what_is_no_users_id_reaches_no_user_and_nothing_else(footnote: CommandLine, command: str) -> None:
    footnote.said("users", "add", "ada")
    before = footnote.said("users", "list"), footnote.said("audit")

    for no_id in ("", ".", "..", "ada/..", "../users/ada", "nobody", "ada?", "[/ada]"):
        assert footnote.refused("users", command, no_id).startswith("There is no")

    assert (footnote.said("users", "list"), footnote.said("audit")) == before


def test_users_are_managed_in_the_data_dir_while_no_server_runs(command_line: CommandLine) -> None:
    assert command_line.run("users", "add", ODD).out == f"{ODD}\n"
    assert command_line.run("users", "remove", ODD).out == "Removed.\n"
    assert command_line.run("users", "list").out.splitlines()[2].startswith(f"{ODD}  ")
