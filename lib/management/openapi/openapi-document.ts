import type { z } from 'zod'
import { ERROR_CODE_NAMES, errorRow } from '../../core/errors/index.ts'
import { providerConstraintSchema } from '../../core/operations/body/provider-constraint.ts'
import type { Operation } from '../../core/operations/index.ts'
import { ADMIN_ENDPOINTS } from '../admin-endpoints.ts'
import {
  CALLER_ENDPOINTS,
  type DocumentedRule,
  modelEndpoint,
  passThroughEndpoints,
} from './caller-endpoints.ts'
import {
  describeEndpoint,
  type Endpoint,
  jsonSchemaOf,
  mountedAt,
  type Part,
  type Schemas,
} from './describe-endpoint.ts'
import { anthropicErrorEnvelope, errorEnvelope } from './error-schemas.ts'
import { describeMessages } from './webhook-messages.ts'

/** Options of {@link openApiDocument}. */
export interface OpenApiOptions {
  /** The version of the gateway. */
  version: string
  /** The endpoints that run a model; `OPERATIONS` has all of them. */
  operations: readonly Operation[]
  /** The pass-through rules of the config. Defaults to none. */
  passThrough?: readonly DocumentedRule[]
  /** Further endpoints, such as those of your own app. Defaults to none. */
  more?: readonly Endpoint[]
  /** Whether an endpoint is described, for an app that serves a part of them. Defaults to all. */
  only?: (endpoint: Endpoint) => boolean
}

/**
 * Returns an OpenAPI 3.1 document of the gateway. Its request schemas are those that validate requests.
 *
 * @example
 * const document = openApiDocument({ version: '1.0.0', operations: OPERATIONS, passThrough: config.passThrough })
 * app.get('/openapi.json', (req, res) => res.json(document))
 */
export function openApiDocument({
  version,
  operations,
  passThrough = [],
  more = [],
  only = () => true,
}: OpenApiOptions): Part {
  const schemas: Schemas = new Map<string, z.ZodType>([
    ['Error', errorEnvelope],
    ['AnthropicError', anthropicErrorEnvelope],
  ])
  const endpoints = [
    ...operations.map(modelEndpoint),
    ...CALLER_ENDPOINTS,
    ...passThroughEndpoints(passThrough),
    ...mountedAt('/admin', { tag: 'Admin', auth: 'admin' }, ADMIN_ENDPOINTS),
    ...more,
  ].filter(only)
  const hasWebhooks = endpoints.some(({ path }) => path === WEBHOOKS_PATH)
  const paths: Record<string, Record<string, Part>> = {}
  for (const endpoint of endpoints) {
    const described = describeEndpoint(endpoint, schemas)
    paths[endpoint.path] = { ...paths[endpoint.path], [endpoint.method]: described }
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'express-model-gateway',
      version,
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    // Relative to the document, wherever a mount or a proxy puts it.
    servers: [{ url: '.' }],
    tags: [...new Set([...endpoints.map(({ tag }) => tag), ...(hasWebhooks ? ['Webhooks'] : [])])].map(
      (name) => ({
        name,
        description: TAGS[name] ?? name,
      }),
    ),
    paths,
    ...(hasWebhooks && { webhooks: describeMessages() }),
    components: {
      schemas: Object.fromEntries(
        [...schemas].map(([name, schema]) => [name, jsonSchemaOf(schema, 'output')]),
      ),
      responses: {
        Error: errorResponse('The error envelope; `error.code` is stable.', 'Error'),
        AnthropicError: errorResponse('The Anthropic-style error envelope.', 'AnthropicError'),
      },
      parameters: PARAMETERS,
      headers: HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  }
}

const WEBHOOKS_PATH = '/admin/webhooks'

const codes = ERROR_CODE_NAMES.map((code) => `\`${code}\` (${errorRow(code).status})`).join(', ')

const DESCRIPTION = `The gateway validates the members that it reads, and passes all others on to the upstream.
Error codes: ${codes}.`

const TAGS: Readonly<Record<string, string>> = {
  'OpenAI-style': 'As the OpenAI API: its SDKs work unchanged.',
  'Anthropic-style': 'As the Anthropic API: its SDKs work unchanged.',
  'Task-style video': 'Video tasks under `/api/v3`.',
  'Calls and models': 'The models that a key may use, its calls, and tickets about them.',
  'Passed on': "Paths of the config's `passThrough`, unread by the gateway.",
  Admin:
    'For operators, on the `ADMIN_PORT` if there is one. Without an `ADMIN_TOKEN`, all paths are `not_found`.',
  Health: 'For balancers and monitors.',
  Webhooks: 'What the gateway sends to the addresses of `/admin/webhooks`.',
}

const PARAMETERS = {
  Limit: {
    name: 'limit',
    in: 'query',
    description: 'The number of rows of a page.',
    schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 },
  },
  Cursor: {
    name: 'cursor',
    in: 'query',
    description: 'The `next_cursor` of the previous page.',
    schema: { type: 'string' },
  },
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description: 'Runs the request once, even if it is repeated within 24 hours.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  },
  Tags: {
    name: 'X-Gateway-Tags',
    in: 'header',
    description: 'Labels of the call in usage, such as `team=search,env=prod`.',
    schema: { type: 'string' },
  },
  Provider: {
    name: 'X-Gateway-Provider',
    in: 'header',
    description: 'Restricts the lines, where the body has no `provider`.',
    content: { 'application/json': { schema: jsonSchemaOf(providerConstraintSchema) } },
  },
  Unsupported: {
    name: 'X-Gateway-Unsupported',
    in: 'header',
    description: 'Whether members that cannot be translated for a line are left out, or the call is refused.',
    schema: { enum: ['refuse', 'drop'] },
  },
}

const HEADERS = {
  RequestId: { description: 'The id of the call in the call log.', schema: { type: 'string' } },
  RetryAfter: {
    description: 'Seconds to wait before a retry; on every 429.',
    schema: { type: 'integer', minimum: 1 },
  },
  ShouldRetry: {
    description: 'Whether to send the same request again.',
    schema: { enum: ['true', 'false'] },
  },
}

const SECURITY_SCHEMES = {
  bearerKey: { type: 'http', scheme: 'bearer', description: 'An API key.' },
  apiKeyHeader: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API key.' },
  adminToken: { type: 'http', scheme: 'bearer', description: "The operators' token." },
}

function errorResponse(description: string, schema: string): Part {
  return {
    description,
    headers: {
      'X-Request-Id': { $ref: '#/components/headers/RequestId' },
      'Retry-After': { $ref: '#/components/headers/RetryAfter' },
      'x-should-retry': { $ref: '#/components/headers/ShouldRetry' },
    },
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } },
  }
}
