import { z } from 'zod'
import { ENDPOINTS_BY_PROTOCOL, type LineDialect, type PathTemplate } from '../catalog/index.ts'
import type { Parts } from './valid-parts.ts'

const template = z.string().startsWith('/', 'must begin with "/"')
const endpointPath = z.union([template, z.strictObject({ plain: template, stream: template })], {
  error: 'must be a path, or { "plain": path, "stream": path }',
})

/** The members of a line that say how its requests differ from those of its protocol. */
export const dialectMembers = {
  path: z
    .union([template, z.record(z.string(), endpointPath)], {
      error: 'must be a path such as "/deployments/{model}/{endpoint}", or paths by endpoint',
    })
    .optional()
    .describe(
      'The path behind baseUrl: one for all endpoints, or by endpoint, as text or { "plain", "stream" }. {model} and {endpoint} stand for their names.',
    ),
  query: z
    .record(z.string().min(1), z.string())
    .optional()
    .describe('The query of every request, such as api-version. Values may be "env:NAME".'),
  body: z
    .record(z.string().min(1), z.json())
    .optional()
    .describe('Members that every JSON body of a model call gets; null leaves a member out.'),
}

const members = z.strictObject(dialectMembers)
type ParsedDialect = z.output<typeof members>

const PLACEHOLDER = /\{([^{}]*)\}/g
/** The characters that a path may consist of, beside placeholders. */
const PATH = /^(?:[\w.~!$&'()*+,;=:@/-]|%[0-9a-f]{2})*$/i

/** Returns the faults of these members that the schema cannot find. */
export function dialectFaults(
  at: string,
  { path, protocol }: Parts<Pick<ParsedDialect, 'path'>> & { protocol?: LineProtocol | undefined },
): string[] {
  if (path === undefined) return []
  if (typeof path === 'string') return templateFaults(`${at}.path`, path)
  const own = protocol && endpointsWithPath(protocol)
  return Object.entries(path).flatMap(([endpoint, given]) => {
    const place = `${at}.path.${endpoint}`
    if (own && !own.includes(endpoint))
      return [`${place}: no "${protocol}" line has a path of its own for it; it can be ${own.join(', ')}`]
    if (typeof given === 'string') return templateFaults(place, given)
    return Object.entries(given ?? {}).flatMap(([kind, text]) =>
      templateFaults(`${place}.${kind}`, text ?? ''),
    )
  })
}

function templateFaults(place: string, text: string): string[] {
  const unknown = [...text.matchAll(PLACEHOLDER)].filter(
    ([, name]) => name !== 'model' && name !== 'endpoint',
  )
  if (unknown.length > 0) return [`${place}: has ${unknown[0]?.[0]}; it can have {model} and {endpoint}`]
  if (PATH.test(text.replace(PLACEHOLDER, ''))) return []
  return [
    `${place}: must be a path; a query belongs into "query", and other characters must be percent-encoded`,
  ]
}

type LineProtocol = keyof typeof ENDPOINTS_BY_PROTOCOL

/** Tasks keep the paths of their protocol, which continue those of their endpoint. */
const WITH_TASKS: ReadonlySet<string> = new Set(['videos', 'contents/generations/tasks'])

function endpointsWithPath(protocol: LineProtocol): readonly string[] {
  return ENDPOINTS_BY_PROTOCOL[protocol].filter((name) => !WITH_TASKS.has(name))
}

/** Returns how the requests to a line differ from those of its protocol. */
export function dialectOf(
  protocol: LineProtocol,
  { path, query = {}, body = {} }: ParsedDialect,
): LineDialect {
  const params = Object.entries(query).map((pair) => pair.map(encodeURIComponent).join('='))
  const edits = Object.entries(body).map(
    ([name, value]) => [name, value === null ? null : JSON.stringify(value)] as const,
  )
  return {
    ...(path !== undefined && { paths: pathsOf(protocol, path) }),
    ...(params.length > 0 && { query: params.join('&') }),
    ...(edits.length > 0 && { body: Object.fromEntries(edits) }),
  }
}

function pathsOf(protocol: LineProtocol, path: NonNullable<ParsedDialect['path']>) {
  const given =
    typeof path === 'string'
      ? endpointsWithPath(protocol).map((endpoint) => [endpoint, path] as const)
      : Object.entries(path)
  return new Map(
    given.map(([endpoint, template]): [string, PathTemplate] => {
      const named = (text: string): string => text.replaceAll('{endpoint}', endpoint)
      if (typeof template === 'string') return [endpoint, { plain: named(template), stream: named(template) }]
      return [endpoint, { plain: named(template.plain), stream: named(template.stream) }]
    }),
  )
}
