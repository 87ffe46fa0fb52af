import type { FaultKind } from './faults.ts'

/** What one demo model does; everything not named here it does like a healthy model. */
export interface DemoModel {
  /** The upstream model name a request asks for. */
  readonly id: string
  /** One sentence for a person, fit for a table in a README. */
  readonly does: string
  /** Refuses calls with this fault, worded as the provider of the protocol words it. */
  readonly refuses?: FaultKind
  /** Refuses only every n-th call (counted over both protocols since the server started). */
  readonly everyNth?: number
  /** Sends its first byte, head included, only after `slowMs`. */
  readonly slow?: true
  /** Breaks off in the middle of an answer: says nothing more, or resets the connection. */
  readonly breaksOff?: 'silence' | 'reset'
  /** Answers 200 without any output: just nothing, or stopped by moderation. */
  readonly withholds?: 'nothing' | 'filtered'
}

/**
 * Every demo model, healthy ones first. Each answers at every endpoint, so any situation can be provoked at each, on an
 * OpenAI-style and on an Anthropic-style line.
 *
 * @example
 * for (const { id, does } of DEMO_MODELS) console.log(`| \`${id}\` | ${does} |`)
 */
export const DEMO_MODELS: readonly DemoModel[] = [
  { id: 'demo-chat', does: 'answers' },
  { id: 'demo-claude', does: 'answers' },
  { id: 'demo-embedding', does: 'answers, for vectors' },
  { id: 'demo-image', does: 'answers, for pictures' },
  { id: 'demo-rerank', does: 'answers, for the order of documents' },
  { id: 'demo-slow', does: 'answers, its first byte after 5 seconds', slow: true },
  { id: 'demo-stall', does: 'starts its answer, then goes silent', breaksOff: 'silence' },
  { id: 'demo-cut', does: 'starts its answer, then resets the connection', breaksOff: 'reset' },
  { id: 'demo-empty', does: 'answers 200 with no output', withholds: 'nothing' },
  {
    id: 'demo-filtered',
    does: 'answers 200, stopped by moderation: `content_filter` / stop reason `refusal`',
    withholds: 'filtered',
  },
  { id: 'demo-failing', does: 'fails with 500', refuses: 'server_error' },
  {
    id: 'demo-flaky',
    does: 'answers, and fails every second call with 500',
    refuses: 'server_error',
    everyNth: 2,
  },
  { id: 'demo-overloaded', does: 'is overloaded: 503 / 529', refuses: 'overloaded' },
  { id: 'demo-rate-limited', does: 'is rate limited: 429 with `Retry-After: 3`', refuses: 'rate_limited' },
  { id: 'demo-unauthorized', does: 'rejects every key with 401', refuses: 'invalid_key' },
  {
    id: 'demo-context',
    does: 'finds every prompt too long: 400, `context_length_exceeded`',
    refuses: 'context_too_long',
  },
]

/** The demo model of that name, if there is one. */
export function demoModel(id: string): DemoModel | undefined {
  return DEMO_MODELS.find((model) => model.id === id)
}
