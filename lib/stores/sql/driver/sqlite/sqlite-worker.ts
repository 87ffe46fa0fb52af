import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { SqliteLocalSession } from './sqlite-local-session.ts'
import {
  OPENED,
  type SqliteAnswer,
  type SqliteFault,
  type SqliteRequest,
  type SqliteResponse,
  type SqliteWorkerOptions,
} from './sqlite-protocol.ts'

/*
 * The thread that owns the database. node:sqlite is synchronous: here a slow disk, or the wait for another process's
 * write, holds up the queries behind it, and never the event loop that serves requests. Kysely stays outside: loading it here
 * once more takes longer than opening the file.
 */

const SQLITE_BUSY = 5
const RETRY_MS = 20
const REMOVED =
  'the file of the database was removed or replaced while it was in use: put it back, or restart'
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

function serve(db: DatabaseSync): void {
  const session = new SqliteLocalSession(db, options.maxStatements)
  const opened = fileNumber()
  // A database in memory has no file: both numbers are undefined.
  port.on('message', (request: SqliteRequest) => {
    port.postMessage(answered(session, request, () => fileNumber() === opened))
    if (request.kind === 'close') port.close()
  })
}

/** The number of the file that has the name of the database now; undefined for none. */
function fileNumber(): number | undefined {
  return statSync(options.file, { throwIfNoEntry: false })?.ino
}

/** @param stands whether the database has its name still. In WAL mode SQLite itself writes to a removed file, which is lost. */
function answered(
  session: SqliteLocalSession,
  request: SqliteRequest,
  stands: () => boolean,
): SqliteResponse {
  const { id, kind } = request
  try {
    if ((kind === 'query' || kind === 'write') && !stands()) throw new Error(REMOVED)
    return { id, answer: perform(session, request) }
  } catch (error) {
    return { id, fault: faultOf(error) }
  }
}

function perform(
  session: SqliteLocalSession,
  request: SqliteRequest,
): Extract<SqliteResponse, { answer: unknown }>['answer'] {
  switch (request.kind) {
    case 'query':
      if (request.begin) session.begin(request.begin)
      return session.run(request.sql, request.parameters)
    case 'write':
      return session.write(request.writes)
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
  // A page that many commits write is copied into the database once per this many pages of the log, which has 16 MB
  // then. Each handle has a cache of its own, which many keys fill; the system has the other pages in its memory.
  db.exec(`pragma synchronous = normal; pragma cache_size = -16000; pragma journal_size_limit = 67108864;
    pragma wal_autocheckpoint = 4000`)
  return db
}

/** Enters WAL mode. SQLite does not wait by itself while another process is switching the same file. */
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
