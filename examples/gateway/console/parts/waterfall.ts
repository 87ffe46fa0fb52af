import type { Call } from '../calls.ts'
import { type Child, h, svg } from '../element.ts'
import { duration, NOTHING } from '../format.ts'
import type { Session } from '../session.ts'
import { recordLink } from './links.ts'
import { badge, type Tone } from './status.ts'

type Routing = NonNullable<Call['routing']>
type Attempt = Routing['attempts'][number]
type Elimination = Routing['eliminated'][number]

/** An attempt with the time of its beginning, as far as the trace has it. */
interface TimedAttempt {
  readonly attempt: Attempt
  /** Milliseconds from the beginning of the first one. */
  readonly at: number
}

/**
 * Shows how a call was routed: the eliminated lines, then the attempts, each below the previous one and shifted by the time
 * that had passed. The trace has the durations of attempts, but not the pauses between them.
 */
export function waterfall({ eliminated, attempts }: Routing, session: Session): HTMLElement {
  const timedAttempts = timed(attempts)
  const span = Math.max(1, ...timedAttempts.map(({ attempt, at }) => at + attempt.duration_ms))
  return h(
    'figure',
    { class: 'routing' },
    h(
      'ol',
      { class: 'waterfall', 'aria-label': 'Lines in the order in which they were looked at' },
      eliminated.map((one) => eliminatedRow(one, session)),
      timedAttempts.map((one, i) => attemptRow(one, i + 1, span, session)),
    ),
    attempts.length > 0 && legend(span),
  )
}

function timed(attempts: readonly Attempt[]): TimedAttempt[] {
  let at = 0
  return attempts.map((attempt) => {
    const timedAttempt = { attempt, at }
    at += attempt.duration_ms
    return timedAttempt
  })
}

function eliminatedRow({ line, model, reason, detail }: Elimination, session: Session): HTMLElement {
  return h(
    'li',
    { class: 'eliminated' },
    h(
      'div',
      { class: 'line' },
      h('strong', {}, recordLink(session, 'line', line)),
      model !== undefined && h('span', { class: 'muted' }, `for ${model}`),
      badge('off', 'eliminated'),
    ),
    h('div', { class: 'why' }, h('span', { class: 'mono' }, reason), detail !== '' && h('span', {}, detail)),
  )
}

function attemptRow(
  { attempt, at }: TimedAttempt,
  number: number,
  span: number,
  session: Session,
): HTMLElement {
  const {
    line,
    model,
    upstream_model: upstreamModel,
    outcome,
    upstream_status: status,
    timeout_phase: phase,
    detail,
  } = attempt
  const ended = phase === null ? outcome : `${outcome} (${phase})`
  return h(
    'li',
    { class: 'attempt' },
    h(
      'div',
      { class: 'line' },
      h('span', { class: 'num muted' }, `${number}.`),
      h('strong', {}, recordLink(session, 'line', line)),
      h(
        'span',
        { class: 'muted' },
        model === undefined ? `as ${upstreamModel}` : `for ${model}, as ${upstreamModel}`,
      ),
      badge(toneOf(outcome), `${status ?? 'no status'} ${ended}`),
    ),
    bar(attempt, at, span),
    h('div', { class: 'clocks num' }, clocksOf(attempt)),
    detail !== null && h('div', { class: 'why' }, h('span', {}, detail)),
  )
}

function clocksOf({ connect_ms, first_byte_ms, duration_ms }: Attempt): Child {
  const clock = (name: string, ms: number | null) =>
    h('span', {}, h('span', { class: 'muted' }, `${name} `), ms === null ? NOTHING : duration(ms))
  return [
    clock('connected after', connect_ms),
    clock('first byte after', first_byte_ms),
    clock('ended after', duration_ms),
  ]
}

function toneOf(outcome: string): Tone {
  if (outcome === 'completed') return 'good'
  return outcome === 'abandoned' ? 'warn' : 'bad'
}

/** Shows the phases of an attempt: connecting, waiting for the first byte, reading. */
function bar(
  { connect_ms, first_byte_ms, duration_ms, outcome }: Attempt,
  at: number,
  span: number,
): SVGElement {
  const connected = Math.min(connect_ms ?? 0, duration_ms)
  const answered = Math.max(connected, Math.min(first_byte_ms ?? duration_ms, duration_ms))
  const part = (from: number, to: number, name: string): Child =>
    to > from &&
    svg('rect', {
      class: name,
      x: percent(at + from, span),
      width: percent(to - from, span),
      y: 3,
      height: 10,
    })
  return svg(
    'svg',
    { class: `bar bar-${toneOf(outcome)}`, width: '100%', height: 16, 'aria-hidden': 'true' },
    svg('rect', { class: 'track', x: 0, width: '100%', y: 7.5, height: 1 }),
    part(0, connected, 'connecting'),
    part(connected, answered, 'waiting'),
    part(answered, duration_ms, 'reading'),
    // Even a very short phase is visible.
    svg('rect', { class: 'edge', x: percent(at, span), width: 2, y: 1, height: 14 }),
  )
}

/** Leaves room at the right end for the edge of an attempt that took no time. */
function percent(ms: number, span: number): string {
  return `${((ms / span) * 99).toFixed(3)}%`
}

function legend(span: number): HTMLElement {
  const swatch = (name: string, text: string) => h('span', { class: `swatch swatch-${name}` }, text)
  return h(
    'p',
    { class: 'legend small' },
    swatch('connecting', 'connecting'),
    swatch('waiting', 'waiting for the first byte'),
    swatch('reading', 'reading the answer'),
    h('span', { class: 'muted' }, `Bars span ${duration(span)}. Pauses between attempts are not recorded.`),
  )
}
