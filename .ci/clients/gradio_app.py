"""The chat page of gradio that web/CLIENTS.md shows."""

import os

import gradio as gr

gr.load_chat(os.environ["OPENAI_BASE_URL"], model="ibid", token="none", file_types=None).launch()
