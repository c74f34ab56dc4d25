"""app.models.loading: a server that is sent messages needs no tokenizer on this machine."""

from app.models.loading import load_generator
from app.settings import Settings
from generation.byte_tokenizer import ByteTokenizer
from tests.app.api.openai.test_embeddings import Tokenized
from tests.generation.completion_server import CompletionServerStandIn, like_ollama


def test_a_server_of_chat_completions_is_loaded_without_a_model_of_this_machine() -> None:
    server = CompletionServerStandIn(like_ollama("Yes.", prompt=3, completion=2))
    settings = Settings(
        _env_file=None, generator="/no/such/folder", remote_url=server.url, remote_model="served", remote_api="chat"
    )
    try:
        tokenizer, revision, engine = load_generator(settings, Tokenized())
        try:
            assert isinstance(tokenizer, ByteTokenizer)
            assert (revision, engine.info.model, engine.info.context_window) == ("bytes/1", "served", 4096)
        finally:
            engine.close()
    finally:
        server.close()
