import { randomBytes } from 'node:crypto'
import type { Answer } from './answer.ts'
import type { Provider } from './faults.ts'
import type { JsonObject, Prompt } from './prompt.ts'

/** Answers in the form one protocol gives them. */
export interface Rendering {
  /** The body of a plain response. */
  readonly body: () => object
  /** The stream's frames up to the last token. */
  readonly opening: () => Iterable<string>
  /** The frames that say why and with what usage it ended; without them an answer is truncated. */
  readonly closing: () => Iterable<string>
}

/** One protocol: how its requests are read and its answers rendered. */
export interface Wire {
  readonly provider: Provider
  /** Throws a `Fault` where the real API would refuse the body. */
  readonly read: (body: JsonObject) => Prompt
  readonly render: (prompt: Prompt, answers: readonly Answer[]) => Rendering
}

/** A new identifier in the providers' style: the prefix and 24 random hex digits. */
export function newId(prefix: string): string {
  return `${prefix}${randomBytes(12).toString('hex')}`
}
