import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import {
  answerJson,
  chatChunk,
  messageEvent,
  type ReceivedRequest,
  type ScriptedUpstream,
  startUpstream,
} from '../../support/scripted-upstream.ts'
import { type BenchLine, LINES, type LinePrice, MAX_WORDS } from './setting.ts'

const FAULTS = [
  'hangs',
  '500',
  '429',
  '503',
  'resets',
  'breaks off',
  'stands still',
  'no usage',
  'empty',
] as const

/** A fault of an upstream line in place of its work. */
export type UpstreamFault = (typeof FAULTS)[number]

/** How many in a hundred attempts meet a fault. */
const FAULTY_PERCENT = 25

/** The tokens that a tokenizer adds to a request of one message. */
const TOKENS_AROUND = 7

/** One request that a line was sent, and what the line itself counted. */
export interface ServedAttempt {
  /** In the answer, so that whoever reads that knows which attempt it came from. */
  readonly id: string
  readonly line: string
  readonly receivedAt: number
  readonly fault: UpstreamFault | undefined
  /** When the whole answer, regular end included, was handed over; null: it never was, or nobody waited for it any more. */
  finishedAt: number | null
  /** Tokens of output so far. */
  readonly produced: () => number
  /** In nano-units, at the line's price: of the whole answer, or of the input and what was said of it. */
  readonly cost: () => bigint
}

/** The lines of a run: one server that notes what it served for whom. */
export interface BenchUpstream {
  readonly url: string
  /** By the name that a caller gave to its request, in their order. */
  readonly served: ReadonlyMap<string, readonly ServedAttempt[]>
  close(): Promise<void>
}

interface Counts {
  fresh: number
  cached: number
  written: number
  output: number
}

interface Work {
  readonly res: ServerResponse
  readonly line: BenchLine
  readonly stream: boolean
  readonly words: readonly string[]
  readonly counts: Counts
  readonly attempt: ServedAttempt
}

/** @param faults whether lines also fail. */
export async function startBenchUpstream(faults: boolean): Promise<BenchUpstream> {
  const served = new Map<string, ServedAttempt[]>()
  const upstream: ScriptedUpstream = await startUpstream(async (res, request) => {
    // A run is long, and nobody looks at them.
    upstream.requests.length = 0
    const work = workOf(res, request, faults && Math.random() * 100 < FAULTY_PERCENT)
    const name = `${request.json.user ?? (request.json.metadata as { user_id: string }).user_id}`
    const attempts = served.get(name)
    if (attempts) attempts.push(work.attempt)
    else served.set(name, [work.attempt])
    await perform(work)
  })
  return { url: upstream.url, served, close: () => upstream.close() }
}

let numbered = 0

function workOf(res: ServerResponse, { path, json }: ReceivedRequest, faulty: boolean): Work {
  const line = LINES.find(({ id }) => path.startsWith(`/${id}/`))
  if (!line) throw new Error(`no line is at ${path}`)
  const words = Array.from({ length: between(4, MAX_WORDS) }, () => ' word')
  const input = TOKENS_AROUND + countTokens(`${json.messages[0]?.content}`)
  const cached = between(0, 10)
  const written = line.protocol === 'anthropic' ? between(0, 5) : 0
  const counts = { fresh: input - cached - written, cached, written, output: 0 }
  const attempt: ServedAttempt = {
    id: `attempt-${++numbered}`,
    line: line.id,
    receivedAt: Date.now(),
    fault: faulty ? FAULTS[between(0, FAULTS.length - 1)] : undefined,
    finishedAt: null,
    produced: () => counts.output,
    cost: () => costOf(counts, line.price),
  }
  return { res, line, stream: json.stream === true, words, counts, attempt }
}

function costOf({ fresh, cached, written, output }: Counts, price: LinePrice): bigint {
  const millionths =
    BigInt(fresh) * price.input +
    BigInt(cached) * price.cachedInput +
    BigInt(written) * price.cacheWrite +
    BigInt(output) * price.output
  return (millionths + 500_000n) / 1_000_000n
}

async function perform(work: Work): Promise<void> {
  const { res, attempt } = work
  await sleep(between(5, 60))
  switch (attempt.fault) {
    case 'hangs':
      return
    case 'resets':
      return void res.destroy()
    case '500':
    case '503':
      return answerJson(res, Number(attempt.fault), { error: { message: 'provoked', type: 'server_error' } })
    case '429':
      return answerJson(
        res,
        429,
        { error: { message: 'provoked', type: 'rate_limit' } },
        { 'retry-after': '1' },
      )
    default:
      return work.stream ? performStream(work) : performPlain(work)
  }
}

async function performPlain({ res, line, words, counts, attempt }: Work): Promise<void> {
  await sleep(between(20, 300))
  const { fault } = attempt
  const said = fault === 'empty' ? '' : words.join('')
  counts.output = words.length
  const usage = fault === 'no usage' ? undefined : usageIn(line, counts)
  const body =
    line.protocol === 'openai'
      ? {
          id: attempt.id,
          object: 'chat.completion',
          choices: [{ index: 0, message: { role: 'assistant', content: said }, finish_reason: 'stop' }],
          usage,
        }
      : {
          id: attempt.id,
          type: 'message',
          role: 'assistant',
          content: said === '' ? [] : [{ type: 'text', text: said }],
          stop_reason: 'end_turn',
          usage,
        }
  if (fault !== 'breaks off' && fault !== 'stands still') {
    if (fault !== 'empty' && !res.destroyed) attempt.finishedAt = Date.now()
    return answerJson(res, 200, body)
  }
  const text = JSON.stringify(body)
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  res.write(text.slice(0, text.length / 2))
  await sleep(10)
  if (fault === 'breaks off') res.destroy()
}

async function performStream(work: Work): Promise<void> {
  const { res, line, words, counts, attempt } = work
  const { fault } = attempt
  const wording = line.protocol === 'openai' ? chatWording : messageWording
  const paceMs = between(5, 30)
  const stopsAt =
    fault === 'breaks off' || fault === 'stands still' ? between(1, words.length - 1) : words.length
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  res.write(wording.begin(work, fault !== 'no usage'))
  for (const word of fault === 'empty' ? [] : words.slice(0, stopsAt)) {
    await sleep(paceMs)
    if (res.destroyed) return
    counts.output++
    res.write(wording.word(work, word))
  }
  if (fault === 'breaks off') return void res.destroy()
  if (fault === 'stands still') return
  if (fault !== 'empty' && !res.destroyed) attempt.finishedAt = Date.now()
  res.end(wording.end(work, fault !== 'no usage'))
}

interface Wording {
  begin(work: Work, reports: boolean): string
  word(work: Work, text: string): string
  end(work: Work, reports: boolean): string
}

const chatWording: Wording = {
  begin: ({ attempt: { id } }) => chatChunk({ role: 'assistant', content: '' }, null, { id }),
  word: ({ attempt: { id } }, content) => chatChunk({ content }, null, { id }),
  end: ({ line, counts, attempt: { id } }, reports) =>
    chatChunk({}, 'stop', { id }) +
    (reports ? `data: ${JSON.stringify({ id, choices: [], usage: usageIn(line, counts) })}\n\n` : '') +
    'data: [DONE]\n\n',
}

const messageWording: Wording = {
  begin: ({ line, counts, attempt: { id } }, reports) =>
    messageEvent('message_start', {
      message: {
        id,
        type: 'message',
        role: 'assistant',
        content: [],
        ...(reports && { usage: usageIn(line, { ...counts, output: 1 }) }),
      },
    }) + messageEvent('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  word: (_work, text) =>
    messageEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
  end: ({ counts }, reports) =>
    messageEvent('content_block_stop', { index: 0 }) +
    messageEvent('message_delta', {
      delta: { stop_reason: 'end_turn' },
      ...(reports && { usage: { output_tokens: counts.output } }),
    }) +
    messageEvent('message_stop'),
}

function usageIn({ protocol }: BenchLine, { fresh, cached, written, output }: Counts): object {
  return protocol === 'openai'
    ? {
        prompt_tokens: fresh + cached,
        completion_tokens: output,
        total_tokens: fresh + cached + output,
        prompt_tokens_details: { cached_tokens: cached },
      }
    : {
        input_tokens: fresh,
        cache_read_input_tokens: cached,
        cache_creation_input_tokens: written,
        output_tokens: output,
      }
}

/** A whole number. */
export function between(least: number, most: number): number {
  return least + Math.floor(Math.random() * (most - least + 1))
}
