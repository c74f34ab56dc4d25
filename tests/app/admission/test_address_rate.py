"""app.admission.address_rate: so many requests of an address in a minute, and no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.admission.address_rate import AddressRate
from app.errors import RateLimited


def counted(rate: AddressRate, address: str) -> bool:
    try:
        rate.count(address)
    except RateLimited:
        return False
    return True


@given(st.integers(1, 20), st.lists(st.sampled_from(["192.0.2.1", "192.0.2.2"]), max_size=60))
def test_each_address_has_its_own_limit(limit, addresses):
    rate = AddressRate(limit, name="some-requests", clock=lambda: 0.0)
    accepted = [address for address in addresses if counted(rate, address)]

    for address in set(addresses):
        assert accepted.count(address) == min(limit, addresses.count(address))


def test_after_a_minute_the_address_is_heard_again():
    now = [0.0]
    rate = AddressRate(1, name="some-requests", clock=lambda: now[0])
    rate.count("192.0.2.1")
    now[0] = 30.0
    with pytest.raises(RateLimited) as refused:
        rate.count("192.0.2.1")
    now[0] += refused.value.retry_after_s

    assert counted(rate, "192.0.2.1")
    assert (refused.value.name, refused.value.limit, refused.value.window_s) == ("some-requests", 1, 60)


def test_the_addresses_of_one_ipv6_network_count_together():
    rate = AddressRate(1, name="some-requests")

    assert counted(rate, "2001:db8::1")
    assert not counted(rate, "2001:db8::2")
