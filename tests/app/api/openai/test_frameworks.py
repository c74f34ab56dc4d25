"""LangChain's and LlamaIndex's clients of OpenAI's protocol, where they are installed."""

import pytest

from tests.app.api.openai.openai_server import SHOWN, Service
from tests.retrieval.fakes import HashingEmbedder
from tests.server import ADMIN_KEY

pytestmark = pytest.mark.filterwarnings("default")  # theirs are not ours
QUESTION = "How many lamps did the warden count in the tower of Bregenz?"


@pytest.fixture(scope="module")
def lamps(openai_service: Service) -> str:
    made = openai_service.http.post("/v1/collections", json={"name": "lamps"}).json()["id"]
    openai_service.upload("The warden counted forty lamps in the tower of Bregenz.", "lamps.txt", collection_id=made)
    return f"footnote:{made}"


def test_langchain_chats_streams_and_embeds(openai_service, lamps):
    langchain = pytest.importorskip("langchain_openai")
    there = {"base_url": f"{openai_service.url}/v1", "api_key": ADMIN_KEY}
    chat = langchain.ChatOpenAI(model=lamps, **there)
    embeddings = langchain.OpenAIEmbeddings(model="hashing", check_embedding_ctx_length=False, **there)

    assert chat.invoke(QUESTION).content == SHOWN
    assert "".join(chunk.content for chunk in chat.stream(QUESTION)) == SHOWN
    assert embeddings.embed_query("rye") == pytest.approx(
        HashingEmbedder(max_tokens=64).embed_query("rye").tolist(), abs=1e-6
    )
    assert len(embeddings.embed_documents(["rye", "ships"])) == 2


def test_llamaindex_chats_streams_and_embeds(openai_service, lamps):
    llms = pytest.importorskip("llama_index.llms.openai_like")
    core = pytest.importorskip("llama_index.core.llms")
    embeddings = pytest.importorskip("llama_index.embeddings.openai")
    there = {"api_base": f"{openai_service.url}/v1", "api_key": ADMIN_KEY}
    llm = llms.OpenAILike(model=lamps, is_chat_model=True, context_window=8192, **there)
    asked = [core.ChatMessage(role="user", content=QUESTION)]

    assert llm.chat(asked).message.content == SHOWN
    assert "".join(piece.delta or "" for piece in llm.stream_chat(asked)) == SHOWN
    embedding = embeddings.OpenAIEmbedding(model_name="hashing", **there)
    assert embedding.get_text_embedding("rye") == pytest.approx(
        HashingEmbedder(max_tokens=64).embed_query("rye").tolist(), abs=1e-6
    )
