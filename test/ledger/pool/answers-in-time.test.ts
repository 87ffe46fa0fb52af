import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Ledger } from '../../../lib/ledger/index.ts'
import { LedgerLate, TimelyLedger } from '../../../lib/ledger/pool/timely-ledger.ts'
import { take } from '../../contracts/ledger-money.ts'
import { turns, VirtualClock } from '../support/virtual-clock.ts'

const CHANGE = take('l', 'account:acme', 5n)
const ANSWER = { moved: 5n, lost: false, open: true, state: undefined }
const OPEN = [{ id: 'l', wallet: 'account:acme', owner: 'p', held: 5n, beats: 1, renewedAt: 0 }]

/** A clock that notes which of its timers keep the process alive, and how many have not been called off. */
class NotingClock extends VirtualClock {
  readonly kept: (boolean | undefined)[] = []
  running = 0

  override after(ms: number, run: () => void, keepsAlive?: boolean): () => void {
    this.kept.push(keepsAlive)
    this.running++
    const callOff = super.after(ms, () => {
      this.running--
      run()
    })
    return () => {
      this.running--
      callOff()
    }
  }
}

/** A ledger in time whose operations end as a test says, and what it was asked. */
function timely(work: (name: string) => unknown, { watches = true } = {}) {
  const clock = new NotingClock()
  const asked: unknown[][] = []
  const took: number[] = []
  const operation =
    (name: string) =>
    (...given: unknown[]) => {
      asked.push([name, ...given])
      return work(name)
    }
  const ledger = {
    ...{ change: operation('change'), renew: operation('renew'), leases: operation('leases') },
    ...{ sweep: operation('sweep'), ...(watches && { watch: operation('watch') }) },
  } as unknown as Ledger
  const inTime = new TimelyLedger(ledger, clock, { answered: (ms) => void took.push(ms) })
  return { clock, asked, took, inTime }
}
type Asks = Record<string, (ledger: TimelyLedger) => Promise<unknown>>

const OPERATIONS: Asks = {
  change: (ledger) => ledger.change('p', [CHANGE]),
  renew: (ledger) => ledger.renew(['l'], 7),
  leases: (ledger) => ledger.leases(),
  watch: (ledger) => ledger.watch('me'),
  sweep: (ledger) => ledger.sweep('l', 3),
}
const GIVEN: Record<string, unknown[]> = {
  change: ['p', [CHANGE]],
  renew: [['l'], 7],
  leases: [],
  watch: ['me'],
  sweep: ['l', 3],
}
const ANSWERS: Record<string, unknown> = {
  change: [ANSWER],
  renew: new Set(['l']),
  leases: OPEN,
  watch: OPEN,
  sweep: true,
}

/** Returns the state of a promise by now. */
async function stateOf(promise: Promise<unknown>): Promise<unknown> {
  let state: unknown = 'waits'
  const note = (end: unknown) => {
    state = end
  }
  promise.then(note, note)
  await turns()
  return state
}

for (const [name, ask] of Object.entries(OPERATIONS))
  describe(`a request of a pool to a ledger by ${name}`, () => {
    it('is passed on unchanged, and returns the answer of the ledger', async () => {
      const { inTime, asked, clock } = timely(async () => ANSWERS[name])
      assert.deepEqual(await ask(inTime), ANSWERS[name])
      assert.deepEqual(asked, [[name, ...(GIVEN[name] ?? [])]])
      assert.equal(clock.running, 0, 'nothing is waited for any more')
    })

    it('fails as the ledger does', async () => {
      const down = new Error('down')
      const { inTime, clock, took } = timely(() => Promise.reject(down))
      await assert.rejects(ask(inTime), down)
      assert.deepEqual([clock.running, took], [0, []])
    })

    it('fails after eight seconds, for which it keeps the process alive, and a later answer is ignored', async () => {
      let answer: (value: unknown) => void = () => {}
      const { inTime, clock, took } = timely(
        () =>
          new Promise((resolve) => {
            answer = resolve
          }),
      )
      const asking = ask(inTime)
      await clock.advance(7999)
      assert.deepEqual([await stateOf(asking), clock.kept], ['waits', [true]])
      await clock.advance(1)
      const late = await stateOf(asking)
      assert.ok(late instanceof LedgerLate)
      assert.deepEqual([late.name, late.message], ['LedgerLate', 'the ledger did not answer in 8000 ms'])
      answer(ANSWERS[name])
      await turns()
      assert.deepEqual(took, [])
    })
  })

describe('the latency of a ledger', () => {
  it('is measured by changes of leases and timed operations, not by background requests', async () => {
    for (const [name, ask] of Object.entries(OPERATIONS)) {
      const world = timely(
        () => new Promise((resolve) => world.clock.after(30, () => resolve(ANSWERS[name]))),
      )
      await world.clock.advance(1000)
      const asking = ask(world.inTime)
      await world.clock.advance(30)
      await asking
      assert.deepEqual([name, world.took], [name, name === 'change' ? [30] : []])
    }
    const { inTime, clock, took } = timely(() => undefined)
    await clock.advance(1000)
    const settling = inTime.timed(new Promise((resolve) => clock.after(20, () => resolve('written'))))
    await clock.advance(20)
    assert.deepEqual([await settling, took], ['written', [20]])
  })
})

describe('a ledger that reports its open leases', () => {
  it('is asked for all of them if it has no watch', async () => {
    const { inTime, asked } = timely(async (name) => ANSWERS[name], { watches: false })
    assert.deepEqual(await inTime.watch('me'), OPEN)
    assert.deepEqual(asked, [['leases']])
  })

  it('may answer a watch by stating that enough other processes watch', async () => {
    const { inTime, asked } = timely(async () => undefined)
    assert.equal(await inTime.watch('me'), undefined)
    assert.deepEqual(asked, [['watch', 'me']])
  })
})

describe('an invalid answer to a change of a lease', () => {
  const answers: Record<string, unknown> = {
    'no list': ANSWER,
    'a list of something else': ['x'],
    'without an amount': [{ ...ANSWER, moved: undefined }],
    'with an amount that is no bigint': [{ ...ANSWER, moved: 5 }],
    'without a word on whether the lease is lost': [{ ...ANSWER, lost: undefined }],
    'without a word on whether it is open': [{ ...ANSWER, open: 'yes' }],
    'of which the second is broken': [ANSWER, { ...ANSWER, moved: '5' }],
    'of which the first is broken': [{ ...ANSWER, moved: null }, ANSWER],
  }
  for (const [name, answer] of Object.entries(answers))
    it(`is a failure: ${name}`, async () => {
      const { inTime } = timely(async () => answer)
      const message = 'the ledger answered a change with something else'
      await assert.rejects(inTime.change('p', [CHANGE]), { name: 'TypeError', message })
    })
})
