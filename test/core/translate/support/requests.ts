import assert from 'node:assert/strict'
import { bodyFault } from '../../../../lib/core/operations/body/body-schema.ts'
import {
  chatCompletions,
  messages,
  type Operation,
  responses,
} from '../../../../lib/core/operations/index.ts'
import { type Translation, translationOf, Untranslatable } from '../../../../lib/core/translate/index.ts'

export type Body = Record<string, unknown>

/** Puts requests of one endpoint to lines of another protocol. */
interface Translator {
  /** The request for the line, after a look whether the endpoint takes it and the caller's object stays as it is. */
  translate(body: Body, upstreamModel?: string): Body
  /** The member that has no counterpart; fails where all have one. */
  refusedMember(body: Body, upstreamModel?: string): string
}

function translator(from: Operation, direction: Translation | undefined, smallest: Body): Translator {
  const translate = (body: Body, upstreamModel = 'upstream-model'): Body => {
    const json = { ...smallest, ...body }
    assert.equal(bodyFault(from.schema, json), undefined, 'the endpoint takes it')
    const before = structuredClone(json)
    const made = direction?.request(json, { upstreamModel, defaultMaxTokens: 2000 })
    assert.deepEqual(json, before, 'the caller’s object stays as it was')
    return { ...made }
  }
  const refusedMember = (body: Body, upstreamModel?: string): string => {
    try {
      translate(body, upstreamModel)
    } catch (error) {
      if (error instanceof Untranslatable) return error.param
      throw error
    }
    return assert.fail('it was translated')
  }
  return { translate, refusedMember }
}

export const ask = [{ role: 'user', content: 'hi' }]

export const chat = translator(chatCompletions, translationOf(chatCompletions, { protocol: 'anthropic' }), {
  model: 'chat',
  messages: ask,
})

export const message = translator(messages, translationOf(messages, { protocol: 'openai' }), {
  model: 'chat',
  max_tokens: 100,
  messages: ask,
})

export const PNG = 'data:image/png;base64,aGk='

export const text = (value: string) => ({ type: 'text', text: value })
/** A turn of Anthropic's. */
export const user = (...said: string[]) => ({ role: 'user', content: said.map(text) })
/** A turn of Anthropic's. */
export const assistant = (...content: unknown[]) => ({ role: 'assistant', content })
/** A tool of OpenAI's. */
export const tool = (name: string) => ({ type: 'function', function: { name } })

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
