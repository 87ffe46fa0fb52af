import assert from 'node:assert/strict'
import { chatCompletions, messages, type Operation, responses } from '../../../lib/core/operations/index.ts'
import { translationOf, Untranslatable } from '../../../lib/core/translate/index.ts'
import { ask, type Body } from './requests.ts'

export const OPENAI = { protocol: 'openai', endpoints: new Set(['chat/completions']) } as const
export const ANTHROPIC = { protocol: 'anthropic' } as const

/** A request as the line gets it where members may be left out, and those that were. */
function dropping(from: Operation, line: typeof OPENAI | typeof ANTHROPIC, body: Body, upstreamModel = 'm') {
  const left: unknown[] = []
  const leaveOut = (param: string, what?: string) =>
    void left.push(what === undefined ? param : [param, what])
  const made = translationOf(from, line)?.request(
    { model: 'm', ...body },
    { upstreamModel, defaultMaxTokens: 100, leaveOut },
  )
  assert.ok(made)
  return { made, left }
}
export const ofChat = (body: Body) => dropping(chatCompletions, ANTHROPIC, { messages: ask, ...body })
export const ofMessage = (body: Body, model?: string) =>
  dropping(messages, OPENAI, { max_tokens: 10, messages: ask, ...body }, model)
export const ofResponse = (body: Body, line: typeof OPENAI | typeof ANTHROPIC = OPENAI) =>
  dropping(responses, line, { input: 'hi', ...body })
/** The member that is refused all the same, and what it is said to be. */
export const refused = (translate: () => unknown) => {
  try {
    translate()
  } catch (error) {
    if (error instanceof Untranslatable) return [error.param, error.what]
    throw error
  }
  return assert.fail('it was translated')
}
/** A chat, or a message, of this content. */
export const said = (...content: unknown[]) => ({ messages: [{ role: 'user', content }] })
export const input = (...items: unknown[]) => ({ input: items })
