"""Times in exports are formatted as `datetime` formats them, in every zone."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import example, given
from hypothesis import strategies as st

from app.usage.reports.instants import Instants, rfc3339_seconds, utc
from tests.app.usage.reports.lines import ZONES

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@given(st.sampled_from(ZONES), st.lists(st.integers(0, 4 * 10**15), min_size=1, max_size=4))
@example("Africa/Monrovia", [63_593_069_999_999, 63_593_070_000_000, 63_593_010_000_000])  # from -00:44:30, mid-minute
@example("Europe/Berlin", [1_774_745_999_999_999, 1_774_746_000_000_000])
@example("Asia/Kathmandu", [0, 59_999_999, 60_000_000])
def test_every_moment_is_written_as_datetime_has_it(zone, moments):
    instants = Instants(ZoneInfo(zone))
    for at in moments:
        moment = EPOCH + timedelta(microseconds=at)
        expected = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
        local = moment.astimezone(ZoneInfo(zone)).isoformat(timespec="microseconds")
        assert instants.both(at) == (expected, local)
        assert instants.utc(at) == utc(at) == expected
        assert rfc3339_seconds(at // 10**6) == f"{expected[:19]}Z"
