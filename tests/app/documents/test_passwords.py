"""app.documents.passwords keeps the passwords of jobs in memory only."""

from pydantic import SecretStr

from app.documents.passwords import Passwords


def test_a_password_is_there_until_it_is_forgotten():
    passwords = Passwords()
    passwords.put("job_1", SecretStr("open sesame"))

    assert passwords.of("job_1") == passwords.of("job_1") == "open sesame"
    passwords.forget("job_1")
    assert passwords.of("job_1") is None
    passwords.forget("job_1")


def test_a_newer_password_of_a_job_takes_the_place_of_the_older():
    passwords = Passwords()
    passwords.put("job_1", SecretStr("wrong"))
    passwords.put("job_1", SecretStr("right"))

    assert passwords.of("job_1") == "right"
    assert len(passwords) == 1


def test_the_oldest_go_first_when_there_are_too_many():
    passwords = Passwords(most=2)
    for number in range(3):
        passwords.put(f"job_{number}", SecretStr("x"))

    assert [passwords.of(f"job_{number}") for number in range(3)] == [None, "x", "x"]


def test_what_no_job_ever_asked_for_is_forgotten_in_the_end():
    now = [0.0]
    passwords = Passwords(seconds=10, clock=lambda: now[0])
    passwords.put("job_1", SecretStr("x"))
    now[0] = 5.0
    passwords.put("job_2", SecretStr("x"))
    now[0] = 10.0

    assert passwords.of("job_1") is None
    assert len(passwords) == 1


def test_nothing_shows_a_password():
    passwords = Passwords()
    passwords.put("job_1", SecretStr("open sesame"))

    assert "sesame" not in repr(passwords)
    assert "sesame" not in str(vars(passwords))
