"""Wire: the OpenAI Responses API over HTTP and server-sent events. Knows no disk."""
