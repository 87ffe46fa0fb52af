import { Fault } from './faults.ts'
import type { JsonObject } from './prompt.ts'
import type { Rendering } from './wire.ts'

/** A request whose answer is data and no text, read. */
export interface DataRequest {
  readonly model: string
  readonly inputTokens: number
  /** The body of the answer; `withheld` is one of the same shape that holds nothing. */
  readonly answer: (withheld: boolean) => object | Promise<object>
}

/** An OpenAI-style endpoint that makes data: vectors, pictures, an order. */
export interface DataWire {
  /** Throws a `Fault` where the real API would refuse the body. */
  readonly read: (body: JsonObject) => DataRequest
}

/** An answer that comes whole, in the form in which answers are performed. */
export function wholeAnswer(body: object): Rendering {
  return { body: () => body, opening: () => [], closing: () => [] }
}

/** A member that has to be a text. */
export function readText(body: JsonObject, member: string): string {
  const value = body[member]
  if (typeof value !== 'string' || value === '') {
    throw new Fault('invalid_request', { message: `${member}: a string is required.`, param: member })
  }
  return value
}
