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

/** Thrown if a statement failed, or the database is closed or cannot be opened. */
export class SqliteError extends Error {
  override readonly name = 'SqliteError'
  /** `ERR_SQLITE_ERROR` for an error of SQLite; `ERR_SQLITE_CLOSED` and `ERR_SQLITE_WORKER` if there is no database. */
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

/** Sends statements to a database in a worker thread, which starts with the first one unless {@link SqliteClient.open} starts it. */
export class SqliteClient {
  readonly #options: SqliteWorkerOptions
  #worker: Worker | undefined
  readonly #waiting = new Map<number, Waiting>()
  #lastId = OPENED
  #gone: SqliteError | undefined
  /** A transaction that the next statement opens, which saves a message. */
  #begin: 'begin' | 'begin immediate' | undefined

  constructor(options: SqliteWorkerOptions) {
    this.#options = options
  }

  /** @throws {SqliteError} if the file cannot be opened as a database. */
  static async open(options: SqliteWorkerOptions): Promise<SqliteClient> {
    const client = new SqliteClient(options)
    client.#start()
    await client.#expect(OPENED)
    return client
  }

  #start(): Worker {
    // The package says where the worker is: its source here, its build elsewhere.
    const worker = new Worker(new URL(import.meta.resolve('#sqlite-worker')), {
      workerData: this.#options,
      name: 'sqlite',
    })
    worker.on('message', (response: SqliteResponse) => this.#settle(response))
    worker.on('error', (error: Error) => this.#lose(worker, error.message))
    worker.on('exit', (code) => this.#lose(worker, `exit code ${code}`))
    this.#worker = worker
    return worker
  }

  /** Statements that have no answer yet. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Runs one statement, after all earlier ones. */
  query(sql: string, parameters: readonly unknown[]): Promise<SqliteAnswer> {
    const begin = this.#begin
    this.#begin = undefined
    return this.#ask<SqliteAnswer>({ kind: 'query', begin, sql, parameters })
  }

  /**
   * Writes rows in a transaction of its own; writes none if one cannot be written. Resolves to whether they were
   * written.
   */
  write(writes: readonly SqliteWrite[]): Promise<boolean> {
    return this.#ask<boolean>({ kind: 'write', writes })
  }

  /** Opens a transaction with the next statement. */
  begin(how: 'begin' | 'begin immediate'): void {
    this.#begin = how
  }

  /** Ends the transaction. A transaction without a statement was never opened. */
  async commit(): Promise<void> {
    if (this.#begin) this.#begin = undefined
    else await this.query('commit', [])
  }

  /** Rolls back the open transaction, if there is one. */
  async rollback(): Promise<void> {
    if (this.#begin) this.#begin = undefined
    else await this.#ask({ kind: 'rollback' })
  }

  /** Closes the database after all earlier statements. An open transaction is rolled back. */
  async close(): Promise<void> {
    if (this.#gone) return
    const closing = this.#worker && this.#ask({ kind: 'close' })
    this.#gone = new SqliteError({
      message: 'the database is closed',
      code: 'ERR_SQLITE_CLOSED',
      errcode: undefined,
    })
    await closing
    await this.#worker?.terminate()
  }

  #ask<T extends Answer>(work: Work): Promise<T> {
    if (this.#gone) return Promise.reject(this.#gone)
    const id = ++this.#lastId
    const worker = this.#worker ?? this.#start()
    const answer = this.#expect<T>(id)
    try {
      worker.postMessage({ ...work, id })
    } catch (error) {
      this.#take(id)?.reject(error as Error)
    }
    return answer
  }

  /** The thread keeps the process alive only while an answer is awaited. */
  #expect<T extends Answer>(id: number): Promise<T> {
    if (this.#waiting.size === 0) this.#worker?.ref()
    // The answer has the type that belongs to the kind of the request.
    return new Promise((resolve, reject) =>
      this.#waiting.set(id, { resolve: resolve as (answer: Answer) => void, reject }),
    )
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (this.#waiting.size === 0) this.#worker?.unref()
    return waiting
  }

  #settle(response: SqliteResponse): void {
    if (response.id === OPENED && 'fault' in response) {
      this.#notOpened(errorOf(response.fault))
      return
    }
    const waiting = this.#take(response.id)
    if ('answer' in response) waiting?.resolve(response.answer)
    else waiting?.reject(errorOf(response.fault))
  }

  /** The next statement tries again. */
  #notOpened(error: Error): void {
    this.#rejectAll(error)
    this.#worker = undefined
  }

  #lose(worker: Worker, why: string): void {
    // The end of a thread that could not open its file is known.
    if (worker !== this.#worker) return
    const message = `the database thread has ended (${why})`
    this.#gone ??= new SqliteError({ message, code: 'ERR_SQLITE_WORKER', errcode: undefined })
    this.#rejectAll(this.#gone)
  }

  #rejectAll(error: Error): void {
    for (const id of [...this.#waiting.keys()]) this.#take(id)?.reject(error)
  }
}

function errorOf(fault: SqliteFault): Error {
  return fault.name === 'RangeError' ? new RangeError(fault.message) : new SqliteError(fault)
}
