import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatCompletions, messages, type Operation, responses } from '../../../lib/core/operations/index.ts'
import { chainTranslators } from '../../../lib/core/translate/chain-translators.ts'
import {
  type StreamTranslator,
  translationOf,
  translationsOf,
  Untranslatable,
} from '../../../lib/core/translate/index.ts'
import type { Translator } from '../../../lib/core/translate/translation.ts'
import { eventsOf } from './support/streams.ts'

/** A translator that only writes down what it is given. */
function scripted(
  stream: Partial<StreamTranslator>,
  request: Translator['request'] = (json) => json,
): Translator {
  const whole: StreamTranslator = {
    push: () => '',
    copied() {},
    end: () => '',
    textMember: undefined,
    skipped: 0,
    ...stream,
  }
  return { request, answer: (body) => ({ body, skipped: 0 }), stream: () => whole }
}
const context = { request: {}, created: 5, estimatedInputTokens: 9 }

describe('two translators in a chain', () => {
  it('pass on each chunk and each comment, and leave the end to the last', () => {
    const pushed: unknown[] = []
    const outer = scripted({ push: (json) => `${pushed.push(json)};`, end: () => 'end' })
    const inner = scripted({
      push: () => ': ping\n\ndata: {"a":1}\n\ndata: {"b":2}\n\n',
      end: () => 'data: {"c":3}\n\ndata: [DONE]\n\n',
    })
    const chained = chainTranslators(outer, inner, {}, () => ({})).stream(context)
    assert.equal(chained.push({}), '1;2;3;')
    assert.equal(chained.end({}), '4;end')
    assert.deepEqual(pushed, [undefined, { a: 1 }, { b: 2 }, { c: 3 }])
  })

  it('count what both have left out, number their events, and copy where both can', () => {
    const copied: string[] = []
    const copying = (name: string, textMember: string | undefined, more: object = {}) =>
      scripted({ textMember, copied: (delta) => void copied.push(`${name} ${delta}`), ...more })
    const stream = (outer: string | undefined, inner: string | undefined) =>
      chainTranslators(
        copying('outer', outer, { skipped: 2, nextEventNumber: 7 }),
        copying('inner', inner, { skipped: 1 }),
        {},
        () => ({}),
      ).stream(context)
    const both = stream('text', 'content')
    assert.deepEqual([both.skipped, both.nextEventNumber, both.textMember], [3, 7, 'text'])
    assert.deepEqual(
      [stream('text', undefined).textMember, stream(undefined, 'content').textMember],
      [undefined, undefined],
    )
    both.copied('x')
    assert.deepEqual(copied, ['inner x', 'outer x'])
  })

  it('report members without a counterpart by their names in the first protocol, only at the beginning', () => {
    const members = { messages: 'input', response_format: 'text.format' }
    const rows = [
      ['messages', 'input'],
      ['messages[0].content', 'input'],
      ['response_format.type', 'text.format'],
      ['tools[0]', 'tools[0]'],
      ['constructor', 'constructor'],
      ['', ''],
    ] as const
    for (const [param, named] of rows) {
      const refusing = (dispensable: boolean) =>
        scripted({}, () => {
          throw new Untranslatable(param, 'a thing', dispensable)
        })
      for (const dispensable of [true, false])
        assert.throws(
          () =>
            chainTranslators(scripted({}), refusing(dispensable), members, () => ({})).request(
              {},
              { upstreamModel: 'm', defaultMaxTokens: 1 },
            ),
          { name: 'Untranslatable', param: named, what: 'a thing', dispensable },
        )
      const left: unknown[] = []
      const leaving = scripted({}, (json, { leaveOut }) => {
        leaveOut?.(param, 'a thing')
        return json
      })
      const leaveOut = (...given: unknown[]) => void left.push(given)
      chainTranslators(scripted({}), leaving, members, () => ({})).request(
        {},
        { upstreamModel: 'm', defaultMaxTokens: 1, leaveOut },
      )
      assert.deepEqual(left, [[named, 'a thing']])
    }
  })

  it('pass on any other error unchanged', () => {
    const broken = scripted({}, () => {
      throw new RangeError('too deep')
    })
    const chained = chainTranslators(scripted({}), broken, {}, () => ({}))
    assert.throws(() => chained.request({}, { upstreamModel: 'm', defaultMaxTokens: 1 }), RangeError)
  })
})

describe('a response that an anthropic line streams', () => {
  it('is kept alive by its pings', () => {
    const stream = translationOf(responses, { protocol: 'anthropic' })?.stream(context)
    assert.equal(stream?.push({ type: 'ping' }), '')
    stream?.push({ type: 'message_start', message: { id: 'm' } })
    assert.equal(stream?.push({ type: 'ping' }), ': ping\n\n')
    const types = eventsOf(stream?.end({}) ?? '').map(({ type }) => type)
    assert.deepEqual(types, ['response.completed'])
  })
})

describe('the translation of a call', () => {
  const CHAT = { protocol: 'openai', endpoints: new Set(['chat/completions']) } as const
  const ROWS: [from: Operation, line: Parameters<typeof translationOf>[1], to: Operation | undefined][] = [
    [chatCompletions, { protocol: 'anthropic' }, messages],
    [chatCompletions, CHAT, undefined],
    [messages, CHAT, chatCompletions],
    [messages, { protocol: 'anthropic' }, undefined],
    [responses, CHAT, chatCompletions],
    [responses, { protocol: 'anthropic' }, messages],
  ]
  for (const [from, line, to] of ROWS)
    it(`of ${from.name} on ${JSON.stringify(line)} leads to ${to?.name}`, () =>
      assert.equal(translationOf(from, line)?.to, to))

  it('is one that begins with it', () => {
    for (const from of [chatCompletions, messages, responses]) {
      const found = translationsOf(from)
      assert.ok(found.length > 0)
      for (const translation of found) assert.equal(translation.from, from)
    }
    assert.deepEqual(translationsOf({ ...responses }), [])
  })
})
