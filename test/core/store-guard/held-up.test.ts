import assert from 'node:assert/strict'
import { stat } from 'node:fs/promises'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreAway, StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { recordingLogger } from '../../support/app-server.ts'

it('an answer that arrived while the process was busy is not late', async () => {
  const logger = recordingLogger()
  const guard = new StoreGuard({ name: 'store', logger, timeoutMs: 30 })
  const answer = guard.run(() => stat(import.meta.filename))
  const busyUntil = performance.now() + 60
  while (performance.now() < busyUntil);
  assert.ok((await answer).isFile())
  assert.deepEqual(logger.lines, [])
})

it('an answer that does not arrive in time is late', async () => {
  const logger = recordingLogger()
  const guard = new StoreGuard({ name: 'store', logger, timeoutMs: 30 })
  await assert.rejects(
    guard.run(() => sleep(60_000, undefined, { ref: false })),
    StoreAway,
  )
  assert.deepEqual(
    logger.lines.map(({ message }) => message),
    ['store is away'],
  )
})

it('the time limit keeps the process alive for operations without an answer, and for no other reason', async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  const guard = new StoreGuard({ name: 'store', logger: recordingLogger(), timeoutMs: 600 })
  for (const operation of ['run', 'retry', 'insist'] as const) {
    let answer = (): void => {}
    const answered = guard[operation](() => new Promise<void>((resolve) => (answer = resolve)))
    const other = guard[operation](async () => {})
    await other
    assert.equal(timers(), before + 1, `${operation}: one has no answer`)
    answer()
    await answered
    assert.equal(timers(), before, `${operation}: all have one`)
    await assert.rejects(
      guard.retry(() => Promise.reject(new Error('no'))),
      StoreAway,
    )
    assert.equal(timers(), before, `${operation}: one has failed`)
  }
  await assert.rejects(
    guard.retry(() => new Promise(() => {})),
    StoreAway,
  )
  assert.equal(timers(), before)
})
