import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Call } from '../../../lib/core/call/index.ts'
import { AnswerKeeping } from '../../../lib/middleware/route/attempt/answer-keeping.ts'

const RESPONSE = { kind: 'response', id: 'resp_1' }
const FILE = { kind: 'file', id: 'file_1' }

/** The keeping of an answer of one line, and what it has noted. */
function keeping(members: object = {}, keeps: () => Promise<void> | undefined = () => undefined) {
  const noted: unknown[] = []
  const call = {
    request: { estimatedInputTokens: 40 },
    usage: { inputTokens: 50, outputTokens: 7 },
    keepAnswer(answer: unknown) {
      noted.push(answer)
      return keeps()
    },
    ...members,
  } as unknown as Call
  return { kept: new AnswerKeeping(call, 'line-0'), noted }
}

it('what a line keeps is noted with what it takes: at the head as estimated, at the end as counted', () => {
  const { kept, noted } = keeping()
  assert.equal(kept.beforeHead([RESPONSE], 9), undefined)
  assert.equal(kept.beforeEnd([RESPONSE]), undefined)
  assert.deepEqual(noted, [
    { made: [RESPONSE], line: 'line-0', tokens: 49 },
    { made: [RESPONSE], line: 'line-0', tokens: 57 },
  ])
  const unknown = keeping({ request: null, usage: null })
  unknown.kept.beforeHead([RESPONSE], 9)
  unknown.kept.beforeEnd([RESPONSE])
  assert.deepEqual(unknown.noted, [
    { made: [RESPONSE], line: 'line-0', tokens: 9 },
    { made: [RESPONSE], line: 'line-0', tokens: 0 },
  ])
})

it('the head waits for that, and the end where something came behind the head', async () => {
  const storing = Promise.resolve()
  const { kept } = keeping({}, () => storing)
  assert.equal(kept.beforeHead([RESPONSE], 0), storing)
  assert.equal(kept.beforeEnd([RESPONSE]), undefined, 'it is known')
  assert.equal(kept.beforeEnd([RESPONSE, FILE]), storing)
  const headless = keeping({}, () => storing)
  assert.equal(headless.kept.beforeEnd([RESPONSE]), storing)
  await storing
})

it('an end that need not wait does not fail either', async () => {
  const { kept } = keeping({}, () => Promise.reject(new Error('the store is gone')))
  await assert.rejects(kept.beforeHead([RESPONSE], 0) ?? assert.fail('it waits'), /gone/)
  assert.equal(kept.beforeEnd([RESPONSE]), undefined)
  await new Promise((resolve) => setImmediate(resolve))
  await assert.rejects(kept.beforeEnd([RESPONSE, FILE]) ?? assert.fail('it waits'), /gone/)
})

it('nothing is noted of a call whose answers nobody keeps', () => {
  const { kept } = keeping({ keepAnswer: null })
  assert.equal(kept.beforeHead([RESPONSE], 0), undefined)
  assert.equal(kept.beforeEnd([RESPONSE, FILE]), undefined)
})
