"""The same server on PostgreSQL: one setting, the same answers."""

from tests.postgres import empty_postgres
from tests.server import Server


def test_a_document_is_found_cited_and_deleted_on_postgresql(tmp_path):
    with empty_postgres() as url:
        server = Server(tmp_path / "data", database_url=url)
        try:
            server.start()
            text = b"The lighthouse keeper of Skagen counted 412 ships in May. Her dog is called Admiral."
            document = server.upload("note.txt", text, metadata='{"year": 2025}')
            body = {"question": "How many ships did the keeper count in May?", "filter": {"year": 2025}}
            answer = server.http.post("/v1/ask", json={**body, "max_output_tokens": 24}).json()
            lexical = server.http.post("/v1/search", json={"query": "admiral", "mode": "lexical"}).json()["data"]

            assert document["status"] == "indexed"
            assert answer["sources"]["presented"] == [cited["chunk_id"] for cited in answer["citations"][:1]]
            assert "412" in answer["answer"]
            assert answer["usage"]["completion_tokens"] == 0 < answer["usage"]["prompt_tokens"], "quotes are the answer"
            assert [hit["document_id"] for hit in lexical] == [document["id"]]
            assert server.http.delete(f"/v1/documents/{document['id']}").json()["chunks_removed"] == 1
            assert server.http.post("/v1/search", json={"query": "ships"}).json()["data"] == []
            assert not (server.data_dir / "footnote.db").exists()
            assert server.stop() == 0
        finally:
            server.close()
