"""The wire: the OpenAI Responses API over HTTP and server-sent events. It knows no disk."""
