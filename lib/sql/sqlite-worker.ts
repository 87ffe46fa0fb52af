import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import {
  OPENED,
  type SqliteFault,
  type SqliteRequest,
  type SqliteResponse,
  type SqliteWorkerOptions,
} from './sqlite-protocol.ts'
import { SqliteStatements } from './sqlite-statements.ts'

/*
 * The thread that owns the database. node:sqlite is synchronous: here a slow disk, or the wait for another process's
 * write, holds up the queries behind it, and never the event loop that serves requests.
 */

const SQLITE_BUSY = 5
const RETRY_MS = 20

if (!parentPort) throw new Error('this file runs as a worker thread')
const port = parentPort
const options = workerData as SqliteWorkerOptions

try {
  serve(open(options))
  port.postMessage({ id: OPENED, answer: { rows: [], changes: undefined } } satisfies SqliteResponse)
} catch (error) {
  port.postMessage({ id: OPENED, fault: faultOf(error) } satisfies SqliteResponse)
}

function serve(db: DatabaseSync): void {
  const statements = new SqliteStatements(db, options.maxStatements)
  port.on('message', (request: SqliteRequest) => {
    let response: SqliteResponse
    try {
      response = { id: request.id, answer: perform(db, statements, request) }
    } catch (error) {
      response = { id: request.id, fault: faultOf(error) }
    }
    port.postMessage(response)
    if (request.kind === 'close') port.close()
  })
}

function perform(db: DatabaseSync, statements: SqliteStatements, request: SqliteRequest) {
  if (request.kind === 'query') {
    if (request.begin) db.exec(request.begin)
    return statements.run(request.sql, request.parameters)
  }
  // A full disk, among others, rolls back by itself; a second rollback would be an error.
  if (db.isTransaction) db.exec('rollback')
  if (request.kind === 'close') db.close()
  return { rows: [], changes: undefined }
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
    message: typeof message === 'string' ? message : String(error),
    code: typeof code === 'string' ? code : 'ERR_SQLITE_WORKER',
    errcode: typeof errcode === 'number' ? errcode : undefined,
  }
}
