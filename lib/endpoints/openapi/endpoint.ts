import type { z } from 'zod'
import type { ProtocolName } from '../../core/protocols/index.ts'

/** The content of an answer: JSON of a schema, or bytes of a media type. */
export interface Answer {
  readonly status: number
  readonly description: string
  /** The name of its schema in the document, and the schema. Absent: the upstream's JSON. */
  readonly schema?: readonly [name: string, schema: z.ZodType]
  /** The media types. Defaults to JSON. */
  readonly media?: readonly string[]
}

/** One operation in the document. */
export interface Endpoint {
  readonly id: string
  readonly method: 'get' | 'post' | 'patch' | 'delete' | 'put'
  /** The path, with its parameters as `{name}`. */
  readonly path: string
  readonly tag: string
  readonly summary: string
  readonly description?: string
  /** The credential: an API key, the operators' token, or none. Defaults to an API key. */
  readonly auth?: 'key' | 'admin' | 'none'
  /** The protocol of its errors. Defaults to OpenAI-style. */
  readonly protocol?: ProtocolName
  readonly query?: z.ZodObject
  readonly body?: z.ZodType
  /** Whether the body may also be a form. */
  readonly form?: boolean
  /** Whether it runs a model: it then accepts an `Idempotency-Key` and the headers `X-Gateway-…`. */
  readonly runsModel?: boolean
  readonly answers: readonly Answer[]
}

export function endpoint(
  method: Endpoint['method'],
  path: string,
  id: string,
  more: Omit<Endpoint, 'method' | 'path' | 'id'>,
): Endpoint {
  return { id, method, path, ...more }
}

export const ADMIN = { tag: 'Admin', auth: 'admin' } as const

export function adminEndpoint(
  method: Endpoint['method'],
  path: `/admin/${string}`,
  id: string,
  more: Pick<Endpoint, 'summary' | 'query' | 'body' | 'answers'>,
): Endpoint {
  return endpoint(method, path, id, { ...ADMIN, ...more })
}

/** Returns the answers of an endpoint that has one, with a named schema. */
export function answersWith(name: string, schema: z.ZodType, status = 200): readonly Answer[] {
  return [{ status, description: name, schema: [name, schema] }]
}
