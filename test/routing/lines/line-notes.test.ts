import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import { loadConfig } from '../../../lib/core/config/index.ts'
import {
  type LineNote,
  LineRegistry,
  LineSharing,
  type LineStateStore,
} from '../../../lib/middleware/route/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { MemoryLineStateStore } from '../../support/memory-line-state-store.ts'

const MODELS = { m: 'u', n: 'u' }
const [LINE] = loadConfig({
  models: Object.keys(MODELS).map((id) => ({ id, kind: 'chat' })),
  lines: [
    {
      ...{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://localhost/v1', models: MODELS },
      circuit: { minimumCalls: 4, resetMs: 20_000 },
    },
  ],
}).catalog.lines
const ROUNDS = 4

/** One process, as far as its lines are concerned, which exchanges when the test says so. */
async function processOn(t: Pick<TestContext, 'after'>, store: LineStateStore) {
  assert.ok(LINE)
  const lines = new LineRegistry()
  const logger = recordingLogger()
  let exchanges = 0
  const counting: LineStateStore = {
    exchange: (notes) => {
      exchanges++
      return store.exchange(notes)
    },
    watch: (changed) => store.watch(changed),
  }
  const sharing = new LineSharing({ store: counting, lines, logger, pollMs: 4000 })
  t.after(async () => {
    sharing.close()
    await lines.close()
  })
  const state = lines.stateOf(LINE)
  return {
    sharing,
    logger,
    exchanges: () => exchanges,
    /** Has attempts of two accounts fail, as often as opens the circuit of a model. */
    opens: (model: keyof typeof MODELS) => {
      for (const account of ['x', 'x', 'x', 'x', 'y', 'y', 'y', 'y'])
        state.modelState(model).circuit.fail(account)
    },
    rests: (model: keyof typeof MODELS) => state.modelState(model).rest(15_000),
    isOpen: (model: keyof typeof MODELS) => !state.modelState(model).circuit.admits('z'),
    restMs: (model: keyof typeof MODELS) => state.modelState(model).restMs,
  }
}
type Process = Awaited<ReturnType<typeof processOn>>

async function exchangeAll(...processes: Process[]): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) for (const { sharing } of processes) await sharing.refresh()
}

/** Ends what a run of a property has started. */
async function inTurn(run: (t: Pick<TestContext, 'after'>) => Promise<void>): Promise<void> {
  const ends: (() => unknown)[] = []
  try {
    await run({ after: (end: unknown) => void ends.push(end as () => unknown) })
  } finally {
    for (const end of ends.reverse()) await end()
  }
}

/** The notes that one process leaves of a circuit that is open, and of a rest. */
async function realNotes(t: Pick<TestContext, 'after'>): Promise<LineNote[]> {
  const store = new MemoryLineStateStore()
  const left = new Map<string, LineNote>()
  const process = await processOn(t, {
    exchange: (notes) => {
      for (const note of notes) left.set(note.id, note)
      return store.exchange(notes)
    },
    watch: () => () => {},
  })
  process.opens('m')
  process.rests('m')
  await exchangeAll(process)
  return [...left.values()]
}

/** Values of another version: members that are gone, of another kind or new, other forms, and no form at all. */
function otherForms(value: string): fc.Arbitrary<string> {
  const any = fc.oneof(fc.string(), fc.json(), fc.constantFrom('', 'null', '[]', '{}', '-1', 'NaN', '{"'))
  const cut = fc.nat(value.length).map((at) => value.slice(0, at))
  if (!value.startsWith('{'))
    return fc.oneof(
      any,
      cut,
      fc.string().map((text) => text + value),
    )
  const members = Object.entries(JSON.parse(value) as object)
  const changed = fc
    .tuple(
      fc.subarray(members),
      fc.dictionary(fc.constantFrom(...members.map(([name]) => name)), fc.jsonValue()),
    )
    .map(([kept, others]) => JSON.stringify({ ...Object.fromEntries(kept), ...others }))
  const more = fc
    .dictionary(fc.string(), fc.jsonValue())
    .map((others) => JSON.stringify({ ...others, ...JSON.parse(value) }))
  return fc.oneof(any, cut, changed, more)
}

describe('notes that a process of another version left', () => {
  it('are skipped, with any content, and all others are shared', async (t) => {
    const real = await realNotes(t)
    assert.deepEqual([...new Set(real.map(({ id }) => id.split(' ')[0]))].sort(), ['open', 'rest'])
    const notes = fc
      .tuple(...real.map((note) => otherForms(note.value).map((value) => ({ ...note, value }))))
      .chain((all) => fc.subarray(all, { minLength: 1 }))
    const ids = fc.array(fc.tuple(fc.string(), fc.string()), { maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(notes, ids, async (left, strange) => {
        await inTurn(async (run) => {
          const store = new MemoryLineStateStore()
          const [one, other] = [
            await processOn(run, store),
            await processOn(run, new MemoryLineStateStore(store)),
          ]
          let lifeMs = 60_000
          const leave = () => {
            lifeMs += 1000
            const longer = { lifeMs, when: 'longer' } as const
            return store.exchange([
              ...left.map((note) => ({ ...note, ...longer })),
              ...strange.map(([id, value]) => ({ id, value, ...longer })),
            ])
          }
          await leave()
          await exchangeAll(one, other)
          one.opens('n')
          one.rests('n')
          await exchangeAll(one, other)
          assert.equal(other.isOpen('n'), true, 'a circuit that opens')
          assert.ok(other.restMs('n') > 14_000, 'a rest that begins')
          await leave()
          await exchangeAll(one, other)
          assert.equal(one.isOpen('n') && other.isOpen('n'), true, 'what was found stays')
          assert.deepEqual([...one.logger.lines, ...other.logger.lines], [])
        })
      }),
      { numRuns: 100 },
    )
  })

  it('leave each version with the findings of its own processes, without conflicts', async (t) => {
    const board = new MemoryLineStateStore()
    const handle = () => new MemoryLineStateStore(board)
    const [old, older] = [await processOn(t, handle()), await processOn(t, handle())]
    const [next, newer] = [await processOn(t, inNewForm(handle())), await processOn(t, inNewForm(handle()))]
    const all = [old, older, next, newer]
    next.opens('m')
    next.rests('m')
    await exchangeAll(...all)
    assert.deepEqual([newer.isOpen('m'), old.isOpen('m')], [true, false])
    assert.deepEqual([newer.restMs('m') > 0, old.restMs('m')], [true, 0])
    old.opens('m')
    old.opens('n')
    old.rests('n')
    await exchangeAll(...all)
    assert.deepEqual(
      all.map((each) => [each.isOpen('m'), each.isOpen('n'), each.restMs('n') > 0]),
      [
        [true, true, true],
        [true, true, true],
        [true, false, false],
        [true, false, false],
      ],
    )
    // In a quarrel, each would correct the others for ever.
    for (let quietMs = 0, before = '', waited = 0; quietMs < 300; waited += 100) {
      assert.ok(waited < 10_000, 'nobody has anything to tell any more')
      await new Promise((resolve) => setTimeout(resolve, 100))
      const now = all.map(({ exchanges }) => exchanges()).join()
      quietMs = now === before ? quietMs + 100 : 0
      before = now
    }
    assert.deepEqual(
      all.flatMap(({ logger }) => logger.lines),
      [],
    )
  })
})

/** A store as a process sees it whose notes have another form. */
function inNewForm(store: LineStateStore): LineStateStore {
  const written = (value: string) => (value.startsWith('old:') ? value.slice('old:'.length) : `new:${value}`)
  const read = (value: string) => (value.startsWith('new:') ? value.slice('new:'.length) : `old:${value}`)
  return {
    async exchange(notes) {
      const standing = await store.exchange(
        notes.map(({ base, ...note }) => ({
          ...note,
          value: written(note.value),
          ...(base !== undefined && { base: written(base) }),
        })),
      )
      return new Map(Array.from(standing, ([id, note]) => [id, { ...note, value: read(note.value) }]))
    },
    watch: (changed) => store.watch(changed),
  }
}
