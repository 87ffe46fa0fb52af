import { GatewayError } from '../../../core/errors/index.ts'
import { isJsonObject, type JsonObject } from '../../../core/json/index.ts'

/** The query of a list of resources. */
export interface ListQuery {
  readonly limit: number
  readonly order: 'newest' | 'oldest'
  /** The resource at which the page begins or ends; undefined for the first page. */
  readonly cursor: { readonly id: string; readonly param: string } | undefined
  /** Whether the page is the one before the cursor. */
  readonly backwards: boolean
  /** Members that a resource must have, by the parameter that names them. */
  readonly filters: readonly (readonly [param: string, value: string])[]
  /** The other parameters, for the requests about each resource: empty, or a query with its `?`. */
  readonly passedOn: string
}

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/** OpenAI, Anthropic and Google have different names for the same parameter. */
const LIMITS: ReadonlySet<string> = new Set(['limit', 'pageSize'])
const FORWARD: ReadonlySet<string> = new Set(['after', 'after_id', 'page', 'pageToken'])
const BACKWARD: ReadonlySet<string> = new Set(['before', 'before_id'])
const FILTER = /^(?:model|purpose)$|^metadata\[[^[\]]{1,100}\]$/

/** Whether a parameter of a list names the resource where a page begins or ends. */
export function isCursor(param: string): boolean {
  return FORWARD.has(param) || BACKWARD.has(param)
}

/**
 * Reads the query of a list.
 *
 * @throws {GatewayError} `invalid_request` with the invalid parameter as `param`.
 */
export function readListQuery(query: URLSearchParams): ListQuery {
  let limit = DEFAULT_LIMIT
  let order: ListQuery['order'] = 'newest'
  let cursor: ListQuery['cursor']
  const filters: [string, string][] = []
  const passedOn = new URLSearchParams()
  for (const [param, value] of query) {
    if (LIMITS.has(param)) limit = limitOf(param, value)
    else if (param === 'order') order = orderOf(value)
    else if (FILTER.test(param)) filters.push([param, value])
    else if (!isCursor(param)) passedOn.append(param, value)
    else if (value !== '') {
      if (cursor) throw invalid(param, 'must be the only one that says where the page begins')
      cursor = { id: value, param }
    }
  }
  return {
    limit,
    order,
    cursor,
    backwards: cursor !== undefined && BACKWARD.has(cursor.param),
    filters,
    passedOn: passedOn.size > 0 ? `?${passedOn}` : '',
  }
}

/** Whether a resource has the members that a list is narrowed to. */
export function matches(resource: JsonObject, filters: ListQuery['filters']): boolean {
  return filters.every(([param, value]) => {
    const [name = '', key] = param.split(/[[\]]/)
    const member = resource[name]
    const found = key === undefined ? member : isJsonObject(member) ? member[key] : undefined
    return found === value
  })
}

function limitOf(param: string, value: string): number {
  const limit = /^\d{1,6}$/.test(value) ? Number(value) : 0
  if (limit < 1) throw invalid(param, 'must be a whole number above 0')
  return Math.min(limit, MAX_LIMIT)
}

function orderOf(value: string): ListQuery['order'] {
  if (value === 'asc') return 'oldest'
  if (value === 'desc') return 'newest'
  throw invalid('order', 'must be "asc" or "desc"')
}

function invalid(param: string, fault: string): GatewayError {
  return new GatewayError('invalid_request', {
    param,
    message: `The query parameter "${param}" ${fault}.`,
  })
}
