"""A real server fills a table in the background, with its real models, and serves it as CSV."""

import csv
import io
import time

from tests.server import Server

LEASES = {
    "north.txt": "The rent of the north shop is 900 euros a month.",
    "south.txt": "The south shop is painted blue.",
}
QUESTION = "How much is the rent of the north shop?"


def test_a_table_is_filled_in_the_background(server: Server) -> None:
    ids = [server.upload(name, text.encode())["id"] for name, text in LEASES.items()]
    for document in ids:
        assert server.settled(document)["status"] == "indexed"
    made = server.http.post("/v1/tables", json={"questions": [QUESTION], "document_ids": ids}).json()
    deadline = time.monotonic() + 60
    while (found := server.http.get(f"/v1/tables/{made['id']}").json())["state"] == "running":
        assert time.monotonic() < deadline, found
        time.sleep(0.2)

    assert (found["state"], found["progress"]["total"]) == ("finished", 2)
    north, south = found["rows"]["data"]
    assert "900" in north["cells"][0]["answer"]["answer"]
    assert south["cells"][0]["state"] in {"unsure", "refused"}
    sheet = csv.DictReader(io.StringIO(server.http.get(f"/v1/tables/{made['id']}.csv").text, newline=""))
    assert [row["document"] for row in sheet] == list(LEASES)
