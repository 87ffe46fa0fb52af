/** Reads one answer of a target with care; the load generators then hold every further one against its length. */
import type { Running } from './processes.ts'
import type { Pace, Prompt } from './workload.ts'
import { headersTo, MESSAGES_PATH, pathTo, requestTo, STREAM_CHUNKS } from './workload.ts'

interface Answer {
  choices: { message?: { content?: string }; finish_reason: string | null }[]
  usage?: { total_tokens: number } | null
}

interface Message {
  type: string
  content?: { text?: string }[]
  usage?: { output_tokens: number }
}

/** @returns the length of the answer's body; throws when the answer is not a whole and sound one. */
export async function checkedAnswerBytes(
  target: Running,
  pace: Pace | null,
  prompt: Prompt = 'short',
): Promise<number> {
  const path = pathTo(target.name)
  const response = await fetch(target.url + path, {
    method: 'POST',
    headers: headersTo(target),
    body: requestTo(target.name, pace, prompt),
  })
  const text = await response.text()
  const refuse = (why: string) =>
    new Error(`${target.name}: ${why}\n${text.slice(0, 1000)}\n${target.complaints()}`)
  if (response.status !== 200) throw refuse(`answered ${response.status}`)
  const fault = (path === MESSAGES_PATH ? messageFault : chatFault)(text, pace)
  if (fault !== undefined) throw refuse(fault)
  return Buffer.byteLength(text)
}

/** Returns the fault of a chat completion, or of its stream. */
function chatFault(text: string, pace: Pace | null): string | undefined {
  if (pace === null) {
    const { choices, usage } = JSON.parse(text) as Answer
    return choices[0]?.message?.content && usage?.total_tokens ? undefined : WITHOUT
  }
  const events = eventsIn(text)
  if (events.pop() !== '[DONE]') return 'the stream does not end with [DONE]'
  const chunks = events.map((data) => JSON.parse(data) as Answer)
  const withChoice = chunks.filter((chunk) => chunk.choices.length > 0)
  if (withChoice.length !== STREAM_CHUNKS) return `sent ${withChoice.length} chunks, not ${STREAM_CHUNKS}`
  if (withChoice.at(-1)?.choices[0]?.finish_reason !== 'stop') return 'the stream has no finish chunk'
  return chunks.at(-1)?.usage?.total_tokens ? undefined : 'the stream has no usage chunk'
}

/** The same of a message: what is a chunk of its own in a chat for the role and the finish reason is no delta here. */
function messageFault(text: string, pace: Pace | null): string | undefined {
  if (pace === null) {
    const { content, usage } = JSON.parse(text) as Message
    return content?.[0]?.text && usage?.output_tokens ? undefined : WITHOUT
  }
  const events = eventsIn(text).map((data) => JSON.parse(data) as Message)
  const deltas = events.filter(({ type }) => type === 'content_block_delta').length
  if (deltas !== STREAM_CHUNKS - 2) return `sent ${deltas} deltas, not ${STREAM_CHUNKS - 2}`
  if (events.pop()?.type !== 'message_stop') return 'the stream does not end with message_stop'
  const last = events.pop()
  return last?.type === 'message_delta' && last.usage?.output_tokens
    ? undefined
    : 'the stream has no message_delta'
}

const WITHOUT = 'answered without content or usage'

function eventsIn(text: string): string[] {
  return text.split('\n\n').flatMap((event) => event.match(/^data: (.*)$/m)?.[1] ?? [])
}
