import { Worker } from 'node:worker_threads'
import {
  OPENED,
  type SqliteAnswer,
  type SqliteFault,
  type SqliteRequest,
  type SqliteResponse,
  type SqliteWorkerOptions,
  type SqliteWrite,
} from './sqlite-protocol.ts'

/** A statement that failed, or a database that is not there (any more). */
export class SqliteError extends Error {
  override readonly name = 'SqliteError'
  /** `ERR_SQLITE_ERROR` for what SQLite itself refused; `ERR_SQLITE_CLOSED` and `ERR_SQLITE_WORKER` without a database. */
  readonly code: string
  /** SQLite's extended result code, such as 2067 for a broken unique constraint. */
  readonly errcode: number | undefined

  constructor(fault: SqliteFault) {
    super(fault.message)
    this.code = fault.code
    this.errcode = fault.errcode
  }
}

type Answer = Extract<SqliteResponse, { answer: unknown }>['answer']

interface Waiting {
  resolve(answer: Answer): void
  reject(error: Error): void
}

type Work<T = SqliteRequest> = T extends SqliteRequest ? Omit<T, 'id'> : never

/** This file's own ending tells whether it runs from source or from the built package. */
const WORKER = import.meta.url.endsWith('.ts')
  ? new URL('./sqlite-worker.ts', import.meta.url)
  : new URL('./sqlite-worker.js', import.meta.url)

/** The caller's end of a database that lives in a worker thread. */
export class SqliteClient {
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  #lastId = OPENED
  #gone: SqliteError | undefined
  /** A transaction that is to be opened, by the statement that comes next: a message less for each. */
  #begin: 'begin' | 'begin immediate' | undefined

  private constructor(options: SqliteWorkerOptions) {
    this.#worker = new Worker(WORKER, { workerData: options, name: 'sqlite' })
    this.#worker.on('message', (response: SqliteResponse) => this.#settle(response))
    this.#worker.on('error', (error: Error) => this.#lose(error.message))
    this.#worker.on('exit', (code) => this.#lose(`exit code ${code}`))
  }

  /** @throws {SqliteError} when the file cannot be opened as a database. */
  static async open(options: SqliteWorkerOptions): Promise<SqliteClient> {
    const client = new SqliteClient(options)
    await client.#expect(OPENED)
    return client
  }

  /** Runs one statement, behind those asked for before. */
  query(sql: string, parameters: readonly unknown[]): Promise<SqliteAnswer> {
    const begin = this.#begin
    this.#begin = undefined
    return this.#ask<SqliteAnswer>({ kind: 'query', begin, sql, parameters })
  }

  /** Writes rows in a transaction of its own, all or, where one cannot be written, none; resolves to whether it did. */
  write(writes: readonly SqliteWrite[]): Promise<boolean> {
    return this.#ask<boolean>({ kind: 'write', writes })
  }

  /** Opens a transaction with the statement that comes next. */
  begin(how: 'begin' | 'begin immediate'): void {
    this.#begin = how
  }

  /** Ends the transaction. One in which nothing was asked has never been opened. */
  async commit(): Promise<void> {
    if (this.#begin) this.#begin = undefined
    else await this.query('commit', [])
  }

  /** Undoes the transaction that is open, if one is. */
  async rollback(): Promise<void> {
    if (this.#begin) this.#begin = undefined
    else await this.#ask({ kind: 'rollback' })
  }

  /** Closes the database behind the statements asked for before; an open transaction is undone. */
  async close(): Promise<void> {
    if (this.#gone) return
    const closing = this.#ask({ kind: 'close' })
    this.#gone = new SqliteError({
      message: 'the database is closed',
      code: 'ERR_SQLITE_CLOSED',
      errcode: undefined,
    })
    await closing
    await this.#worker.terminate()
  }

  #ask<T extends Answer>(work: Work): Promise<T> {
    if (this.#gone) return Promise.reject(this.#gone)
    const id = ++this.#lastId
    const answer = this.#expect<T>(id)
    try {
      this.#worker.postMessage({ ...work, id })
    } catch (error) {
      this.#take(id)?.reject(error as Error)
    }
    return answer
  }

  /** The thread keeps the process alive only while somebody waits for an answer. */
  #expect<T extends Answer>(id: number): Promise<T> {
    if (this.#waiting.size === 0) this.#worker.ref()
    // The thread answers each kind of work in its own way.
    return new Promise((resolve, reject) =>
      this.#waiting.set(id, { resolve: resolve as (answer: Answer) => void, reject }),
    )
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (this.#waiting.size === 0) this.#worker.unref()
    return waiting
  }

  #settle(response: SqliteResponse): void {
    const waiting = this.#take(response.id)
    if ('answer' in response) waiting?.resolve(response.answer)
    else waiting?.reject(errorOf(response.fault))
  }

  #lose(why: string): void {
    const message = `the database thread has ended (${why})`
    this.#gone ??= new SqliteError({ message, code: 'ERR_SQLITE_WORKER', errcode: undefined })
    for (const id of [...this.#waiting.keys()]) this.#take(id)?.reject(this.#gone)
  }
}

function errorOf(fault: SqliteFault): Error {
  return fault.name === 'RangeError' ? new RangeError(fault.message) : new SqliteError(fault)
}
