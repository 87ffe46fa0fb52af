import { type Child, h } from '../element.ts'
import { count } from '../format.ts'
import { linkWith } from '../router.ts'
import { pairsText } from './form.ts'

/** The filters of a list of calls, as they stand in its address. */
export type CallFilters = Readonly<Record<string, string>>

/** Shows a count of usage, with a link to the list of exactly these calls. */
export function callCount(
  value: number,
  counted: 'requests' | 'refused' | 'failed',
  filters: CallFilters | undefined,
): Child {
  if (value === 0 || filters === undefined) return count(value)
  return h('a', { href: linkWith('calls', { ...filters, counted }) }, count(value))
}

/** Adds the filter of a group to others; undefined for a group without a name, which no filter selects. */
export function withGroup(filters: CallFilters, group: string, value: unknown): CallFilters | undefined {
  if (value === null || value === undefined || value === '') return undefined
  if (!group.startsWith('tag:')) return { ...filters, [group]: String(value) }
  const tag = pairsText({ [group.slice('tag:'.length)]: String(value) })
  return { ...filters, tag: filters.tag ? `${filters.tag} ${tag}` : tag }
}
