import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { KeyRecord } from '../../../lib/middleware/authenticate/index.ts'
import type { BudgetsTable } from '../../../lib/stores/sql/ledger/ledger-tables.ts'
import type { HomeKey } from '../../../lib/stores/sql/regions/mirror-rows.ts'
import { RegionalKeys } from '../../../lib/stores/sql/regions/regional-keys.ts'

/** A key at home: its id is that of its account, too. */
const keyOf = (id: string, secret: string, previous: string | null = null) =>
  ({ key: { id, secret_hash: secret, previous_hash: previous }, account: { id } }) as unknown as HomeKey
const recordOf = (id: string) => ({ id, account: { id } }) as unknown as KeyRecord

/** Lets turns of the event loop pass: the clock stands still. */
async function turnsUntil(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition() && turns < 100; turns++) await new Promise(setImmediate)
}

/** Two other regions, whose answers and copies the test holds. */
function opened(t: TestContext) {
  const clock = { now: 1000 }
  t.mock.method(performance, 'now', () => clock.now)
  /** What this region has, by secret; and the homes of accounts. */
  const here = new Map<string, KeyRecord>()
  const homes = new Map<string, string>()
  const log: string[] = []
  const world = { copies: true }
  const regionOf = (name: string) => {
    const region = {
      name,
      away: false,
      has: [] as HomeKey[],
      budgets: [{ id: `budget of ${name}` }] as unknown as BudgetsTable[],
      fault: undefined as Error | undefined,
      questions: [] as number[],
      answer: undefined as Promise<void> | undefined,
    }
    const exchange = {
      name,
      get away() {
        return region.away
      },
      ask: <T>(question: () => Promise<T>) => question(),
    }
    const store = {
      async keysBySecret(hashes: readonly string[]) {
        region.questions.push(hashes.length)
        await region.answer
        if (region.fault) throw region.fault
        return region.has.filter(
          ({ key }) => hashes.includes(key.secret_hash) || hashes.includes(key.previous_hash ?? ''),
        )
      },
      budgetsBySecret: async () => region.budgets,
    }
    return { region, exchange, store }
  }
  const [eu, asia] = [regionOf('eu'), regionOf('asia')]
  const uses: string[] = []
  const keys = new RegionalKeys({
    keys: {
      find: async (hash) => here.get(hash),
      findAll: async (hashes) =>
        new Map(
          hashes.flatMap((hash) => {
            const found = here.get(hash)
            return found ? [[hash, found] as const] : []
          }),
        ),
    },
    mirrors: {
      async copy(home, copied, budgets) {
        log.push(`copy ${home} ${copied.map(({ key }) => key.id)} ${budgets?.map(({ id }) => id)}`)
        if (!world.copies) return []
        for (const { key } of copied) here.set(key.secret_hash, recordOf(key.id))
        return copied
      },
      async homesOf(accounts) {
        log.push(`homes of ${accounts}`)
        return homes
      },
    },
    regions: [eu, asia],
    onUse: (ids) => void uses.push(...ids),
    onCopy: async () => void log.push('copied'),
  })
  return { keys, here, homes, clock, eu: eu.region, asia: asia.region, log, uses, world }
}

describe('a key that this region has', () => {
  it('of an account that is at home here is found, and nobody is asked', async (t) => {
    const { keys, here, eu, asia, log, uses } = opened(t)
    here.set('s', recordOf('own'))
    for (let i = 0; i < 2; i++) assert.equal((await keys.find('s'))?.id, 'own')
    assert.deepEqual([log, uses, eu.questions, asia.questions], [['homes of own'], [], [], []])
  })

  it('as a copy is confirmed at its home alone, when it was not used for 30 seconds', async (t) => {
    const { keys, here, homes, clock, eu, asia, log, uses } = opened(t)
    here.set('s', recordOf('k'))
    homes.set('k', 'eu')
    eu.has = [keyOf('k', 's')]
    assert.equal((await keys.find('s'))?.id, 'k')
    const once = ['homes of k', 'copy eu k budget of eu', 'copied']
    assert.deepEqual([log, eu.questions, asia.questions, uses], [once, [1], [], ['k']])
    for (let i = 0; i < 3; i++) {
      clock.now += 29_999
      assert.equal((await keys.find('s'))?.id, 'k')
    }
    assert.deepEqual([eu.questions, uses.length], [[1], 4])
    clock.now += 30_000
    assert.equal((await keys.find('s'))?.id, 'k')
    assert.deepEqual([eu.questions, log.length], [[1, 1], 5])
  })

  it('as a copy is not found when its home has it no more', async (t) => {
    const { keys, here, homes, eu, log } = opened(t)
    here.set('s', recordOf('k'))
    homes.set('k', 'eu')
    assert.equal(await keys.find('s'), undefined)
    assert.deepEqual([eu.questions, log], [[1], ['homes of k']])
  })

  for (const [what, home, change] of [
    ['is away', 'eu', { away: true }],
    ['does not answer', 'eu', { fault: new Error('timed out') }],
    ['is not known', 'mars', {}],
  ] as const)
    it(`as a copy is found as it is while its home ${what}`, async (t) => {
      const { keys, here, homes, eu, asia, log } = opened(t)
      here.set('s', recordOf('k'))
      homes.set('k', home)
      Object.assign(eu, change)
      assert.equal((await keys.find('s'))?.id, 'k')
      assert.deepEqual([asia.questions, log], [[], ['homes of k']])
    })

  it('is found among others, and noted as used if it is a copy', async (t) => {
    const { keys, here, homes, eu, log, uses } = opened(t)
    for (const id of ['own', 'k']) here.set(`s-${id}`, recordOf(id))
    homes.set('k', 'eu')
    const found = await keys.findAll(['s-own', 's-k', 's-none'])
    assert.deepEqual(
      [...found].map(([hash, { id }]) => [hash, id]),
      [
        ['s-own', 'own'],
        ['s-k', 'k'],
      ],
    )
    assert.deepEqual([log, uses], [['homes of own,k'], ['k']])
    await keys.find('s-k')
    assert.deepEqual(eu.questions, [], 'it was used a moment ago')
  })

  it('is known as a copy while others are found with it, however many there were', async (t) => {
    const { keys, here, homes, uses } = opened(t)
    const others = Array.from({ length: 60_000 }, (_, i) => `other-${i}`)
    for (const id of ['k', ...others]) here.set(`s-${id}`, recordOf(id))
    homes.set('k', 'eu')
    await keys.findAll(['s-k'])
    for (let i = 0; i < others.length; i += 1000)
      await keys.findAll(['s-k', ...others.slice(i, i + 1000).map((id) => `s-${id}`)])
    assert.deepEqual(uses, new Array(61).fill('k'))
  })
})

describe('a key that this region does not have', () => {
  it('is copied from the region that has it, before it is used', async (t) => {
    const { keys, eu, asia, log, uses } = opened(t)
    asia.has = [keyOf('k', 's')]
    assert.equal((await keys.find('s'))?.id, 'k')
    assert.deepEqual([eu.questions, asia.questions], [[1], [1]])
    assert.deepEqual([log, uses], [['copy asia k budget of asia', 'copied'], ['k']])
    assert.equal((await keys.find('s'))?.id, 'k')
    assert.deepEqual([eu.questions, asia.questions, log.length], [[1], [1], 2], 'its home is known')
  })

  it('is found where one region does not answer and another has it', async (t) => {
    const { keys, eu, asia } = opened(t)
    eu.fault = new Error('timed out')
    asia.has = [keyOf('k', 's')]
    assert.equal((await keys.find('s'))?.id, 'k')
  })

  it('is not known to be nobody’s while a region does not answer', async (t) => {
    const { keys, eu, asia } = opened(t)
    assert.equal(await keys.find('s'), undefined)
    asia.fault = new Error('timed out')
    await assert.rejects(keys.find('s'), (error) => error === asia.fault)
    eu.away = true
    asia.fault = undefined
    await assert.rejects(keys.find('s'), /region eu is away/)
  })

  it('is not found if it may not be copied, which nobody is told of', async (t) => {
    const { keys, eu, asia, log, uses, world } = opened(t)
    world.copies = false
    eu.has = [keyOf('k', 's')]
    asia.has = [keyOf('l', 's')]
    assert.equal(await keys.find('s'), undefined)
    assert.deepEqual([log, uses], [['copy eu k budget of eu', 'copy asia l budget of asia'], []])
  })

  it('is the one that has the secret now, not one that had it before', async (t) => {
    for (const reversed of [false, true]) {
      const { keys, eu, log } = opened(t)
      eu.has = [keyOf('now', 's'), keyOf('before', 't', 's')]
      if (reversed) eu.has.reverse()
      assert.equal((await keys.find('s'))?.id, 'now')
      assert.equal(log[0], 'copy eu now budget of eu')
      t.mock.restoreAll()
    }
  })

  it('is asked for with all others of its turn, once, and no second question before an answer', async (t) => {
    const { keys, eu } = opened(t)
    const first = Promise.withResolvers<void>()
    eu.answer = first.promise
    const asked = ['a', 'b', 'a', 'a'].map((hash) => keys.find(hash))
    await turnsUntil(() => eu.questions.length === 1)
    assert.deepEqual(eu.questions, [2])
    const later = Array.from({ length: 1001 }, (_, i) => keys.find(`later ${i}`))
    await new Promise(setImmediate)
    assert.deepEqual(eu.questions, [2])
    eu.has = [keyOf('k', 'a'), keyOf('l', 'later 1000')]
    first.resolve()
    assert.deepEqual(
      (await Promise.all(asked)).map((found) => found?.id),
      ['k', undefined, 'k', 'k'],
    )
    const found = await Promise.all(later)
    assert.deepEqual(
      found.flatMap((each, i) => (each ? [[i, each.id]] : [])),
      [[1000, 'l']],
    )
    assert.deepEqual(eu.questions, [2, 500, 500, 1])
  })

  it('is refused while 5000 others wait for an answer, and not when they have it', async (t) => {
    const { keys, eu, asia } = opened(t)
    const held = Promise.withResolvers<void>()
    eu.answer = held.promise
    const asking = keys.find('first')
    await turnsUntil(() => eu.questions.length === 1)
    const waiting = Array.from({ length: 5000 }, (_, i) => keys.find(`s${i}`))
    await new Promise(setImmediate)
    await assert.rejects(keys.find('one more'), /region eu is asked for too many keys/)
    held.resolve()
    assert.deepEqual(new Set(await Promise.all([asking, ...waiting])), new Set([undefined]))
    assert.equal(await keys.find('one more'), undefined)
    assert.ok(Math.max(...eu.questions, ...asia.questions) <= 500)
  })
})
