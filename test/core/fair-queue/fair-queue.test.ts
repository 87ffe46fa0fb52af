import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { FairQueue, inTurn, surplusOf } from '../../../lib/core/fair-queue/index.ts'

interface Item {
  readonly account: string
  readonly n: number
  readonly bytes: number
}

const account = fc.constantFrom('', 'acme', 'globex', 'initech')
const command = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('add'), account, bytes: fc.nat(30) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('take'), most: fc.nat(6), bytes: fc.nat(80) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('done') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('putBack') }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete'), at: fc.nat(20) }) },
)

const sizeOf = (items: readonly Item[]) => items.length
const bytesOf = (items: readonly Item[]) => items.reduce((sum, { bytes }) => sum + bytes, 0)

/** The same queue as plain lists. It says which accounts may lose an item, where several have the most. */
class Model {
  waiting: Item[] = []
  taken: Item[] = []
  /** The accounts that wait, the one whose turn is next first. */
  turns: string[] = []

  of(name: string): Item[] {
    return this.waiting.filter(({ account }) => account === name)
  }

  add(item: Item): void {
    if (this.of(item.account).length === 0) this.turns.push(item.account)
    this.waiting.push(item)
  }

  remove(item: Item): void {
    this.waiting = this.waiting.filter((other) => other !== item)
    if (this.of(item.account).length === 0) this.turns = this.turns.filter((name) => name !== item.account)
  }

  take(most: number, bytes: number): Item[] {
    const batch: Item[] = []
    for (let name = this.turns[0]; name !== undefined; name = this.turns[0]) {
      const [item] = this.of(name)
      assert.ok(item)
      if (batch.length === most || (batch.length > 0 && bytesOf([...batch, item]) > bytes)) break
      batch.push(item)
      this.remove(item)
      if (this.of(name).length > 0) this.turns = [...this.turns.filter((other) => other !== name), name]
    }
    this.taken.push(...batch)
    return batch
  }

  putBack(): void {
    for (const { account: name } of this.taken) if (!this.turns.includes(name)) this.turns.push(name)
    this.waiting = [...this.taken, ...this.waiting]
    this.taken = []
  }
}

describe('a queue that accounts share', () => {
  it('is bounded, drops the oldest item of the largest account, and serves all accounts in turn', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 120 }),
        fc.array(command, { maxLength: 80 }),
        (maxItems, maxBytes, commands) => {
          const queue = new FairQueue<Item>({ maxItems, maxBytes })
          const model = new Model()
          for (const [n, each] of commands.entries()) {
            if ('account' in each) {
              const item = { account: each.account, n, bytes: each.bytes }
              model.add(item)
              for (const dropped of queue.add(item.account, item, item.bytes)) {
                const all = [...model.waiting, ...model.taken]
                const isTooMany = all.length > maxItems
                assert.ok(isTooMany || bytesOf(all) > maxBytes, 'nothing is dropped while there is room')
                const measure = isTooMany ? sizeOf : bytesOf
                const own = model.of(dropped.account)
                assert.equal(own[0], dropped, 'it is the oldest of its account')
                for (const other of model.turns)
                  assert.ok(
                    measure(model.of(other)) <= measure(own),
                    `${other} has more than ${dropped.account}`,
                  )
                model.remove(dropped)
              }
              const all = [...model.waiting, ...model.taken]
              const isOver = all.length > maxItems || bytesOf(all) > maxBytes
              assert.ok(!isOver || model.waiting.length === 0 || bytesOf(model.waiting) === 0)
            } else if ('most' in each) {
              assert.deepEqual(queue.take(each.most, each.bytes), model.take(each.most, each.bytes))
            } else if ('at' in each) {
              const item = model.waiting[each.at]
              if (item) assert.equal(queue.delete(item.account, item), true)
              if (item) model.remove(item)
              assert.equal(queue.delete('acme', { account: 'acme', n, bytes: 1 }), false)
            } else if (each.do === 'done') {
              queue.done(model.taken)
              model.taken = []
            } else {
              queue.putBack(model.taken)
              model.putBack()
            }
            const all = [...model.waiting, ...model.taken]
            assert.deepEqual(
              [queue.size, queue.bytes, queue.waiting],
              [all.length, bytesOf(all), model.waiting.length],
            )
          }
          queue.putBack(model.taken)
          model.putBack()
          assert.deepEqual(queue.take(Infinity), model.take(Infinity, Infinity))
          assert.equal(queue.clear(), queue.size + model.taken.length)
          assert.deepEqual([queue.size, queue.bytes, queue.waiting], [0, 0, 0])
        },
      ),
      { numRuns: 120 },
    )
  })

  it('keeps the items of all other accounts when one account adds many', () => {
    const queue = new FairQueue<string>({ maxItems: 100 })
    for (let i = 0; i < 10; i++) queue.add('globex', `globex ${i}`)
    let dropped = 0
    for (let i = 0; i < 7000; i++) dropped += queue.add('acme', `acme ${i}`).length
    assert.deepEqual([queue.size, dropped], [100, 6910])
    const first = queue.take(20)
    assert.equal(first.filter((item) => item.startsWith('globex')).length, 10)
  })

  it('adds an item once', () => {
    const queue = new FairQueue<string>({ maxItems: 2 })
    queue.add('acme', 'a')
    queue.add('acme', 'a')
    assert.deepEqual([queue.size, queue.take(9)], [1, ['a']])
  })
})

describe('the removal of surplus items', () => {
  it('leaves the largest accounts equal, and smaller ones unchanged', () => {
    const counts = fc.uniqueArray(fc.tuple(fc.string(), fc.nat(9)), { selector: ([name]) => name })
    fc.assert(
      fc.property(counts, fc.nat(40), (given, most) => {
        const giving = surplusOf(given, most)
        const left = given.map(([name, count]) => ({ name, count, left: count - (giving.get(name) ?? 0) }))
        const all = given.reduce((sum, [, count]) => sum + count, 0)
        assert.equal(
          left.reduce((sum, each) => sum + each.left, 0),
          Math.min(all, most),
        )
        const largest = Math.max(0, ...left.map((each) => each.left))
        for (const each of left)
          assert.ok(each.left === each.count || (each.left >= largest - 1 && each.left >= 0), each.name)
      }),
    )
  })
})

describe('items in turn', () => {
  it('are the same items, in order for each account, with the nth of one account before the n+1st of any other', () => {
    fc.assert(
      fc.property(fc.array(account), (accounts) => {
        const items = accounts.map((name, n) => ({ name, n }))
        const ordered = inTurn(items, ({ name }) => name)
        assert.deepEqual(
          ordered.toSorted((one, other) => one.n - other.n),
          items,
        )
        let round = 0
        const seen = new Map<string, number>()
        let last = new Map<string, number>()
        for (const { name, n } of ordered) {
          const nth = (seen.get(name) ?? 0) + 1
          seen.set(name, nth)
          assert.ok(nth === round || nth === round + 1, 'rounds follow one another')
          round = Math.max(round, nth)
          assert.ok(n > (last.get(name) ?? -1))
          last = last.set(name, n)
        }
      }),
    )
  })
})
