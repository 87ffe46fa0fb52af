import type { FaultKind } from './faults.ts'

/** The behaviour of one demo model, as far as it differs from a healthy one. */
export interface DemoModel {
  /** The upstream's name of the model. */
  readonly id: string
  /** A description for the table in the README. */
  readonly does: string
  /** Refuses calls with this fault. */
  readonly refuses?: FaultKind
  /** Refuses only every n-th call, counted over all protocols since the start of the server. */
  readonly everyNth?: number
  /** Sends its first byte, headers included, only after `slowMs`. */
  readonly slow?: true
  /** Breaks off in the middle of an answer: sends nothing more, or resets the connection. */
  readonly breaksOff?: 'silence' | 'reset'
  /** Answers 200 without any output: an empty answer, or one stopped by moderation. */
  readonly withholds?: 'nothing' | 'filtered'
}

/**
 * All demo models, healthy ones first. Each works with all endpoints, so that you can simulate each fault on OpenAI-style
 * and Anthropic-style lines.
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

export function demoModel(id: string): DemoModel | undefined {
  return DEMO_MODELS.find((model) => model.id === id)
}
