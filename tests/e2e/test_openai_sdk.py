"""OpenAI's own client against `footnote serve` with the default models: file search from upload to citation."""

from typing import Any

import openai

from tests.server import ADMIN_KEY


def test_file_search_from_upload_to_a_cited_answer(generating):
    with openai.OpenAI(base_url=f"{generating.url}/v1", api_key=ADMIN_KEY, max_retries=0, timeout=120) as client:
        store = client.vector_stores.create(name="sdk")
        file = client.vector_stores.files.upload_and_poll(
            vector_store_id=store.id, file=("lindau.txt", b"The harbour of Lindau was finished in 1856 by engineers.")
        )
        [hit] = client.vector_stores.search(store.id, query="When was the harbour of Lindau finished?").data
        question = [{"role": "user", "content": "When was the harbour of Lindau finished?"}]
        model = f"footnote:{store.id}"
        create: Any = client.chat.completions.create
        completion = create(model=model, messages=question, logprobs=True, top_logprobs=2, n=2)
        streamed = create(model=model, messages=question, stream=True)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in streamed)
        vector = client.embeddings.create(model="footnote", input="harbour").data[0].embedding

    assert file.status == "completed"
    assert hit.file_id == file.id
    first, second = completion.choices
    assert first.message.content == second.message.content == text  # greedy
    assert "1856" in text
    assert [annotation.file_id for annotation in first.message.annotations] == [file.id]
    content = first.logprobs.content
    assert all(entry.logprob <= 0 and len(entry.top_logprobs) == 2 for entry in content)
    assert "1856" in bytes(byte for entry in content for byte in entry.bytes).decode()
    assert len(vector) == 384
