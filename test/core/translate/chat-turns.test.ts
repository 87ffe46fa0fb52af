import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '../../../lib/core/json/index.ts'
import { chatCompletions } from '../../../lib/core/operations/index.ts'
import { translationOf } from '../../../lib/core/translate/index.ts'
import { ask, assistant, text, user } from './requests.ts'

const direction = translationOf(chatCompletions, { protocol: 'anthropic' })
/** A request that the endpoint’s own schema may not let through. */
const unchecked = (json: JsonObject, upstreamModel = 'm') =>
  direction?.request({ model: 'm', messages: ask, ...json }, { upstreamModel, defaultMaxTokens: 10 }) ?? {}
const turnsOf = (...messages: unknown[]) => unchecked({ messages }).messages
const EPHEMERAL = { type: 'ephemeral' }
const cached = { cache_control: EPHEMERAL }
const result = (id: string, more: object = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  content: id,
  ...more,
})
const toolMessage = (id: string, more: object = {}) => ({
  role: 'tool',
  tool_call_id: id,
  content: id,
  ...more,
})
const call = (id: string, name = 'f') => ({ id, type: 'function', function: { name, arguments: '{}' } })
const use = (id: string, name = 'f') => ({ type: 'tool_use', id, name, input: {} })

describe('the turns of a chat on an anthropic line', () => {
  it('have results first, in their order, whoever spoke between', () => {
    const inContent = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: [text(id)] })
    assert.deepEqual(
      turnsOf(
        ...ask,
        { role: 'assistant', tool_calls: ['a', 'b', 'c'].map((id) => call(id)) },
        { role: 'user', content: 'one' },
        toolMessage('a'),
        { role: 'user', content: [text('two'), inContent('b')] },
        toolMessage('c'),
        { role: 'assistant', content: 'So', tool_calls: [call('d')] },
        toolMessage('d'),
        { role: 'user', content: 'three' },
      ),
      [
        user('hi'),
        assistant(use('a'), use('b'), use('c')),
        { role: 'user', content: [result('a'), inContent('b'), result('c'), text('one'), text('two')] },
        assistant(text('So'), use('d')),
        { role: 'user', content: [result('d'), text('three')] },
      ],
    )
  })

  it('hold what the assistant refused to say', () => {
    const refused = { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }
    assert.deepEqual(turnsOf(...ask, refused, ...ask), [user('hi'), assistant(text('No.')), user('hi')])
  })

  it('begin with results where nobody spoke before', () => {
    assert.deepEqual(turnsOf(toolMessage('a'), { role: 'user', content: 'b' }), [
      { role: 'user', content: [result('a'), text('b')] },
    ])
  })

  const CACHED: [what: string, message: object, blocks: unknown[]][] = [
    [
      'the last part of a user’s',
      { role: 'user', content: [text('a'), text('b')] },
      [text('a'), { ...text('b'), ...cached }],
    ],
    ['one text', { role: 'user', content: 'a' }, [{ ...text('a'), ...cached }]],
    ['a result', toolMessage('a'), [result('a', cached)]],
    ['nothing', { role: 'user', content: '' }, []],
  ]
  for (const [what, message, blocks] of CACHED)
    it(`are cached up to ${what}, where the message says so`, () => {
      const marks = [cached, { prompt_cache_breakpoint: {} }]
      for (const mark of marks) {
        const made = turnsOf({ ...message, ...mark }, { role: 'assistant', content: 'x' }, ...ask)
        const first = blocks.length === 0 ? [text('.')] : blocks
        assert.deepEqual(made, [{ role: 'user', content: first }, assistant(text('x')), user('hi')])
      }
      for (const none of [{ cache_control: 'x' }, { cache_control: null, prompt_cache_breakpoint: 'x' }])
        assert.doesNotMatch(JSON.stringify(turnsOf({ ...message, ...none }, ...ask)), /cache_control/)
    })

  it('are cached up to what the assistant called, or up to instructions', () => {
    const made = unchecked({
      messages: [
        { role: 'system', content: [text('a'), text('b')], ...cached },
        ...ask,
        { role: 'assistant', content: 'c', tool_calls: [call('d')], ...cached },
        toolMessage('d', { content: [{ ...text('e'), ...cached }] }),
      ],
    })
    assert.deepEqual(made.system, [text('a'), { ...text('b'), ...cached }])
    assert.deepEqual((made.messages as unknown[]).slice(1), [
      assistant(text('c'), { ...use('d'), ...cached }),
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'd', content: [{ ...text('e'), ...cached }] }],
      },
    ])
  })

  it('hold a result of one text as that, and any other as parts', () => {
    const content = (given: unknown) => {
      const [turn] = turnsOf(toolMessage('a', { content: given })) as [{ content: [{ content: unknown }] }]
      return turn.content[0].content
    }
    assert.deepEqual(content([text('x')]), 'x')
    assert.deepEqual(content([text('x'), text('y')]), [text('x'), text('y')])
    const image = { type: 'image', source: { type: 'url', url: 'https://a' } }
    assert.deepEqual(content([{ type: 'image_url', image_url: { url: 'https://a' } }]), [image])
    for (const none of ['', ' ', null, [], [text(' ')]]) assert.equal(content(none), undefined)
  })

  it('hold a result that failed, as Cursor tells it', () => {
    const failed = { type: 'tool_result', tool_use_id: 'a', content: 'no', is_error: true }
    const [made] = turnsOf({
      role: 'user',
      content: [failed, { ...failed, is_error: 'x', content: '' }],
    }) as [object]
    assert.deepEqual(made, {
      role: 'user',
      content: [
        { ...failed, content: [text('no')] },
        { type: 'tool_result', tool_use_id: 'a' },
      ],
    })
  })

  it('have the blank end of a beginning taken away, and nothing else', () => {
    const spaced = { role: 'assistant', content: ' a ' }
    assert.deepEqual(turnsOf(...ask, spaced), [user('hi'), assistant(text(' a'))])
    assert.deepEqual(turnsOf(...ask, spaced, ...ask), [user('hi'), assistant(text(' a ')), user('hi')])
    assert.deepEqual(turnsOf({ role: 'user', content: 'hi ' }), [user('hi ')])
    const calls = [{ ...spaced, tool_calls: [call('a')] }]
    assert.deepEqual(turnsOf(...ask, ...calls), [user('hi'), assistant(text(' a '), use('a'))])
  })

  it('are ended by the user for a model that takes no beginning, but not behind a call', () => {
    const model = 'claude-opus-4-7'
    const end = (...messages: unknown[]) => unchecked({ messages }, model).messages as unknown[]
    const said = { role: 'assistant', content: 'a' }
    assert.deepEqual(end(...ask, said).at(-1), user('Continue.'))
    assert.deepEqual(end(...ask, said, ...ask).at(-1), user('hi'))
    const called = { ...said, tool_calls: [call('b')] }
    assert.deepEqual(end(...ask, called).at(-1), assistant(text('a'), use('b')))
    assert.deepEqual(end(...ask, called, toolMessage('b'), said).at(-1), user('Continue.'))
  })

  it('hold integers of any size in the arguments of a call', () => {
    const big = { ...call('a'), function: { name: 'f', arguments: '{"id":12345678901234567890}' } }
    assert.match(
      JSON.stringify(turnsOf(...ask, { role: 'assistant', tool_calls: [big] })),
      /"id":12345678901234567890/,
    )
  })

  const REFUSED: [param: string, messages: unknown[]][] = [
    ['messages[0].content[0]', [{ role: 'user', content: ['x'] }]],
    ['messages[0].content[0]', [{ role: 'user', content: [{ type: 'toString' }] }]],
    [
      'messages[0].content[0].image_url',
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: '' } }] }],
    ],
    [
      'messages[0].content[0].image_url.url',
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'DATA:image/png,x' } }] }],
    ],
    ['messages[0].content[0].file', [{ role: 'user', content: [{ type: 'file', file: 'x' }] }]],
    [
      'messages[0].content[0].file',
      [{ role: 'user', content: [{ type: 'file', file: { file_data: 'https://a' } }] }],
    ],
    [
      'messages[1].tool_calls[0].id',
      [...ask, { role: 'assistant', tool_calls: [{ function: { name: 'f' } }] }],
    ],
    [
      'messages[1].tool_calls[1]',
      [...ask, { role: 'assistant', tool_calls: [call('a'), { id: 'b', function: {} }] }],
    ],
    [
      'messages[1].tool_calls[0].function.arguments',
      [...ask, { role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: 'x' } }] }],
    ],
    ['messages[0].role', [{ content: 'a' }]],
    ['system', []],
    ['messages', []],
  ]
  for (const [param, messages] of REFUSED)
    it(`are refused for ${param}: ${JSON.stringify(messages)}`, () => {
      const system = param === 'system' ? [{ type: 'image_url', image_url: { url: 'https://a' } }] : undefined
      assert.throws(() => unchecked({ messages, system }), { name: 'Untranslatable', param })
    })
})
