import type { TestContext } from 'node:test'
import { MemoryTaskStore } from '../../../../lib/endpoints/video/index.ts'
import { MemoryLedger } from '../../../../lib/ledger/index.ts'
import { MemoryCallStore } from '../../../../lib/middleware/call-log/index.ts'
import { MemoryIdempotencyStore } from '../../../../lib/middleware/idempotency/index.ts'
import {
  openDatabase,
  SqlCallStore,
  SqlIdempotencyStore,
  SqlLedger,
  SqlTaskStore,
} from '../../../../lib/stores/sql/index.ts'
import type { TasksUnderTest } from '../../../contracts/task-samples.ts'
import { BACKENDS } from '../../../stores/sql/support/postgres-database.ts'
import { PATIENT } from '../../../stores/sql/support/temporary-database.ts'

/** The stores for tests of video tasks: two handles of one store each, as two processes would have. */
export interface TaskBackend {
  readonly name: string
  readonly skip: string | false
  open(t: TestContext): Promise<TasksUnderTest>
}

const MEMORY: TaskBackend = {
  name: 'memory',
  skip: false,
  async open() {
    const ledger = new MemoryLedger()
    const [claims, calls] = [new MemoryIdempotencyStore(), new MemoryCallStore()]
    const store = new MemoryTaskStore({ money: ledger.holds, claims, calls })
    return { stores: [store, store], ledger, claims, calls, close: async () => {} }
  },
}

export async function openTasks(t: TestContext, url: string): Promise<TasksUnderTest> {
  const handles = [await openDatabase(url, PATIENT), await openDatabase(url, PATIENT)] as const
  const close = async () => {
    for (const db of handles) await db.destroy()
  }
  t.after(close)
  const [one, other] = handles
  return {
    stores: [new SqlTaskStore(one), new SqlTaskStore(other)],
    ledger: new SqlLedger(other),
    claims: new SqlIdempotencyStore(one),
    calls: new SqlCallStore(one),
    close,
  }
}

export const TASK_BACKENDS: readonly TaskBackend[] = [
  MEMORY,
  ...BACKENDS.map(({ name, skip, url }) => ({
    name,
    skip,
    open: async (t: TestContext) => openTasks(t, await url(t)),
  })),
]
