import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { bodyFault } from '../../../lib/core/operations/body/body-schema.ts'
import { chatCompletions, messages } from '../../../lib/core/operations/index.ts'
import { type Translation, translationOf } from '../../../lib/core/translate/index.ts'
import { asChat, asMessages, conversations, meaningOf } from './support/conversations.ts'
import type { Body } from './support/requests.ts'

const toMessages = translationOf(chatCompletions, { protocol: 'anthropic' }) as Translation
const toChat = translationOf(messages, { protocol: 'openai' }) as Translation

const translate = ({ request, to }: Translation, body: Body): Body => {
  const made = { ...request(body, { upstreamModel: 'm', defaultMaxTokens: 100 }) }
  assert.equal(bodyFault(to.schema, made), undefined, 'the other endpoint takes it')
  return made
}

/** The last thing a begun answer says loses the white space at its end on an Anthropic-style line. */
const trimmed = (atoms: ReturnType<typeof meaningOf>) =>
  atoms.map((atom, i) =>
    i === atoms.length - 1 && atom[0] === 'assistant' ? [atom[0], atom[1], atom[2].trimEnd()] : atom,
  )

describe('a conversation', () => {
  it('of a chat means the same as messages, and as a chat again', () => {
    fc.assert(
      fc.property(conversations, (conversation) => {
        const chat = asChat(conversation)
        const there = translate(toMessages, chat)
        assert.deepEqual(trimmed(meaningOf(there)), trimmed(meaningOf(chat)))
        assert.deepEqual(trimmed(meaningOf(translate(toChat, there))), trimmed(meaningOf(chat)))
      }),
    )
  })

  it('of messages means the same as a chat, and as messages again', () => {
    fc.assert(
      fc.property(conversations, (conversation) => {
        const asked = asMessages(conversation)
        const there = translate(toChat, asked)
        assert.deepEqual(meaningOf(there), meaningOf(asked))
        assert.deepEqual(trimmed(meaningOf(translate(toMessages, there))), trimmed(meaningOf(asked)))
      }),
    )
  })

  it('alternates between user and assistant on an Anthropic-style line, and begins with a user', () => {
    fc.assert(
      fc.property(conversations, (conversation) => {
        const turns = translate(toMessages, asChat(conversation)).messages as { role: string }[]
        for (const [i, { role }] of turns.entries()) assert.equal(role, i % 2 === 0 ? 'user' : 'assistant')
      }),
    )
  })
})
