/** Reads one answer of a target with care; the load generators then hold every further one against its length. */
import { requestHeaders } from './load.ts'
import type { Running } from './processes.ts'
import type { Pace } from './workload.ts'
import { chatRequest, PATH, STREAM_CHUNKS } from './workload.ts'

interface Answer {
  choices: { message?: { content?: string }; finish_reason: string | null }[]
  usage?: { total_tokens: number } | null
}

/** @returns the length of the answer's body; throws when the answer is not a whole and sound one. */
export async function checkedAnswerBytes(target: Running, pace: Pace | null): Promise<number> {
  const response = await fetch(target.url + PATH, {
    method: 'POST',
    headers: requestHeaders,
    body: chatRequest(pace),
  })
  const text = await response.text()
  const refuse = (why: string) =>
    new Error(`${target.name}: ${why}\n${text.slice(0, 1000)}\n${target.complaints()}`)
  if (response.status !== 200) throw refuse(`answered ${response.status}`)
  if (pace === null) {
    const { choices, usage } = JSON.parse(text) as Answer
    if (!choices[0]?.message?.content || !usage?.total_tokens)
      throw refuse('answered without content or usage')
    return Buffer.byteLength(text)
  }
  const events = text.split('\n\n').flatMap((event) => event.match(/^data: (.*)$/m)?.[1] ?? [])
  if (events.pop() !== '[DONE]') throw refuse('the stream does not end with [DONE]')
  const chunks = events.map((data) => JSON.parse(data) as Answer)
  const withChoice = chunks.filter((chunk) => chunk.choices.length > 0)
  if (withChoice.length !== STREAM_CHUNKS)
    throw refuse(`sent ${withChoice.length} chunks, not ${STREAM_CHUNKS}`)
  if (withChoice.at(-1)?.choices[0]?.finish_reason !== 'stop') throw refuse('the stream has no finish chunk')
  if (!chunks.at(-1)?.usage?.total_tokens) throw refuse('the stream has no usage chunk')
  return Buffer.byteLength(text)
}
