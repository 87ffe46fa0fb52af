import { z } from 'zod'
import type { Answer, Endpoint } from './endpoint.ts'

/** A part of the document. */
export type Part = Readonly<Record<string, unknown>>

/** Collects the schemas that endpoints name. */
export type Schemas = Map<string, z.ZodType>

const SECURITY = {
  key: [{ bearerKey: [] }, { apiKeyHeader: [] }],
  admin: [{ adminToken: [] }],
  anyone: [],
} as const

/** Those whose words a schema of JSON has not. */
const PAGING: Readonly<Record<string, Part>> = {
  limit: { $ref: '#/components/parameters/Limit' },
  cursor: { $ref: '#/components/parameters/Cursor' },
}

/** A schema as JSON Schema, as callers write it. What only code can check is left open. */
export function jsonSchemaOf(schema: z.ZodType, io: 'input' | 'output' = 'input'): Part {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}

/** The operation of an endpoint; the schemas of its answers are noted. */
export function describeEndpoint(endpoint: Endpoint, schemas: Schemas): Part {
  const { id, tag, summary, description, opens = 'key', body, answers } = endpoint
  const parameters = parametersOf(endpoint)
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description !== undefined && { description }),
    security: SECURITY[opens],
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: contentOf(body, endpoint.form === true) } }),
    responses: {
      ...Object.fromEntries(answers.map((answer) => [answer.status, describeAnswer(answer, schemas)])),
      ...(opens !== 'anyone' && refusalsOf(endpoint)),
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

function parametersOf({ path, query, once }: Endpoint): Part[] {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => {
    return { name, in: 'path', required: true, schema: { type: 'string' } }
  })
  const members = query ? (jsonSchemaOf(query).properties as Readonly<Record<string, Part>>) : {}
  const inQuery = Object.entries(members).map(
    ([name, schema]) => PAGING[name] ?? { name, in: 'query', required: false, schema },
  )
  return [...inPath, ...inQuery, ...(once ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : [])]
}
