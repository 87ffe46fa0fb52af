import type { Call } from '../calls.ts'
import type { Child } from '../element.ts'
import { count, usd } from '../format.ts'
import { facts, section } from './facts.ts'
import { emptyState } from './notice.ts'
import { table } from './table.ts'

type Billing = NonNullable<Call['billing']>

/** Shows the cost of a call and how it was computed. */
export function billingSection({ billing }: Call): HTMLElement {
  if (!billing) return section('Billing', emptyState('Nothing was held or charged.'))
  return section('Billing', facts(amountsOf(billing)), items(billing))
}

function amountsOf({ currency, reserved, charged, cost, required, available }: Billing): [string, Child][] {
  return [
    ['Charged', usd(charged)],
    ...(cost === undefined ? [] : ([['Cost', usd(cost)]] as [string, Child][])),
    ['Reserved', usd(reserved)],
    ...(required === null ? [] : ([['Required', usd(required)]] as [string, Child][])),
    ...(available === null ? [] : ([['Available', usd(available)]] as [string, Child][])),
    ['Currency', currency],
  ]
}

function items({ items: terms }: Billing): Child {
  if (terms.length === 0) return null
  return table(
    'Items of the charge',
    [
      { name: 'Item', heads: true, cell: ({ unit }) => unit.replaceAll('_', ' ') },
      { name: 'Quantity', figures: true, cell: ({ quantity }) => count(quantity) },
      { name: 'Price', figures: true, cell: ({ unit, price }) => `${usd(price)}${perOf(unit)}` },
    ],
    terms,
  )
}

const TOKENS: ReadonlySet<string> = new Set([
  'input',
  'audio_input',
  'cached_input',
  'cache_write',
  'cache_write_1h',
  'output',
  'audio_output',
])

function perOf(unit: string): string {
  return TOKENS.has(unit) ? ' per million' : ' each'
}
