import assert from 'node:assert/strict'
import { it } from 'node:test'
import { chatCompletions } from '../../../lib/core/operations/index.ts'
import { factsInTurns } from '../../../lib/middleware/read-request/facts-in-turns.ts'

const MEBI = 1024 * 1024

/** What is found out about messages of some lengths, and how much was estimated in each turn. */
async function measured(lengths: readonly number[], lag = () => {}) {
  const messages = lengths.map((length) => ({ role: 'user', content: 'x'.repeat(length) }))
  const json = { model: 'chat', messages }
  const turns: number[] = []
  const estimate = (text: string): number => {
    turns[turns.length - 1] = (turns.at(-1) ?? 0) + text.length
    return text.length
  }
  const nextTurn = async () => {
    lag()
    turns.push(0)
  }
  const raw = Buffer.from(JSON.stringify(json))
  const facts = await factsInTurns(chatCompletions, { json, raw }, estimate, nextTurn)
  const atOnce = chatCompletions.facts(json, raw, (text) => text.length)
  return { facts, atOnce, turns }
}

for (const lengths of [
  [5],
  [0, 0, 3],
  [MEBI - 1, 1],
  [MEBI, MEBI],
  [MEBI + 1],
  [3 * MEBI + 7],
  [10, 2 * MEBI, 10, MEBI, 0],
  Array.from({ length: 300 }, (_, i) => 20 * i),
]) {
  it(`the facts of texts of ${lengths.slice(0, 5)} … are the same in turns as at once`, async () => {
    const { facts, atOnce, turns } = await measured(lengths)
    assert.deepEqual(facts, atOnce)
    const total = lengths.reduce((sum, each) => sum + each, 0)
    assert.ok(turns.length >= 1 + Math.ceil(total / MEBI), `${turns}`)
    assert.ok(turns.length <= 2 + lengths.length + Math.ceil(total / MEBI), `${turns}`)
    for (const each of turns) assert.ok(each < 2 * MEBI, `${turns}`)
    assert.equal(turns.at(-1), 0, 'the facts are read in a turn of their own')
  })
}

it('empty texts take turns, too', async () => {
  const { turns } = await measured(Array(150_000).fill(0))
  assert.ok(turns.length > 2, `${turns}`)
})

it('what ends the turns ends the reading', async () => {
  const left = new Error('the caller has left')
  let turns = 0
  const leave = () => {
    if (++turns === 2) throw left
  }
  await assert.rejects(measured([3 * MEBI], leave), left)
  assert.equal(turns, 2)
})
