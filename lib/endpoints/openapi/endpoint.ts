import type { z } from 'zod'
import type { ProtocolName } from '../../core/protocols/index.ts'

/** What an answer holds: JSON of a schema, or bytes of a media type. */
export interface Answer {
  readonly status: number
  readonly description: string
  /** The name of its schema among the components, and the schema. Absent: JSON as the upstream sends it. */
  readonly schema?: readonly [name: string, schema: z.ZodType]
  /** Media types beside, or in place of, JSON. */
  readonly media?: readonly string[]
}

/** One operation of the gateway, as the document tells of it. */
export interface Endpoint {
  readonly id: string
  readonly method: 'get' | 'post' | 'patch' | 'delete' | 'put'
  /** With `{name}` for what varies. */
  readonly path: string
  readonly tag: string
  readonly summary: string
  readonly description?: string
  /** What opens it: an API key, the operators' token, or nothing. Defaults to an API key. */
  readonly opens?: 'key' | 'admin' | 'anyone'
  /** Which protocol words its errors. Defaults to OpenAI-style. */
  readonly protocol?: ProtocolName
  readonly query?: z.ZodObject
  readonly body?: z.ZodType
  /** Whether the body may be a form too. */
  readonly form?: boolean
  /** Whether it runs once by `Idempotency-Key`. */
  readonly once?: boolean
  readonly answers: readonly Answer[]
}
