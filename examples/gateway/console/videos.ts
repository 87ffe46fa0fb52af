import type { VideoTaskAnswer } from 'express-model-gateway/admin'
import { h } from './element.ts'
import { badge, type Tone } from './parts/status.ts'

export type VideoTask = VideoTaskAnswer

export const VIDEO_STATES = [
  'unresolved',
  'intended',
  'queued',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'expired',
] as const satisfies readonly VideoTask['state'][]

const TONES: Partial<Record<VideoTask['state'], Tone>> = {
  unresolved: 'bad',
  succeeded: 'good',
  failed: 'warn',
  cancelled: 'off',
  expired: 'warn',
}

/** Shows the state of a task and marks one whose result is unknown. */
export function videoBadge({ state }: VideoTask): HTMLElement {
  return h('span', {}, badge(TONES[state] ?? 'off', state))
}
