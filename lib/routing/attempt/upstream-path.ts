import type { Line } from '../../core/catalog/index.ts'
import { endpointOf } from '../../core/operations/by-path.ts'
import type { Operation } from '../../core/operations/operation.ts'

/** Returns the path of a model call to a line whose paths or query differ from its protocol's. */
export function dialectPath(
  line: Line,
  operation: Operation,
  upstreamModel: string,
  stream: boolean,
): string {
  const template = line.paths?.get(endpointOf(operation))
  if (!template) return pathOn(line, operation.upstreamPath)
  const path = stream ? template.stream : template.plain
  return pathOn(
    line,
    path.replaceAll('{model}', () => encodeURIComponent(upstreamModel)),
  )
}

/**
 * Returns the path of a request to a line, with the line's query. Its parameters replace those of the same name.
 *
 * @param path the path behind the line's base URL, which may have a query.
 */
export function pathOn({ basePath, query }: Line, path: string): string {
  if (query === undefined) return basePath + path
  const mark = path.indexOf('?')
  if (mark < 0) return `${basePath}${path}?${query}`
  const own = new URLSearchParams(query)
  const others = path
    .slice(mark + 1)
    .split('&')
    .filter((param) => param !== '' && !own.has(nameOf(param)))
  return `${basePath}${path.slice(0, mark)}?${[...others, query].join('&')}`
}

function nameOf(param: string): string {
  return [...new URLSearchParams(param).keys()][0] ?? ''
}
