import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { newRequestId } from '../../../lib/core/call/index.ts'
import type { TaskIntent } from '../../../lib/endpoints/video/index.ts'
import { MAX_HOLD_MS, taskIdOf } from '../../../lib/ledger/tasks/task.ts'
import { assertSound, fresh } from '../../contracts/ledger-money.ts'
import { intentOf, leasedOf, type Payer, payer, spentOf } from '../../contracts/task-samples.ts'
import { answered, ScriptedLine } from '../../endpoints/video/support/scripted-line.ts'
import { KeptLog, settlerOn } from '../../endpoints/video/support/settler-run.ts'
import { openTasks } from '../../endpoints/video/support/task-backends.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { startUpstream, type UpstreamScript } from '../../support/scripted-upstream.ts'
import { until, untilAsync } from '../../support/until.ts'

const PROGRAM = fileURLToPath(new URL('./create-process.ts', import.meta.url))
const DAY = 86_400_000

interface Creator {
  /** Has the process create a task; `kill()` ends the process. */
  create(intent: TaskIntent): void
  recorded(): Promise<unknown>
  kill(): Promise<void>
}

function startCreator(t: TestContext, url: string, line: string): Creator {
  const child = spawn(process.execPath, [...process.execArgv, PROGRAM, url, line], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const said = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    create(intent) {
      const json = JSON.stringify(intent, (_name, value: unknown) =>
        typeof value === 'bigint' ? `${value}n` : value,
      )
      child.stdin.write(json)
    },
    recorded: () => said.next(),
    async kill() {
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
}

/** An intent of now, under an Idempotency-Key. */
function keyedIntent(who: Payer): TaskIntent {
  const [createdAt, id] = [Date.now(), fresh('record')]
  const requestId = newRequestId(createdAt)
  const claim = { id, owner: requestId }
  return intentOf(who, {
    id: taskIdOf(requestId),
    requestId,
    createdAt,
    answerBy: createdAt + 30_000,
    claim,
  })
}

for (const { name, skip, url: databaseUrl } of BACKENDS) {
  describe(`a process that is killed on ${name}`, { skip }, () => {
    const opened = async (t: TestContext, script: UpstreamScript) => {
      const url = await databaseUrl(t)
      const tested = await openTasks(t, url)
      const upstream = await startUpstream(script)
      t.after(() => upstream.close())
      const who = await payer(tested, 1000n, 500n)
      return { tested, upstream, who, creator: startCreator(t, url, upstream.url) }
    }

    it('between intent and record leaves a task in doubt, its money held and its key taken', async (t) => {
      const { tested, upstream, who, creator } = await opened(t, () => {})
      const { claims, ledger, stores } = tested
      const [store] = stores
      const intent = keyedIntent(who)
      creator.create(intent)
      await until(() => upstream.requests.length === 1, 'the create is sent')
      await creator.kill()

      assert.equal((await store.find(who.account, intent.id))?.state, 'intended')
      assert.deepEqual(await leasedOf(tested, who), [85n, 85n])
      const again = async (now: number) => {
        const ask = { id: intent.claim?.id ?? '', owner: newRequestId(), fingerprint: 'f' }
        return claims.claim({ ...ask, now, leaseUntil: now + 60_000 })
      }
      const standing = await again(Date.now() + 300 * DAY)
      assert.deepEqual([standing?.owner, standing?.state], [intent.requestId, 'running'])

      // Half a minute later nobody expects an answer any more.
      const late = intent.answerBy
      assert.deepEqual(
        (await store.markUnanswered(late, 10)).map(({ id }) => id),
        [intent.id],
      )
      const unresolved = await store.list({ states: ['unresolved'] }, { order: 'newest', limit: 10 })
      assert.deepEqual(
        unresolved.map(({ id, line }) => [id, line]),
        [[intent.id, 'line-a']],
      )
      assert.deepEqual(await leasedOf(tested, who), [85n, 85n])

      const end = intent.createdAt + MAX_HOLD_MS + 1
      assert.equal((await store.expire(end - MAX_HOLD_MS, end, end + DAY, 10)).length, 1)
      assert.deepEqual(
        [await leasedOf(tested, who), await spentOf(tested, who)],
        [
          [0n, 0n],
          [0n, 0n],
        ],
      )
      assert.equal((await again(end + DAY - 1))?.state, 'completed')
      assert.equal(upstream.requests.length, 1, 'and it was never sent again')
      await assertSound(ledger)
    })

    it('behind the record loses nothing: another settles what it created', async (t) => {
      const { tested, upstream, who, creator } = await opened(t, (res) => void res.end('{"id":"up_1"}'))
      const [store] = tested.stores
      const intent = keyedIntent(who)
      creator.create(intent)
      await creator.recorded()
      await creator.kill()
      const line = new ScriptedLine(() => answered({ state: 'succeeded' }))
      const logger = new KeptLog()
      settlerOn(t, store, line, { logger })
      await untilAsync(async () => (await store.find(who.account, intent.id))?.state === 'succeeded')
      assert.deepEqual(
        [await leasedOf(tested, who), await spentOf(tested, who)],
        [
          [0n, 0n],
          [85n, 85n],
        ],
      )
      assert.deepEqual(logger.about(/nobody knows/), [])
      assert.equal(upstream.requests.length, 1)
      await assertSound(tested.ledger)
    })
  })
}
