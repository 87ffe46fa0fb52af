import { hash } from 'node:crypto'

/** What every protocol takes for the id of a tool call; OpenAI's bound is the narrowest. */
const COMMON = /^[a-zA-Z0-9_-]{1,40}$/

/**
 * The id of a tool call as either protocol takes it: itself nearly always, else one made from it, the same in every
 * place and process, so that a call and its result stay together.
 */
export function toolId(id: string): string {
  return COMMON.test(id) ? id : `call_${hash('sha256', id).slice(0, 32)}`
}

/**
 * The id of a tool call in an answer. Some upstreams give none, and callers need one to send the result back under.
 *
 * @param index the call's place in the answer.
 */
export function answeredToolId(id: unknown, answerId: unknown, index: number): string {
  return toolId(typeof id === 'string' && id !== '' ? id : `${String(answerId)}:${index}`)
}
