import type { CreatedTask, TaskIntent } from '../../../lib/endpoints/video/index.ts'
import { RetryingWriter } from '../../../lib/endpoints/video/tasks/retrying-writer.ts'
import { openDatabase, SqlIdempotencyStore, SqlTaskStore } from '../../../lib/stores/sql/index.ts'
import { created } from '../../contracts/task-samples.ts'

/*
 * A process that creates a video: claims its Idempotency-Key, intends the task, sends the create and records the answer,
 * each time that it is asked to. Says "recorded" behind each.
 */

const [url, line] = process.argv.slice(2) as [string, string]
const db = await openDatabase(url)
const [store, claims, records] = [new SqlTaskStore(db), new SqlIdempotencyStore(db), new RetryingWriter()]

for await (const chunk of process.stdin) {
  const intent = JSON.parse(String(chunk), (name, value: unknown) =>
    typeof value === 'string' && /^\d+n$/.test(value) && name !== 'id' ? BigInt(value.slice(0, -1)) : value,
  ) as TaskIntent
  const { claim } = intent
  if (!claim) throw new Error('a create without a key')
  const now = Date.now()
  await claims.claim({ ...claim, fingerprint: 'f', now, leaseUntil: now + 60_000 })
  await store.intend(intent)
  const answer = (await (await fetch(line, { method: 'POST', body: '{}' })).json()) as { id: string }
  const record: CreatedTask = created({
    upstreamId: answer.id,
    claim: { ...claim, keepUntil: now + 86_400_000 },
  })
  await records.write('created', intent.id, () => store.created(intent.id, record, Date.now()))
  process.stdout.write('recorded\n')
}
