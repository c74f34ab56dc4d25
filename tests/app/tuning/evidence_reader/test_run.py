"""app.tuning.evidence_reader.run: what the command refuses before it loads anything."""

import pytest

from app.tuning.evidence_reader.run import main


def test_a_reader_that_is_not_there_is_named(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path), str(tmp_path / "out"), "--reader", str(tmp_path / "absent")])

    assert ended.value.code == 2
    assert "make reader" in capsys.readouterr().err
