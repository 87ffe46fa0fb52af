import type { JsonObject } from './prompt.ts'
import type { Rendering } from './text-endpoint.ts'

/** A request whose answer is data, not text. */
export interface DataRequest {
  readonly model: string
  readonly inputTokens: number
  /** Returns the body of the answer; with `withheld`, it has the same form and no content. */
  readonly answer: (withheld: boolean) => object | Promise<object>
}

/** An OpenAI-style endpoint for data: vectors, images, rankings. */
export interface DataEndpoint {
  /** Reads a body; throws a `Fault` if the real API would refuse it. */
  readonly read: (body: JsonObject) => DataRequest
}

/** Returns the rendering of an answer that cannot be streamed. */
export function wholeAnswer(body: object): Rendering {
  return { body: () => body, opening: () => [], closing: () => [] }
}
