import type { View } from './visit.ts'

/** A view and the addresses that show it: `/calls/:id` takes one segment as `id`. */
export interface Route {
  readonly pattern: string
  readonly view: View
}

/** What an address shows. */
export interface Destination {
  readonly view: View
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
}

/** The place behind the `#` of the page's address, always with its slash. */
export function currentPlace(): string {
  const place = location.hash.slice(1)
  return place.startsWith('/') ? place : `/${place}`
}

/** Finds what a place shows; undefined where there is no such view. */
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
 * The address of a view, as a link's target.
 *
 * @example
 * h('a', { href: linkTo('calls', call.id) }, call.id)
 */
export function linkTo(...segments: readonly string[]): string {
  return `#/${segments.map(encodeURIComponent).join('/')}`
}

/** The address of a view with a query; empty members are left out. */
export function linkWith(view: string, query: Readonly<Record<string, string>>): string {
  const given = Object.entries(query).filter(([, value]) => value !== '')
  const search = new URLSearchParams(given).toString()
  return search === '' ? linkTo(view) : `${linkTo(view)}?${search}`
}
