import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import type { SettlementRow } from './sql-ledger-settle.ts'
import { SqliteLocalSession } from './sqlite-local-session.ts'
import {
  OPENED,
  type SqliteAnswer,
  type SqliteFault,
  type SqliteRequest,
  type SqliteResponse,
  type SqliteWorkerOptions,
} from './sqlite-protocol.ts'
import { Settler } from './sqlite-settler.ts'
import { SqliteStatements } from './sqlite-statements.ts'

/*
 * The thread that owns the database. node:sqlite is synchronous: here a slow disk, or the wait for another process's
 * write, holds up the queries behind it, and never the event loop that serves requests.
 */

const SQLITE_BUSY = 5
const RETRY_MS = 20
const NOTHING: SqliteAnswer = { rows: [], changes: undefined }

if (!parentPort) throw new Error('this file runs as a worker thread')
const port = parentPort
const options = workerData as SqliteWorkerOptions

try {
  serve(open(options))
  port.postMessage({ id: OPENED, answer: NOTHING } satisfies SqliteResponse)
} catch (error) {
  port.postMessage({ id: OPENED, fault: faultOf(error) } satisfies SqliteResponse)
}

/** One piece of work after the other: a settlement is several statements, which nothing may come between. */
function serve(db: DatabaseSync): void {
  const session = new SqliteLocalSession(db, new SqliteStatements(db, options.maxStatements))
  const settler = new Settler(session)
  const waiting: SqliteRequest[] = []
  let busy = false

  port.on('message', (request: SqliteRequest) => {
    waiting.push(request)
    if (!busy) workOff()
  })

  function workOff(): void {
    busy = true
    for (let request = waiting.shift(); request; request = waiting.shift()) {
      if (request.kind === 'settle') {
        void settle(request.id, request.settlements).then(workOff)
        return
      }
      answer(request.id, request)
    }
    busy = false
  }

  function answer(id: number, request: Exclude<SqliteRequest, { kind: 'settle' }>): void {
    let response: SqliteResponse
    try {
      response = { id, answer: perform(session, request) }
    } catch (error) {
      response = { id, fault: faultOf(error) }
    }
    port.postMessage(response)
    if (request.kind === 'close') port.close()
  }

  async function settle(id: number, settlements: readonly SettlementRow[]): Promise<void> {
    try {
      port.postMessage({ id, answer: await settler.settle(settlements) } satisfies SqliteResponse)
    } catch (error) {
      port.postMessage({ id, fault: faultOf(error) } satisfies SqliteResponse)
    }
  }
}

function perform(
  session: SqliteLocalSession,
  request: Exclude<SqliteRequest, { kind: 'settle' }>,
): SqliteAnswer {
  switch (request.kind) {
    case 'query':
      if (request.begin) session.begin(request.begin)
      return session.run(request.sql, request.parameters)
    case 'rollback':
      session.undo()
      return NOTHING
    case 'close':
      session.shut()
      return NOTHING
  }
}

function open({ file, readOnly, busyTimeoutMs }: SqliteWorkerOptions): DatabaseSync {
  const db = new DatabaseSync(file, { readOnly, timeout: busyTimeoutMs })
  if (!readOnly) enterWal(db, busyTimeoutMs)
  db.exec('pragma synchronous = normal; pragma cache_size = -32000; pragma journal_size_limit = 67108864')
  return db
}

/** SQLite does not wait by itself while another process is switching the same file. */
function enterWal(db: DatabaseSync, busyTimeoutMs: number): void {
  const deadline = Date.now() + busyTimeoutMs
  for (;;) {
    try {
      db.exec('pragma journal_mode = wal')
      return
    } catch (error) {
      const errcode = faultOf(error).errcode ?? 0
      if ((errcode & 0xff) !== SQLITE_BUSY || Date.now() > deadline) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS)
    }
  }
}

function faultOf(error: unknown): SqliteFault {
  const { message, code, errcode } = error as { message?: unknown; code?: unknown; errcode?: unknown }
  return {
    ...(error instanceof RangeError && { name: error.name }),
    message: typeof message === 'string' ? message : String(error),
    code: typeof code === 'string' ? code : 'ERR_SQLITE_WORKER',
    errcode: typeof errcode === 'number' ? errcode : undefined,
  }
}
