import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { responses } from '../../../../lib/core/operations/index.ts'
import { messageItem, responseBody, responseEvents } from '../../../support/responses-upstream.ts'
import { JSON_TYPE, routedCall, STREAM } from '../support/routed-calls.ts'

const ANSWER = JSON.stringify(responseBody([messageItem('Hi')]))
const EVENTS = responseEvents(['Hi', ' there'])
const settled = () => new Promise((resolve) => setImmediate(resolve))

/** A call whose answer the line keeps, and what is noted of that. */
function keptCall(stream: boolean, keeps: () => Promise<void> | undefined) {
  const made = routedCall({ operation: responses as never, members: { stream } })
  const noted: [string, number][] = []
  made.call.keepAnswer = ({ made: things, line, tokens }) => {
    for (const { kind } of things) noted.push([`${kind} on ${line}`, tokens])
    return keeps()
  }
  made.send()
  return { ...made, noted, finish: () => made.finished }
}

describe('an answer that its line keeps', () => {
  it('goes out once that is noted', async () => {
    const keeping = Promise.withResolvers<void>()
    const { answer, over, finish, log, noted, endings } = keptCall(false, () => keeping.promise)
    await answer(200, JSON_TYPE, ANSWER)
    over()
    await settled()
    assert.deepEqual([log, endings], [[], []])
    assert.match(String(noted), /^response on line-1,\d+,item on line-1,\d+$/)
    keeping.resolve()
    assert.equal(await finish(), 'done')
    assert.deepEqual([log, endings.length], [[`end ${ANSWER}`], 1])
  })

  it('neither goes out nor is charged where it cannot be noted', async () => {
    const { answer, over, finish, log, endings, call } = keptCall(false, () =>
      Promise.reject(new Error('gone')),
    )
    await answer(200, JSON_TYPE, ANSWER)
    over()
    assert.equal(String(await finish()), 'Error: gone')
    assert.deepEqual([log, endings, call.usage], [[], [], null])
  })

  it('goes out at once where stored objects are not tracked', async () => {
    const made = keptCall(false, () => assert.fail('nobody asks'))
    made.call.keepAnswer = null
    await made.answer(200, JSON_TYPE, ANSWER)
    made.over()
    assert.equal(await made.finish(), 'done')
    assert.deepEqual(made.log, [`end ${ANSWER}`])
  })
})

describe('a stream that its line keeps', () => {
  it('begins once that is noted, and its end waits for nothing more', async () => {
    const keeping = Promise.withResolvers<void>()
    const { answer, more, over, finish, log, noted } = keptCall(true, () => keeping.promise)
    await answer(200, STREAM, ...EVENTS.slice(0, -1))
    await more(...EVENTS.slice(-1))
    over()
    await settled()
    assert.ok(!log.some((line) => /^head|^write|^end/.test(line)), String(log))
    keeping.resolve()
    assert.equal(await finish(), 'done')
    const sent = log.filter((line) => /^head|^write|^end/.test(line))
    assert.equal(sent[0], 'head 200')
    assert.match(sent.join(''), /Hi[\s\S]*end [\s\S]*response\.completed/)
    assert.equal(noted.length, 4, 'the response and its item, at the head and at the end')
    assert.ok((noted[0]?.[1] ?? 0) > 5, 'its input, and the first of its output')
  })

  it('is abandoned, and its usage kept, where that cannot be noted', async () => {
    const { answer, finish, log, call, aborted } = keptCall(true, () => Promise.reject(new Error('gone')))
    await answer(200, STREAM, ...EVENTS.slice(0, -1))
    await settled()
    assert.equal(String(await finish()), 'Error: gone')
    assert.ok(!log.some((line) => /^head|^write|^end/.test(line)), String(log))
    assert.equal(aborted.length, 1)
    assert.equal(call.usage, null, 'nothing was sent')
  })
})
