import { Fault } from './faults.ts'
import type { JsonObject } from './prompt.ts'

/** Returns the texts of a member that is a text, a list of texts, tokens, or a list of tokens. Tokens become numbers. */
export function readInputs(body: JsonObject, member: string): string[] {
  const value = body[member]
  const texts = typeof value === 'string' ? [value] : isTokens(value) ? [value.join(' ')] : textsOf(value)
  if (texts === undefined || texts.length === 0) {
    const message = `${member}: a string, a list of strings or tokens are required.`
    throw new Fault('invalid_request', { message, param: member })
  }
  return texts
}

function textsOf(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined
  const texts = value.map((item: unknown) => (isTokens(item) ? item.join(' ') : item))
  return texts.every((text) => typeof text === 'string') ? texts : undefined
}

function isTokens(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0 && value.every(Number.isInteger)
}
