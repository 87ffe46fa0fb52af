import { newId } from './text-endpoint.ts'

/** How long a video of the demo is queued, and how long it runs. */
export interface VideoPace {
  readonly waitMs: number
  readonly makeMs: number
}

export interface DemoVideo {
  readonly id: string
  readonly model: string
  readonly prompt: string
  readonly seconds: number
  readonly createdAt: number
  readonly remixOf: string | undefined
}

export type DemoVideoState = 'queued' | 'running' | 'succeeded' | 'failed'

/** Most videos to hold; the oldest are dropped. */
const MAX_TASKS = 1000

/** Stores the demo server's videos. Their states follow from the time since their creation. */
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
    if (this.#videos.size > MAX_TASKS && oldest !== undefined) this.#videos.delete(oldest)
    return video
  }

  find(id: string): DemoVideo | undefined {
    return this.#videos.get(id)
  }

  delete({ id }: DemoVideo): void {
    this.#videos.delete(id)
  }

  /** Returns the state of a video. It fails if its prompt contains the word "fail". */
  stateOf({ createdAt, prompt }: DemoVideo): DemoVideoState {
    const age = Date.now() - createdAt
    const { waitMs, makeMs } = this.#pace
    if (age < waitMs) return 'queued'
    if (age < waitMs + makeMs) return 'running'
    return /\bfail\b/i.test(prompt) ? 'failed' : 'succeeded'
  }

  /** Returns the progress of a video in percent. */
  progressOf({ createdAt }: DemoVideo): number {
    const { waitMs, makeMs } = this.#pace
    const share = (Date.now() - createdAt - waitMs) / makeMs
    return Math.round(100 * Math.min(1, Math.max(0, share)))
  }
}
