import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { DIRECTIONS, type Direction } from './directions.ts'
import { FALLBACK, type Play, PRICE, type Scene, sceneOf } from './scene.ts'

const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }

/** The last turn of a conversation is the result of a tool, by the caller's path. */
const TOOL_RESULTS: Readonly<Record<string, readonly object[]>> = {
  '/v1/chat/completions': [
    {
      messages: [
        { role: 'user', content: 'Remember this.' },
        {
          role: 'assistant',
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'note', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'done' },
      ],
    },
  ],
  // A chat has the image in a user message behind the result.
  '/v1/messages': [[{ type: 'text', text: 'done' }], [{ type: 'text', text: 'done' }, image]].map(
    (content) => ({
      messages: [
        { role: 'user', content: 'Remember this.' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name: 'note', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content }] },
      ],
    }),
  ),
  '/v1/responses': [
    {
      input: [
        { role: 'user', content: 'Remember this.' },
        { type: 'function_call', call_id: 'call_1', name: 'note', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_1', output: 'done' },
      ],
    },
  ],
}

/** The caller's own stop sequences; lines of messages say themselves that one was met. */
const STOPS: Readonly<Record<string, readonly object[]>> = {
  '/v1/chat/completions': [{ stop: 'END' }, { stop: ['END'] }],
  '/v1/completions': [{ stop: 'END' }],
  '/v1/messages': [{ stop_sequences: ['END'] }],
}

/** An empty list asks for none. */
const NO_STOPS: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { stop: [] },
  '/v1/completions': { stop: '' },
  '/v1/messages': { stop_sequences: [] },
}

const usageOf = ({ line }: Direction): string =>
  line.plainReasons.includes('stop') ? 'completion_tokens_details' : 'output_tokens_details'
const reasoned = (direction: Direction, tokens: number) => (data: string) =>
  data.replace(
    /("(?:completion|output)_tokens":3)/,
    `$1,"${usageOf(direction)}":{"reasoning_tokens":${tokens}}`,
  )
const named = (member: string) => (data: string) =>
  data.replace('"finish_reason":"stop"', `"finish_reason":"stop",${member}`)

for (const direction of DIRECTIONS) {
  const { caller, line } = direction
  const [plain = null] = line.plainReasons
  describe(`an answer without output: ${direction.name}`, () => {
    for (const shape of [undefined, 'deltas'] as const) {
      const how = shape ? 'streamed' : 'plain'
      const ask = (play: Partial<Play>): Play => ({ content: {}, reason: plain, shape, ...play })

      it(`that reasoned, followed a tool's result, or met a stop sequence is an answer (${how})`, async () => {
        const scene = await sceneOf(direction)
        const explained: readonly Partial<Play>[] = [
          { alter: reasoned(direction, 2) },
          ...(TOOL_RESULTS[caller.path] ?? []).map((extra) => ({ extra })),
          ...(plain === 'stop' ? (STOPS[caller.path] ?? []).map((extra) => ({ extra })) : []),
          ...(plain === 'stop'
            ? [{ alter: named('"stop_reason":"END"') }, { alter: named('"stop_reason":128001') }]
            : []),
        ]
        for (const play of explained) await assertAnswered(scene, ask(play))
      })

      it(`that nothing explains moves to the next line (${how})`, async () => {
        const scene = await sceneOf(direction)
        const unexplained: readonly Partial<Play>[] = [
          { alter: reasoned(direction, 0) },
          ...(plain === 'stop'
            ? [{ alter: named('"stop_reason":null') }, { extra: NO_STOPS[caller.path] ?? {} }]
            : []),
        ]
        for (const play of unexplained) {
          const { got, entry } = await scene.play(ask(play))
          assert.ok(got.text.includes(FALLBACK), got.text)
          assert.deepEqual(
            entry.routing?.attempts.map(({ outcome }) => outcome),
            ['empty_completion', 'completed'],
          )
        }
      })
    }
  })
}

async function assertAnswered(scene: Scene, play: Play): Promise<void> {
  const { got, entry } = await scene.play(play)
  assert.equal(got.status, 200, got.text)
  assert.equal(got.text.includes(FALLBACK), false, JSON.stringify(play.extra))
  assert.equal(entry.outcome, 'completed')
  assert.deepEqual(
    entry.routing?.attempts.map(({ line, outcome }) => [line, outcome]),
    [['line-0', 'completed']],
  )
  assert.equal(entry.billing?.charged, PRICE)
}

describe('moderation that says what for', () => {
  const [direction] = DIRECTIONS
  for (const reason of ['content_filter: SAFETY', 'content_filter: PROHIBITED_CONTENT', 'sensitive']) {
    it(reason, async () => {
      assert.ok(direction)
      const scene = await sceneOf(direction)
      for (const shape of [undefined, 'deltas'] as const) {
        const { got } = await scene.play({ content: {}, reason, shape })
        assert.equal(got.errorCode, 'content_filtered', got.text)
      }
    })
  }
})
