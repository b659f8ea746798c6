"""What the page of Chainlit gets, over its socket: a line for a question and one for the next in the same chat."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import uuid

import socketio

root, question, work = sys.argv[1:]
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
os.makedirs(work, exist_ok=True)
env = {**os.environ, "OPENAI_BASE_URL": root + "/v1", "OPENAI_API_KEY": "none", "CHAINLIT_APP_ROOT": work}
page = subprocess.Popen([sys.executable, "-m", "chainlit", "run", os.path.abspath("chainlit_app.py"), "--headless", "--port", str(port)],
                        env=env, stdout=sys.stderr)


async def ask(chat, ended, shown, how):
    ended.clear()
    shown.clear()
    step = {"id": str(uuid.uuid4()), "type": "user_message", "name": "user", "output": question, "createdAt": "2025-01-01T00:00:00Z"}
    await chat.emit("client_message", {"message": step, "fileReferences": []})
    await asyncio.wait_for(ended.wait(), 60)
    text, tokens = shown.get("text", ""), shown.get("tokens", 0)
    assert tokens > 1, f"{tokens} tokens were streamed"
    print(json.dumps({"client": "Chainlit", "how": how, "text": text}), flush=True)


async def main():
    chat, ended, shown = socketio.AsyncClient(), asyncio.Event(), {}

    @chat.on("*")
    async def hear(event, *data):
        if event == "stream_token":
            shown["tokens"] = shown.get("tokens", 0) + 1
        elif event in ("new_message", "update_message") and data[0]["type"] == "assistant_message":
            shown["text"] = data[0]["output"]
        elif event == "task_end" and "text" in shown:
            ended.set()

    who = {"sessionId": str(uuid.uuid4()), "clientType": "webapp", "userEnv": "{}"}
    for attempt in range(120):
        try:
            await chat.connect(f"http://127.0.0.1:{port}", socketio_path="/ws/socket.io", auth=who, transports=["websocket"])
            break
        except socketio.exceptions.ConnectionError:
            if attempt == 119 or page.poll() is not None:
                raise
            await asyncio.sleep(0.5)
    await chat.emit("connection_successful")
    await ask(chat, ended, shown, "stream")
    await ask(chat, ended, shown, "follow-up")
    await chat.disconnect()


try:
    asyncio.run(main())
finally:
    page.send_signal(signal.SIGTERM)
    page.wait()
