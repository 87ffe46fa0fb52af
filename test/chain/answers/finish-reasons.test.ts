import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { StopReason } from './content-forms.ts'
import { DIRECTIONS } from './directions.ts'
import { FALLBACK, PRICE, type Scene, sceneOf } from './scene.ts'

/** Reasons that name a fault of the provider. */
const INTERRUPTED = ['error', 'network_error', 'insufficient_system_resource', 'abort', 'interrupted']
const text = { text: 'Hello there' }

const lines = ({ entry }: Awaited<ReturnType<Scene['play']>>) =>
  entry.routing?.attempts.map(({ line, outcome, finish_reason: reason }) => [line, outcome, reason])

for (const direction of DIRECTIONS) {
  const { caller, line } = direction
  describe(`how an answer ends: ${direction.name}`, () => {
    it('an interruption before the first output is an upstream error, and the next line is tried', async () => {
      for (const reason of INTERRUPTED) {
        const scene = await sceneOf(direction)
        for (const shape of [undefined, 'deltas'] as const) {
          const played = await scene.play({ content: {}, reason, shape })
          assert.ok(played.got.text.includes(FALLBACK), played.got.text)
          assert.deepEqual(lines(played), [
            ['line-0', 'upstream_error', 'error'],
            ['line-1', 'completed', undefined],
          ])
          assert.equal(played.entry.billing?.charged, PRICE)
        }
      }
    })

    it('an interruption of a whole answer sends none of it, and the next line is tried', async () => {
      const scene = await sceneOf(direction)
      const played = await scene.play({ content: text, reason: 'network_error', shape: undefined })
      assert.ok(played.got.text.includes(FALLBACK) && !played.got.text.includes(text.text), played.got.text)
      assert.deepEqual(
        lines(played)?.map(([, outcome]) => outcome),
        ['upstream_error', 'completed'],
      )
    })

    it('an interruption after the first output is an error in the stream', async () => {
      const scene = await sceneOf(direction)
      const played = await scene.play({
        content: text,
        reason: 'network_error',
        shape: 'deltas',
        breaks: true,
      })
      assert.equal(played.got.text.includes(FALLBACK), false)
      assert.match(played.got.text, /ended the answer early/)
      assert.deepEqual([played.entry.outcome, played.entry.error_code], ['interrupted', 'upstream_error'])
      assert.deepEqual(lines(played), [['line-0', 'upstream_error', 'error']])
    })

    it('the trace says that an answer was cut, or ended for an unknown reason', async () => {
      const scene = await sceneOf(direction)
      const rows: [reason: StopReason, inTrace: string | undefined][] = [
        [line.plainReasons[0] ?? null, undefined],
        ['model_length', 'length'],
        ['something_new', 'other'],
      ]
      for (const [reason, inTrace] of rows)
        for (const shape of [undefined, 'deltas'] as const) {
          const played = await scene.play({ content: text, reason, shape })
          assert.deepEqual(lines(played), [['line-0', 'completed', inTrace]])
          if (!direction.finish && reason) assert.ok(played.got.text.includes(`"${reason}"`), played.got.text)
        }
    })

    if (caller.path !== '/v1/messages' || !direction.finish) return
    it('the stop sequence that a line reports is one of the caller, or it is not passed on', async () => {
      const scene = await sceneOf(direction)
      const extra = { stop_sequences: ['END'] }
      for (const shape of [undefined, 'deltas'] as const)
        for (const [member, sequence] of [
          ['"stop_reason":"END"', 'END'],
          ['"matched_stop":"END"', 'END'],
          ['"stop_reason":128001', null],
          ['"matched_stop":"</s>"', null],
        ] as const) {
          const alter = (data: string) =>
            data.replace('"finish_reason":"stop"', `"finish_reason":"stop",${member}`)
          const { got } = await scene.play({ content: text, reason: 'stop', shape, extra, alter })
          const reason = sequence === null ? 'end_turn' : 'stop_sequence'
          assert.ok(got.text.includes(`"stop_reason":"${reason}"`), got.text)
          assert.ok(got.text.includes(`"stop_sequence":${JSON.stringify(sequence)}`), got.text)
        }
    })
  })
}
