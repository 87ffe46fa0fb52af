import { hash } from 'node:crypto'

/** The ids that every protocol accepts; OpenAI's length limit is the smallest. */
const COMMON_ID = /^[a-zA-Z0-9_-]{1,40}$/

/**
 * Returns the id of a tool call in a form that both protocols accept: mostly the id itself, else one that is derived from
 * it. It is the same in every place and process, so that a call and its result keep the same id.
 */
export function toolId(id: string): string {
  return COMMON_ID.test(id) ? id : `call_${hash('sha256', id).slice(0, 32)}`
}

/**
 * Returns the id of a tool call in an answer. Some upstreams send none; the caller needs one to send the result back.
 *
 * @param index the position of the call in the answer.
 */
export function toolIdInAnswer(id: unknown, answerId: unknown, index: number): string {
  return toolId(typeof id === 'string' && id !== '' ? id : `${String(answerId)}:${index}`)
}
