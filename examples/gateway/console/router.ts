import type { View } from './view.ts'

/** A view and the pattern of its addresses: `/calls/:id` matches one segment as `id`. */
export interface Route {
  readonly pattern: string
  readonly view: View
}

/** The view of an address. */
export interface Destination {
  readonly view: View
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
}

/** Returns the path behind the `#` of the page's address, always with a leading slash. */
export function currentPlace(): string {
  const place = location.hash.slice(1)
  return place.startsWith('/') ? place : `/${place}`
}

/** Finds the view of a path; returns undefined if there is none. */
export function destinationOf(place: string, routes: readonly Route[]): Destination | undefined {
  const [path = '', search = ''] = place.split(/\?(.*)/s)
  for (const { pattern, view } of routes) {
    const params = matchOf(path, pattern)
    if (params) return { view, params, query: new URLSearchParams(search) }
  }
  return undefined
}

function matchOf(path: string, pattern: string): Record<string, string> | undefined {
  const segments = path.split('/')
  const wanted = pattern.split('/')
  if (segments.length !== wanted.length) return undefined
  const params: Record<string, string> = {}
  for (const [i, want] of wanted.entries()) {
    const segment = decoded(segments[i] ?? '')
    if (segment === undefined) return undefined
    if (!want.startsWith(':')) {
      if (segment !== want) return undefined
    } else if (segment === '') return undefined
    else params[want.slice(1)] = segment
  }
  return params
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

/**
 * Returns the address of a view, for links.
 *
 * @example
 * h('a', { href: linkTo('calls', call.id) }, call.id)
 */
export function linkTo(...segments: readonly string[]): string {
  return `#/${segments.map(encodeURIComponent).join('/')}`
}

/** Returns the address of a view with a query; empty members are left out. */
export function linkWith(view: string, query: Readonly<Record<string, string>>): string {
  const given = Object.entries(query).filter(([, value]) => value !== '')
  const search = new URLSearchParams(given).toString()
  return search === '' ? linkTo(view) : `${linkTo(view)}?${search}`
}
