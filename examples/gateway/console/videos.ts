import { h } from './element.ts'
import { badge, type Tone } from './parts/status.ts'

/** A video task as operators see it. */
export interface VideoTask {
  readonly id: string
  readonly request_id: string
  readonly account: string
  readonly key: string | null
  readonly model: string
  readonly line: string
  readonly upstream_id: string | null
  readonly state: string
  /** Amounts are decimal strings. */
  readonly held: string
  readonly charged: string | null
  readonly error_code: string | null
  readonly created_at: string
  readonly updated_at: string
  readonly finished_at: string | null
}

export const VIDEO_STATES = [
  'unresolved',
  'intended',
  'queued',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'expired',
] as const

const TONES: Readonly<Record<string, Tone>> = {
  unresolved: 'bad',
  succeeded: 'good',
  failed: 'warn',
  cancelled: 'off',
  expired: 'warn',
}

/** Shows the state of a task and marks one whose result is unknown. */
export function videoBadge({ state }: VideoTask): HTMLElement {
  return h('span', {}, badge(TONES[state] ?? 'off', state === 'unresolved' ? 'in doubt' : state))
}
