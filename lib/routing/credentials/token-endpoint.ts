import type * as Undici from 'undici'
import { UnsentError } from '../attempt/failure.ts'
import { type ConnectedLine, connectorOf } from '../lines/line-connect.ts'

/** Runs requests to a token endpoint, through the line's proxy, over connections that end with them. */
export async function withLineAgent<T>(
  line: ConnectedLine,
  run: (undici: typeof Undici, dispatcher: Undici.Agent) => Promise<T>,
): Promise<T> {
  const undici = await import('undici')
  const agent = new undici.Agent({ allowH2: false, connect: connectorOf(line, undici.buildConnector, false) })
  try {
    return await run(undici, agent)
  } finally {
    agent.destroy().catch(() => {})
  }
}

/** Describes a failure without what the endpoint or the library says: it may hold the address or a secret. */
export function unreachable(error: unknown): UnsentError {
  if (error instanceof UnsentError) return error
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof UnsentError) return cause
    const { code } = cause as NodeJS.ErrnoException
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,40}$/.test(code))
      return new UnsentError(`the token endpoint cannot be reached (${code})`)
  }
  return new UnsentError('the token endpoint cannot be reached')
}

/** The characters that a header can hold. */
const TOKEN = /^[\x21-\x7e]{1,16384}$/

/** @throws {UnsentError} if an answer holds no token. */
export function tokenIn(value: unknown): string {
  if (typeof value === 'string' && TOKEN.test(value)) return value
  throw new UnsentError('the answer of the token endpoint holds no token')
}
