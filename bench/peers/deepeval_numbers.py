"""What `bench/peers/run` has DeepEval do: URL, number of cases, calls in flight."""

import asyncio
import pathlib
import sys

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import ExactMatchMetric
from deepeval.test_case import LLMTestCase
from openai import AsyncOpenAI

url, cases, in_flight = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


async def ask_all():
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    permits = asyncio.Semaphore(in_flight)

    async def ask(number):
        async with permits:
            messages = [{"role": "user", "content": f"Return the number {number}"}]
            reply = await client.chat.completions.create(model="fake", messages=messages)
            return reply.choices[0].message.content

    return await asyncio.gather(*(ask(number) for number in range(cases)))


answers = asyncio.run(ask_all())
tests = [
    LLMTestCase(input=f"Return the number {number}", actual_output=answer, expected_output=str(number))
    for number, answer in enumerate(answers)
]
results = evaluate(
    tests,
    [ExactMatchMetric()],
    async_config=AsyncConfig(max_concurrent=in_flight),
    cache_config=CacheConfig(write_cache=False),
    display_config=DisplayConfig(show_indicator=False, print_results=False),
)
pathlib.Path("right").write_text(str(sum(result.success for result in results.test_results)))
