"""Two servers never share a data dir."""

import pytest

from tests.server import Server


def test_a_second_server_on_the_same_data_dir_refuses_to_start(server: Server) -> None:
    second = Server(server.data_dir)
    with pytest.raises(AssertionError, match="Another Footnote process"):
        second.start()

    assert server.http.get("/readyz").status_code == 200
