import { randomBytes } from 'node:crypto'
import type { Answer } from './answer.ts'
import type { Provider } from './faults.ts'
import type { JsonObject, Prompt } from './prompt.ts'

/** Answers in the form of one protocol. */
export interface Rendering {
  /** Returns the body of a plain response. */
  readonly body: () => object
  /** Yields the stream's frames up to the last token. */
  readonly opening: () => Iterable<string>
  /** Yields the frames with finish reason and usage; without them an answer is truncated. */
  readonly closing: () => Iterable<string>
}

/** An endpoint for text: reads its requests and renders its answers. */
export interface TextEndpoint {
  readonly provider: Provider
  /** Reads a body; throws a `Fault` if the real API would refuse it. */
  readonly read: (body: JsonObject) => Prompt
  readonly render: (prompt: Prompt, answers: readonly Answer[]) => Rendering
}

/** Returns a new id in the providers' style: the prefix and 24 random hex digits. */
export function newId(prefix: string): string {
  return `${prefix}${randomBytes(12).toString('hex')}`
}
