"""How a question becomes an answer: retrieval, prompt, generation or quotation, citations and their verification."""
