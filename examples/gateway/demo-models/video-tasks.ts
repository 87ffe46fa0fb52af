import { newId } from './wire.ts'

/** Milliseconds that a task of the demo waits, and that it then takes. */
export interface VideoPace {
  readonly waitMs: number
  readonly makeMs: number
}

/** A video that the demo server makes, or plays making. */
export interface DemoVideo {
  readonly id: string
  readonly model: string
  readonly prompt: string
  readonly seconds: number
  readonly createdAt: number
  readonly remixOf: string | undefined
}

export type DemoVideoState = 'queued' | 'running' | 'succeeded' | 'failed'

/** Forgotten when there are more. */
const MOST_TASKS = 1000

/** The demo server's videos. Time alone moves them on: nothing runs in between. */
export class DemoVideos {
  readonly #pace: VideoPace
  readonly #videos = new Map<string, DemoVideo>()

  constructor(pace: VideoPace) {
    this.#pace = pace
  }

  create(prefix: string, asked: Pick<DemoVideo, 'model' | 'prompt' | 'seconds' | 'remixOf'>): DemoVideo {
    const video = { ...asked, id: newId(prefix), createdAt: Date.now() }
    this.#videos.set(video.id, video)
    const [oldest] = this.#videos.keys()
    if (this.#videos.size > MOST_TASKS && oldest !== undefined) this.#videos.delete(oldest)
    return video
  }

  find(id: string): DemoVideo | undefined {
    return this.#videos.get(id)
  }

  delete({ id }: DemoVideo): void {
    this.#videos.delete(id)
  }

  /** A video whose prompt holds the word "fail" fails. */
  stateOf({ createdAt, prompt }: DemoVideo): DemoVideoState {
    const age = Date.now() - createdAt
    const { waitMs, makeMs } = this.#pace
    if (age < waitMs) return 'queued'
    if (age < waitMs + makeMs) return 'running'
    return /\bfail\b/i.test(prompt) ? 'failed' : 'succeeded'
  }

  /** Percent. */
  progressOf({ createdAt }: DemoVideo): number {
    const { waitMs, makeMs } = this.#pace
    const share = (Date.now() - createdAt - waitMs) / makeMs
    return Math.round(100 * Math.min(1, Math.max(0, share)))
  }
}
