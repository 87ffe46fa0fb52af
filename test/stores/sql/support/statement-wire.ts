import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { CleanUp } from '../../../support/clean-up.ts'

/** The codes with which Postgres and distributed databases undo a transaction because of a concurrent one. */
const CODES = ['40001', '40P01'] as const
const IDLE = 'I'.charCodeAt(0)
/** Postgres's code for a portal that does not exist. */
const NO_PORTAL = Buffer.from('34000')
/** Transactions of a connection that fail one after the other. A transaction is repeated more often. */
const MOST_AT_ONCE = 4
/** Each statement fails once with each code, and then at times. */
const THEN_EVERY = 29

/** The settings of a session, which are no part of a transaction. */
const SETTINGS = /default_transaction_isolation/
const NEVER_FAILS = /^(begin|start transaction|rollback|savepoint|select 1$)/i

/** Whether a statement does not fail for this reason. */
export function mayNotFail(text: string): boolean {
  return SETTINGS.test(text) || NEVER_FAILS.test(text)
}

/** The results of the statements of a text. */
export interface Statements {
  runs: number
  failures: number
}

/** The statements that have been sent, by their texts. */
export type Sent = Map<string, Statements>

/** How a wire changes what it carries. */
export interface StatementWireOptions {
  /** Has every transaction be serializable, and statements fail. Defaults to false. */
  readonly conflicts?: boolean
}

/**
 * Stands between a process and its Postgres, and takes down each statement that is sent.
 *
 * With `conflicts` each statement, reads and commits included, fails as one of a transaction that conflicts with another one. The
 * server itself fails it, so it also knows that the transaction has failed.
 *
 * @returns the URL to use in place of the given one.
 */
export async function statementWire(
  cleanUp: CleanUp,
  url: string,
  sent: Sent,
  { conflicts = false }: StatementWireOptions = {},
): Promise<string> {
  const proxy = createServer((near) => {
    const far = connect(Number(new URL(url).port), '127.0.0.1')
    const session = new Session(sent, conflicts)
    near.setNoDelay()
    far.setNoDelay()
    framed(near, true, (frame) => far.write(session.asked(frame)))
    framed(far, false, (frame) => near.write(session.answered(frame)))
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  cleanUp.after(() => proxy.close())
  const through = new URL(url)
  through.port = `${(proxy.address() as AddressInfo).port}`
  return through.href
}

/** Passes on whole messages. The first of a client has no type. */
function framed(socket: Socket, startsUntyped: boolean, take: (frame: Buffer) => void): void {
  let rest = Buffer.alloc(0)
  let typeBytes = startsUntyped ? 0 : 1
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= typeBytes + 4) {
      const length = typeBytes + rest.readUInt32BE(typeBytes)
      if (rest.length < length) return
      take(rest.subarray(0, length))
      rest = rest.subarray(length)
      typeBytes = 1
    }
  })
}

/** The statements of one connection. */
class Session {
  readonly #sent: Sent
  readonly #conflicts: boolean
  /** The texts of prepared statements and of portals, by their names. */
  readonly #prepared = new Map<string, string>()
  readonly #portals = new Map<string, string>()
  /** The code of the failure that is under way. */
  #failing: string | undefined
  /** Whether the server ignores what comes before the next end of a round trip. */
  #isSkipping = false
  #failedAtOnce = 0
  /** Whether a statement of the present transaction has failed. */
  #hasFailed = false

  constructor(sent: Sent, conflicts: boolean) {
    this.#sent = sent
    this.#conflicts = conflicts
  }

  /** Returns what is sent in place of a message of the client. */
  asked(frame: Buffer): Buffer {
    const type = String.fromCharCode(frame[0] ?? 0)
    const [first, second] = textsOf(frame)
    switch (type) {
      case 'P':
        this.#prepared.set(first, second)
        return frame
      case 'B':
        this.#portals.set(first, this.#prepared.get(second) ?? '')
        return frame
      case 'E':
        return this.#fails(this.#portals.get(first) ?? '') ? messageOf('E', 'no such portal\0', 4) : frame
      case 'S':
        this.#isSkipping = false
        return frame
      case 'Q':
        return this.#simple(frame, first)
      default:
        return frame
    }
  }

  #simple(frame: Buffer, text: string): Buffer {
    if (this.#conflicts && SETTINGS.test(text))
      return messageOf('Q', `${text.replace('read committed', 'serializable')}\0`)
    if (!this.#fails(text)) return frame
    this.#isSkipping = false
    return messageOf(
      'Q',
      `do $$ begin raise exception 'failed by the test' using errcode = '34000'; end $$\0`,
    )
  }

  /** Returns what is sent in place of a message of the server. */
  answered(frame: Buffer): Buffer {
    const type = String.fromCharCode(frame[0] ?? 0)
    if (type === 'E' && this.#failing !== undefined) {
      const at = frame.indexOf(NO_PORTAL)
      if (at > 0) frame.write(this.#failing, at)
    }
    if (type === 'Z') {
      this.#failing = undefined
      // The server is idle behind the end of a transaction.
      if (frame[5] === IDLE) {
        if (!this.#hasFailed) this.#failedAtOnce = 0
        this.#hasFailed = false
      }
    }
    return frame
  }

  #fails(text: string): boolean {
    if (text === '' || this.#isSkipping) return false
    const statements = this.#sent.get(text) ?? { runs: 0, failures: 0 }
    this.#sent.set(text, statements)
    statements.runs++
    if (!this.#conflicts || mayNotFail(text)) return false
    const isDue = statements.failures < CODES.length || statements.runs % THEN_EVERY === 0
    if (!isDue || this.#failedAtOnce === MOST_AT_ONCE || this.#failing !== undefined) return false
    this.#failing = CODES[statements.failures % CODES.length]
    this.#isSkipping = true
    this.#failedAtOnce++
    this.#hasFailed = true
    statements.failures++
    return true
  }
}

/** The first two texts of a message. */
function textsOf(frame: Buffer): [string, string] {
  const end = frame.indexOf(0, 5)
  if (end < 0) return ['', '']
  const next = frame.indexOf(0, end + 1)
  return [frame.toString('utf8', 5, end), next < 0 ? '' : frame.toString('utf8', end + 1, next)]
}

function messageOf(type: string, text: string, padding = 0): Buffer {
  const body = Buffer.from(text)
  const message = Buffer.alloc(5 + body.length + padding)
  message.write(type, 0)
  message.writeUInt32BE(message.length - 1, 1)
  body.copy(message, 5)
  return message
}
