"""The official openai package against a server: run by interop_test.go, or by hand:

    OPENAI_BASE_URL=http://127.0.0.1:8000/v1 python openai_client.py

Each check is a function; the first that fails ends the program with its traceback. All but the last need nothing of the
model but that it is deterministic at temperature 0.
"""

import asyncio
import os
import sys

import openai

PROMPT = "The quick brown fox jumps over the lazy dog. The quick brown fox"
CHAT = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "What is the capital of France? Answer in one sentence."},
]

client = openai.OpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none"), max_retries=0, timeout=300)
model = client.models.list().data[0].id


def equal(got, want, what):
    assert got == want, f"{what}: got {got!r}, want {want!r}"


def check_models():
    card = client.models.retrieve(model)
    equal(card.object, "model", "object of the model")
    equal(card.id, model, "id of the model")
    assert card.max_model_len > 0, card


def check_completion():
    whole = client.completions.create(model=model, prompt=PROMPT, max_tokens=24, temperature=0)
    choice = whole.choices[0]
    equal(whole.object, "text_completion", "object")
    equal(choice.finish_reason, "length", "finish_reason")
    equal(whole.usage.completion_tokens, 24, "completion_tokens")
    equal(whole.usage.total_tokens, whole.usage.prompt_tokens + 24, "total_tokens")

    text, reasons, usage = "", [], None
    stream = client.completions.create(
        model=model, prompt=PROMPT, max_tokens=24, temperature=0, stream=True, stream_options={"include_usage": True}
    )
    for chunk in stream:
        if chunk.usage:
            usage = chunk.usage
        for c in chunk.choices:
            text += c.text
            if c.finish_reason:
                reasons.append(c.finish_reason)
    equal(text, choice.text, "streamed text")
    equal(reasons, ["length"], "streamed finish_reason")
    equal(usage, whole.usage, "streamed usage")


def check_prompts():
    """A list of prompts gives the choices of each, as alone."""
    alone = [client.completions.create(model=model, prompt=p, max_tokens=8, temperature=0) for p in ("One, two,", "Red, green,")]
    both = client.completions.create(model=model, prompt=["One, two,", "Red, green,"], max_tokens=8, temperature=0)
    equal([c.index for c in both.choices], [0, 1], "indices")
    equal([c.text for c in both.choices], [a.choices[0].text for a in alone], "texts")
    equal(both.usage.completion_tokens, 16, "completion_tokens of both")


def check_stop():
    whole = client.completions.create(model=model, prompt=PROMPT, max_tokens=24, temperature=0).choices[0].text
    words = whole.split()
    stop = words[len(words) // 2]
    want = whole[: whole.index(stop)]
    cut = client.completions.create(model=model, prompt=PROMPT, max_tokens=24, temperature=0, stop=stop).choices[0]
    equal((cut.text, cut.finish_reason), (want, "stop"), "text up to the stop string")
    stream = client.completions.create(model=model, prompt=PROMPT, max_tokens=24, temperature=0, stop=[stop], stream=True)
    equal("".join(c.text for chunk in stream for c in chunk.choices), want, "streamed text up to the stop string")


def check_logprobs():
    answer = client.completions.create(model=model, prompt=PROMPT, max_tokens=4, temperature=0, logprobs=3).choices[0]
    equal("".join(answer.logprobs.tokens), answer.text, "tokens")
    for chosen, top in zip(answer.logprobs.token_logprobs, answer.logprobs.top_logprobs):
        assert chosen <= 0 and abs(max(top.values()) - chosen) < 1e-9, (chosen, top)
    answer = client.chat.completions.create(
        model=model, messages=CHAT, max_completion_tokens=4, temperature=0, logprobs=True, top_logprobs=2
    ).choices[0]
    equal(len(answer.logprobs.content), 4, "tokens with logprobs")
    equal(bytes(b for t in answer.logprobs.content for b in t.bytes).decode(), answer.message.content, "bytes")
    equal([len(t.top_logprobs) for t in answer.logprobs.content], [2] * 4, "alternatives")


def check_chat():
    whole = client.chat.completions.create(model=model, messages=CHAT, max_completion_tokens=32, temperature=0)
    message = whole.choices[0].message
    equal(whole.object, "chat.completion", "object")
    equal(message.role, "assistant", "role")
    assert message.content and whole.choices[0].finish_reason in ("stop", "length"), whole

    content, roles, reasons, usage = "", [], [], None
    stream = client.chat.completions.create(
        model=model, messages=CHAT, max_completion_tokens=32, temperature=0, stream=True, stream_options={"include_usage": True}
    )
    for chunk in stream:
        equal(chunk.object, "chat.completion.chunk", "object of a frame")
        if chunk.usage:
            usage = chunk.usage
        for c in chunk.choices:
            content += c.delta.content or ""
            if c.delta.role:
                roles.append(c.delta.role)
            if c.finish_reason:
                reasons.append(c.finish_reason)
    equal(content, message.content, "streamed content")
    equal(roles, ["assistant"], "streamed roles")
    equal(reasons, [whole.choices[0].finish_reason], "streamed finish_reason")
    equal((usage.prompt_tokens, usage.completion_tokens), (whole.usage.prompt_tokens, whole.usage.completion_tokens), "usage")


def check_choices():
    """n choices differ among each other, and come again with the same seed."""
    def ask(stream):
        return client.chat.completions.create(
            model=model, messages=CHAT, max_completion_tokens=16, temperature=1, n=3, seed=7, stream=stream
        )

    whole = [c.message.content for c in ask(False).choices]
    again = ["", "", ""]
    for chunk in ask(True):
        for c in chunk.choices:
            again[c.index] += c.delta.content or ""
    equal(again, whole, "choices, streamed with the same seed")
    assert len(set(whole)) > 1, f"all choices are {whole[0]!r}"


def check_errors():
    def refused(kind, status, **change):
        ask = {"model": model, "prompt": PROMPT, "max_tokens": 4} | change
        try:
            client.completions.create(**ask)
        except kind as e:
            equal(e.status_code, status, f"status with {change}")
            return e.body
        raise AssertionError(f"{change} was accepted")

    refused(openai.NotFoundError, 404, model="no-such-model")
    equal(refused(openai.BadRequestError, 400, temperature=-1)["param"], "temperature", "param")
    equal(refused(openai.BadRequestError, 400, max_tokens=-1)["param"], "max_tokens", "param")
    long = refused(openai.BadRequestError, 400, prompt="word " * 200_000)
    assert any(c.isdigit() for c in long["message"]), long


def check_left_streams():
    """Clients that go away in the middle of a stream leave nothing behind."""
    for _ in range(5):
        stream = client.completions.create(model=model, prompt=PROMPT, max_tokens=500, temperature=0, stream=True,
                                           extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
    check_completion()


def check_concurrency():
    """Eight clients at once get what each gets alone."""
    prompts = [f"{n} times {n} is" for n in range(2, 10)]
    alone = [client.completions.create(model=model, prompt=p, max_tokens=12, temperature=0).choices[0].text for p in prompts]

    async def together():
        async with openai.AsyncOpenAI(api_key="none", max_retries=0, timeout=300) as c:
            async def ask(p):
                stream = await c.completions.create(model=model, prompt=p, max_tokens=12, temperature=0, stream=True)
                return "".join([choice.text async for chunk in stream for choice in chunk.choices])

            return await asyncio.gather(*map(ask, prompts))

    equal(asyncio.run(together()), alone, "texts of clients at once")


def check_sense():
    """The default model knows the capital of France."""
    answer = client.chat.completions.create(model=model, messages=CHAT, max_completion_tokens=32, temperature=0)
    assert "Paris" in answer.choices[0].message.content, answer.choices[0].message.content


def main():
    checks = [f for name, f in globals().items() if name.startswith("check_")]
    for check in checks:
        check()
        print("ok", check.__name__.removeprefix("check_"), flush=True)
    print(f"openai {openai.__version__}: {len(checks)} checks passed")


if __name__ == "__main__":
    sys.exit(main())
