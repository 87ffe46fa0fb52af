import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  OPERATIONS,
  providerConstraintSchema,
  remixOf,
  videos,
  videoTasks,
} from '../../../lib/core/operations/index.ts'

type Json = Record<string, unknown>

const said = (content: unknown) => ({ role: 'user', content })
const part = (members: Json) => [{ type: 'text', text: 'a', ...members }]
/** Parts of which each has its own fault. */
const ODD_PARTS = [[{}], ['text'], [null], part({ type: 7 }), part({ type: null }), part({ text: 7 }), {}]
const SOUND_PARTS = [[], part({}), part({ text: null }), [{ type: 'other', x: 1 }], 'a', '']

/** Of each endpoint: how a value gets into its body, values that fit, values that do not. */
const ROWS: [
  path: string,
  what: string,
  build: (value: unknown) => Json,
  fit: unknown[],
  unfit: unknown[],
][] = [
  [
    '/v1/chat/completions',
    'a role',
    (role) => ({ messages: [{ role }] }),
    ['developer', 'system', 'user', 'assistant', 'tool', 'function'],
    ['', 'User', null, undefined],
  ],
  [
    '/v1/chat/completions',
    'content',
    (content) => ({ messages: [said(content)] }),
    [
      ...[...SOUND_PARTS, null, undefined],
      ...[part({ image_url: { url: '' } }), part({ image_url: 'u' }), part({ image_url: null })],
    ],
    [...ODD_PARTS, part({ image_url: {} }), part({ image_url: 7 }), part({ image_url: { url: 7 } })],
  ],
  [
    '/v1/chat/completions',
    'calls',
    (tool_calls) => ({ messages: [{ role: 'assistant', tool_calls }] }),
    [[], [{}], null, undefined],
    [{}, ['x'], [null], 'x'],
  ],
  [
    '/v1/messages',
    'a role',
    (role) => ({ max_tokens: 1, messages: [{ role, content: 'a' }] }),
    ['user', 'assistant', 'system'],
    ['', 'tool', 'developer', null, undefined],
  ],
  [
    '/v1/messages',
    'content',
    (content) => ({ max_tokens: 1, messages: [said(content)] }),
    SOUND_PARTS,
    [...ODD_PARTS, null, undefined],
  ],
  [
    '/v1/responses',
    'a role',
    (role) => ({ input: [{ role, content: 'a' }] }),
    ['user', 'assistant', 'system', 'developer', null, undefined],
    ['', 'tool'],
  ],
  [
    '/v1/responses',
    'content',
    (content) => ({ input: [said(content)] }),
    [...SOUND_PARTS, null, undefined],
    ODD_PARTS,
  ],
  ['/v1/responses', 'a type', (type) => ({ input: [{ type }] }), ['', 'message', null, undefined], [7, {}]],
  [
    '/v1/images/generations',
    'a series',
    (max_images) => ({ prompt: 'a', sequential_image_generation_options: { max_images } }),
    [1, 128, null, undefined],
    [0, 129, 1.5, '1'],
  ],
  [
    '/v1/images/generations',
    'the kind of a series',
    (sequential_image_generation) => ({ prompt: 'a', sequential_image_generation }),
    ['auto', 'disabled', '', null],
    [7, {}],
  ],
]

describe('a part of a body', () => {
  for (const [path, what, build, fit, unfit] of ROWS)
    it(`is judged: ${what} of ${path}`, () => {
      const { schema } = OPERATIONS.find((one) => one.path === path) ?? assert.fail()
      const accepts = (value: unknown) => schema.safeParse({ model: 'm', ...build(value) }).success
      for (const value of fit) assert.equal(accepts(value), true, JSON.stringify(value))
      for (const value of unfit) assert.equal(accepts(value), false, JSON.stringify(value))
    })

  it('may be a single character', () => {
    assert.equal(remixOf({ id: 'v', model: 'm', seconds: 1 }).schema.safeParse({ prompt: 'r' }).success, true)
    const image = { type: 'image_url', image_url: { url: 'u' } }
    assert.equal(videoTasks.schema.safeParse({ model: 'm', content: [image] }).success, true)
    assert.equal(
      videos.schema.safeParse({ model: 'm', prompt: 'p', input_reference: { image_url: 'u' } }).success,
      true,
    )
    assert.equal(providerConstraintSchema.safeParse({ region: 'e' }).success, true)
  })

  it('of a video task is judged', () => {
    const accepts = (members: Json) =>
      videoTasks.schema.safeParse({ model: 'm', content: [{ type: 'text', text: 'a' }], ...members }).success
    const fit = [
      { content: [{ type: 'text', text: null, role: null, image_url: null }] },
      { content: [{ type: 'image_url', image_url: { url: 'u' }, role: 'first_frame' }] },
      { resolution: '720p', ratio: '16:9', seed: -1, provider: {} },
      { resolution: null, ratio: null, seed: null, duration: null, frames: null, provider: null },
    ]
    for (const members of fit) assert.equal(accepts(members), true, JSON.stringify(members))
    const unfit = [
      { content: [{}] },
      { content: [{ type: 'text', text: 7 }] },
      { content: [{ type: 'text', role: 7 }] },
      { content: [{ type: 'image_url', image_url: {} }] },
      { content: 'a' },
      { resolution: 720 },
      { ratio: 1 },
      { provider: { unknown: 1 } },
    ]
    for (const members of unfit) assert.equal(accepts(members), false, JSON.stringify(members))
  })
})
