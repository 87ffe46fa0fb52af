import assert from 'node:assert/strict'
import { it } from 'node:test'
import { dataOf } from '../../support/exchange.ts'
import { INPUT_TOKENS } from './content-forms.ts'
import { DIRECTIONS } from './directions.ts'
import { sceneOf } from './scene.ts'

it('the first event of a message on a chat line contains the estimated input, the last one the count', async () => {
  const direction = DIRECTIONS.find(({ name }) => name === 'a message on a chat line')
  assert.ok(direction)
  const scene = await sceneOf(direction)
  const content = { text: 'Hello there' }
  const { got, entry } = await scene.play({ content, reason: 'stop', shape: 'deltas' })
  const events = dataOf(got.text) as { message?: { usage: object }; usage?: object }[]
  assert.deepEqual(events[0]?.message?.usage, {
    input_tokens: entry.request?.estimated_input_tokens,
    cache_creation_input_tokens: null,
    cache_read_input_tokens: null,
    output_tokens: 0,
  })
  const end = events.at(-2)?.usage as { input_tokens: number }
  assert.equal(end.input_tokens, INPUT_TOKENS)
  assert.ok((entry.request?.estimated_input_tokens ?? 0) > 0)
})
