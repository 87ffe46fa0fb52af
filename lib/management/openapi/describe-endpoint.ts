import { z } from 'zod'
import type { Answer, EndpointDescription } from '../../core/json-api/index.ts'
import type { ProtocolName } from '../../core/protocols/index.ts'

/** One operation in the document. */
export interface Endpoint extends EndpointDescription {
  readonly tag: string
  readonly description?: string
  /** The credential: an API key, the operators' token, or none. Defaults to an API key. */
  readonly auth?: 'key' | 'admin' | 'none'
  /** The protocol of its errors. Defaults to OpenAI-style. */
  readonly protocol?: ProtocolName
  /** Whether the body may also be a form. */
  readonly form?: boolean
  /** Whether it runs a model: it then accepts an `Idempotency-Key` and the headers `X-Gateway-…`. */
  readonly runsModel?: boolean
}

/** Returns endpoints as the document has them. */
export function mountedAt(
  mount: string,
  common: Pick<Endpoint, 'tag' | 'auth'>,
  endpoints: readonly EndpointDescription[],
): Endpoint[] {
  return endpoints.map(({ id, method, path, summary, query, body, answers }) => ({
    ...{ id, method, path: mount + path, summary, ...common },
    ...(query && { query }),
    ...(body && { body }),
    answers,
  }))
}

/** An object of the document. */
export type Part = Readonly<Record<string, unknown>>

/** The named schemas of the document. */
export type Schemas = Map<string, z.ZodType>

const SECURITY = {
  key: [{ bearerKey: [] }, { apiKeyHeader: [] }],
  admin: [{ adminToken: [] }],
  none: [],
} as const

/** The query parameters whose form JSON Schema cannot describe. */
const PAGING: Readonly<Record<string, Part>> = {
  limit: { $ref: '#/components/parameters/Limit' },
  cursor: { $ref: '#/components/parameters/Cursor' },
}

/** The headers that a request to a model may have. */
const MODEL_HEADERS = ['IdempotencyKey', 'Tags', 'Provider', 'Unsupported'] as const

/** Converts a schema to JSON Schema, without the rules that only code can check. */
export function jsonSchemaOf(schema: z.ZodType, io: 'input' | 'output' = 'input'): Part {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}

/** Returns the operation of an endpoint, and adds the schemas of its answers to `schemas`. */
export function describeEndpoint(endpoint: Endpoint, schemas: Schemas): Part {
  const { id, tag, summary, description, auth = 'key', body, answers } = endpoint
  const parameters = parametersOf(endpoint)
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    security: SECURITY[auth],
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: !body.safeParse(undefined).success,
        content: contentOf(body, endpoint.form === true),
      },
    }),
    responses: {
      ...Object.fromEntries(answers.map((answer) => [answer.status, describeAnswer(answer, schemas)])),
      ...(auth !== 'none' && refusalsOf(endpoint)),
    },
  }
}

function refusalsOf({ protocol }: Endpoint): Part {
  const refusal = { $ref: `#/components/responses/${protocol === 'anthropic' ? 'AnthropicError' : 'Error'}` }
  return { '4XX': refusal, '5XX': refusal }
}

function contentOf(schema: z.ZodType, form: boolean): Part {
  const media = { schema: jsonSchemaOf(schema) }
  return { 'application/json': media, ...(form && { 'multipart/form-data': media }) }
}

function describeAnswer(
  { description, schema, media = ['application/json'] }: Answer,
  schemas: Schemas,
): Part {
  if (schema) schemas.set(...schema)
  const json = schema ? { $ref: `#/components/schemas/${schema[0]}` } : { type: 'object' }
  return {
    description,
    headers: { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } },
    content: Object.fromEntries(
      media.map((type) => [type, type === 'application/json' ? { schema: json } : { schema: BYTES }]),
    ),
  }
}

const BYTES = { type: 'string' }

function parametersOf({ path, query, runsModel }: Endpoint): Part[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => {
    return { name, in: 'path', required: true, schema: { type: 'string' } }
  })
  const members = query ? (jsonSchemaOf(query).properties as Readonly<Record<string, Part>>) : {}
  const inQuery = Object.entries(members).map(([name, schema]) => {
    // A limit that describes itself is not that of other lists.
    const shared = schema.description === undefined ? PAGING[name] : undefined
    return shared ?? { name, in: 'query', required: false, schema }
  })
  const inHeaders = runsModel
    ? MODEL_HEADERS.map((name) => ({ $ref: `#/components/parameters/${name}` }))
    : []
  return [...inPath, ...inQuery, ...inHeaders]
}
