"""Prints what LlamaIndex gets."""

from llama_index.core.llms import ChatMessage
from llama_index.llms.openai import OpenAIResponses
from llama_index.llms.openai_like import OpenAILike

from told import NEXT, QUESTION, SLOWLY, Told, first_of, url

told = Told("LlamaIndex", "llama-index-llms-openai-like")
like = OpenAILike(model="ibid", api_base=url, api_key="none", is_chat_model=True, max_retries=0)
responses = OpenAIResponses(model="ibid", api_base=url, api_key="none", context_window=4096, max_retries=0)
for name, llm in (("OpenAILike", like), ("OpenAIResponses", responses)):
    asked = [ChatMessage(role="user", content=QUESTION)]
    said = llm.chat(asked).message
    told.answer(name, said.content)
    told.answer(name + ", stream", "".join(r.delta or "" for r in llm.stream_chat(asked)))
    past = [*asked, ChatMessage(role="assistant", content=said.content)]
    told.follow(name, llm.chat([*past, ChatMessage(role="user", content=NEXT)]).message.content)
told.stop("OpenAILike", lambda: first_of(r.delta for r in like.stream_chat([ChatMessage(role="user", content=SLOWLY)])))
