"""What `footnote serve` writes is accessible to the owner of the data dir only."""

import stat
from pathlib import Path

from tests.server import Server


def test_a_server_creates_a_private_data_dir(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    server = Server(data_dir, generator="extractive", lexical="tantivy")
    try:
        server.start()
        document = server.upload("secret.txt", b"The vault's code is 4711.")
        assert server.settled(document["id"])["status"] == "indexed"
        assert server.stop() == 0
    finally:
        server.close()

    modes = {path.relative_to(data_dir): stat.S_IMODE(path.stat().st_mode) for path in data_dir.rglob("*")}
    assert {"footnote.db", "files", "index", "lexical"} <= {str(path) for path in modes}
    assert {path: oct(mode) for path, mode in modes.items() if mode & 0o077} == {}
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
