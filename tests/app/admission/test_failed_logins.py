"""app.admission.failed_logins blocks addresses after too many failed logins, and no others."""

import pytest

from app.admission.failed_logins import FailedLogins
from app.errors import RateLimited
from tests.app.usage.samples import Clock


def test_an_address_that_fails_too_often_is_refused_for_a_minute_and_others_are_not():
    clock = Clock(1000.0)
    logins = FailedLogins(3, clock=clock)
    for _ in range(3):
        logins.check("192.0.2.1", "Bearer guess")
        logins.failed("192.0.2.1")
    with pytest.raises(RateLimited) as refused:
        logins.check("192.0.2.1", "Bearer guess")

    assert 59 <= refused.value.retry_after_s <= 61
    logins.check("192.0.2.2", "Bearer guess")
    clock.now += refused.value.retry_after_s
    logins.check("192.0.2.1", "Bearer guess")


def test_a_key_that_was_good_from_there_is_not_locked_out():
    logins = FailedLogins(1, clock=Clock(1000.0))
    logins.succeeded("192.0.2.1", "Bearer good")
    logins.failed("192.0.2.1")

    logins.check("192.0.2.1", "Bearer good")
    with pytest.raises(RateLimited):
        logins.check("192.0.2.1", "Bearer other")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2", True),
        ("testclient", "testclient", True),
    ],
)
def test_addresses_count_by_network(one, other, same):
    logins = FailedLogins(1, clock=Clock(1000.0))
    logins.failed(one)

    assert (logins.state(other).remaining == 0) is same
