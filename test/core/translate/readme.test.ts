import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { CHAT_PARTS } from '../../../lib/core/translate/chat-as-messages/conversation.ts'
import { CHAT_MEMBERS } from '../../../lib/core/translate/chat-as-messages/request.ts'
import { HARMLESS_MEMBERS, type MemberRules } from '../../../lib/core/translate/member-rules.ts'
import { USER_BLOCKS } from '../../../lib/core/translate/messages-as-chat/messages.ts'
import { MESSAGES_MEMBERS } from '../../../lib/core/translate/messages-as-chat/request.ts'
import { RESPONSES_MEMBERS } from '../../../lib/core/translate/responses-as-chat/request.ts'

const readme = readFileSync(new URL('../../../lib/core/translate/README.md', import.meta.url), 'utf8')

/** The first list in the section of that title. */
function listIn(section: string): string | undefined {
  const text = readme.slice(readme.indexOf(`## ${section}`))
  return /^(?:- .*\n)+/m.exec(text)?.[0].trim()
}

/** One item for all members of the same effect, where the first of them stands. */
function memberList(rules: MemberRules): string {
  const members = Object.entries(rules).map(([member, { effect }]) => {
    const name = `\`${member}\``
    // Why one can be left out is said in the code.
    const said = effect.startsWith('dropped: ') ? 'dropped' : effect
    return { name, becomes: said.startsWith(name) ? said.replace(name, 'the same') : said }
  })
  const items = Object.entries(Object.groupBy(members, ({ becomes }) => becomes)).map(
    ([becomes, alike = []]) => `- ${alike.map(({ name }) => name).join(', ')}: ${becomes}`,
  )
  return items.join('\n')
}

/** The words in backquotes in front of the colon, of each item of the list that follows on a text. */
function namedBehind(text: string): string[] {
  const list = readme.slice(readme.indexOf(text) + text.length).split('\n\n')[1] ?? ''
  return [...list.matchAll(/^- ([^:]+):/gm)].flatMap(([, first = '']) =>
    [...first.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  )
}

describe('the README', () => {
  const DIRECTIONS = [
    { section: 'Harmless members', rules: HARMLESS_MEMBERS },
    { section: 'Chat completions on an `anthropic` line', rules: CHAT_MEMBERS },
    { section: 'Messages on an `openai` line', rules: MESSAGES_MEMBERS },
    { section: 'Responses through a chat', rules: RESPONSES_MEMBERS },
  ]
  for (const { section, rules } of DIRECTIONS) {
    it(`has the list of the code: ${section}`, () => {
      const expected = memberList(rules)
      assert.equal(
        listIn(section),
        expected,
        `lib/core/translate/README.md must hold this list:\n${expected}\n`,
      )
    })
  }

  it('names every content part of a chat that is translated', () => {
    assert.deepEqual(namedBehind('Content parts become'), Object.keys(CHAT_PARTS))
  })

  it('names every block of a user that is translated', () => {
    const blocks = namedBehind('Blocks become')
    assert.deepEqual(
      Object.keys(USER_BLOCKS).filter((type) => !blocks.includes(type)),
      [],
    )
  })
})
