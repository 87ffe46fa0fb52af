import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { LineRegistry, LineSwitches } from '../../../lib/middleware/route/index.ts'
import { eventually, recordingLogger } from '../../support/app-server.ts'

const { catalog } = loadConfig({
  models: [{ id: 'm', kind: 'chat' }],
  lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://localhost/v1', models: { m: 'm' } }],
})
const [line] = catalog.lines
assert.ok(line)

let switches: LineSwitches | undefined
let lines: LineRegistry
afterEach(async () => {
  switches?.close()
  await lines.close()
})

const isOn = () => lines.status(line).enabled
/** How long the model rests. */
const restMs = () => lines.status(line).rest_ms
const noLifts = async () => new Map<string, number>()

describe('the switches of lines', () => {
  it('are read repeatedly, and apply to lines created later', async () => {
    lines = new LineRegistry()
    const kept = new Map([['l', false]])
    switches = new LineSwitches({ store: { all: async () => kept, lifts: noLifts }, lines, pollMs: 1 })
    await switches.refresh()
    assert.equal(isOn(), false, 'made after the answer')
    kept.delete('l')
    await eventually(isOn, 'the line as configured')
  })

  it('stay as they are while the store is away, which is logged once', async () => {
    lines = new LineRegistry()
    const logger = recordingLogger()
    let away = false
    let asked = 0
    const all = async () => {
      asked++
      if (away) throw new Error('connection refused')
      return new Map([['l', false]])
    }
    switches = new LineSwitches({ store: { all, lifts: noLifts }, lines, pollMs: 1, logger })
    await switches.refresh()
    away = true
    const before = asked
    await eventually(() => asked > before + 5, 'some polls')
    assert.equal(isOn(), false)
    assert.deepEqual(
      logger.lines.map(({ message }) => message),
      ['store is away'],
    )
    away = false
    await eventually(() => logger.lines.at(-1)?.message === 'store is back', 'the end of the outage')
  })

  it('are read one at a time, so that no older result arrives last', async () => {
    lines = new LineRegistry()
    const answers: ((switches: Map<string, boolean>) => void)[] = []
    const all = () => new Promise<Map<string, boolean>>((resolve) => answers.push(resolve))
    switches = new LineSwitches({ store: { all, lifts: noLifts }, lines, pollMs: 4000 })
    const first = switches.refresh()
    await eventually(() => answers.length === 1, 'the first read')
    const later = [switches.refresh(), switches.refresh()]
    answers[0]?.(new Map())
    await first
    assert.equal(isOn(), true)
    await eventually(() => answers.length === 2, 'one read for both that came later')
    answers[1]?.(new Map([['l', false]]))
    await Promise.all(later)
    assert.equal(isOn(), false)
    assert.equal(answers.length, 2)
  })

  it('lift rests once for each report of the store, and of no other line', async () => {
    lines = new LineRegistry()
    const lifts = new Map([['other', 1]])
    switches = new LineSwitches({
      store: { all: async () => new Map(), lifts: async () => new Map(lifts) },
      lines,
      pollMs: 4000,
    })
    await switches.refresh()
    const rest = () => lines.stateOf(line).modelState('m').rest(20_000)
    for (const times of [1, 2]) {
      rest()
      lifts.set('other', 1 + times)
      await switches.refresh()
      assert.ok(restMs() > 0, 'nobody has lifted it')
      lifts.set('l', times)
      await switches.refresh()
      assert.equal(restMs(), 0)
      rest()
      await switches.refresh()
      assert.ok(restMs() > 0, 'a later rest is not lifted')
    }
  })

  it('must reach every process within 5 s', () => {
    lines = new LineRegistry()
    const store = { all: async () => new Map<string, boolean>(), lifts: noLifts }
    assert.throws(
      () => new LineSwitches({ store: { all: store.all } as never, lines }),
      /LineSwitches: "store"/,
    )
    for (const pollMs of [0, 4001, Number.NaN])
      assert.throws(() => new LineSwitches({ store, lines, pollMs }), /LineSwitches: "pollMs"/)
  })
})
