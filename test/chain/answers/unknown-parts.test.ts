import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CONTENT_FORMS, SHAPES } from './content-forms.ts'
import { DIRECTIONS, type Direction } from './directions.ts'
import { dataIn, sceneOf } from './scene.ts'

/** Events that no version of a protocol names, by whether its events have types. */
const STRANGE: Readonly<Record<string, readonly object[]>> = {
  named: [{ type: 'mystery.begun', riddle: 1 }, { type: 'mystery' }],
  unnamed: [
    { object: 'mystery', riddle: 1 },
    { object: 'chat.completion.chunk', choices: [], mystery: {} },
  ],
}
const strangeOf = ({ line }: Direction) =>
  (STRANGE[line.named ? 'named' : 'unnamed'] ?? []).map((event) => JSON.stringify(event))

const { 'an unknown part between texts': content = {} } = CONTENT_FORMS

for (const direction of DIRECTIONS) {
  const { finish, line, caller, forms } = direction
  const [reason = null] = line.plainReasons
  describe(`parts that a protocol does not name: ${direction.name}`, () => {
    if (!finish) {
      for (const shape of SHAPES) {
        it(`events stay where they are (all in the ${shape})`, async () => {
          const scene = await sceneOf(direction)
          const asked = forms === CONTENT_FORMS ? content : { text: 'Hello there' }
          const plain = line.streamed(asked, reason, shape)
          for (let at = 1; at < plain.length; at++) {
            const [first = '', ...others] = strangeOf(direction)
            const strange = [first, ...others]
            const events = [...plain.slice(0, at), ...strange, ...plain.slice(at)]
            const { got } = await scene.play({ content: asked, reason, shape, events })
            assert.deepEqual(dataIn(got.text), events, `behind ${plain[at - 1]}`)
          }
        })
      }
      return
    }

    it('parts are left out, and counted', async () => {
      const scene = await sceneOf(direction)
      for (const shape of [undefined, ...SHAPES]) {
        const { got, entry } = await scene.play({ content, reason, shape })
        assert.equal(caller.view(got.text, shape !== undefined).text, 'Before. After.')
        assert.doesNotMatch(got.text, /mystery|riddle/)
        assert.ok((entry.routing?.attempts[0]?.skipped ?? 0) >= 1, `${shape}`)
      }
    })

    it('events are left out', async () => {
      const scene = await sceneOf(direction)
      const plain = line.streamed({ text: 'Hello there' }, reason, 'deltas')
      for (let at = 1; at < plain.length; at++) {
        const events = [...plain.slice(0, at), ...strangeOf(direction), ...plain.slice(at)]
        const { got } = await scene.play({ content, reason, shape: 'deltas', events })
        assert.equal(caller.view(got.text, true).text, 'Hello there')
        assert.doesNotMatch(got.text, /mystery|riddle/)
      }
    })
  })
}
