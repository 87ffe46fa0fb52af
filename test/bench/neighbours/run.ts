/**
 * The results of a tenant that sends calls steadily beside each of many attacks: `node test/bench/neighbours/run.ts
 * [parts of names]`. Ends with 1 if a call failed, or if the tenant's p95 is too much later than without the attack.
 */
import { ATTACKS } from './attacks.ts'
import { neighbourhood } from './neighbourhood.ts'
import type { Window } from './steady-tenant.ts'

/** How much later the slowest twentieth of the tenant's calls may end, in milliseconds. */
const LATER_MS = 300
/** Other work on the machine delays an answer too, but not each time. */
const TRIES = 3

const parts = process.argv.slice(2)
const names = Object.keys(ATTACKS).filter(
  (name) => parts.length === 0 || parts.some((part) => name.includes(part)),
)
const ends: (() => unknown)[] = []
const { watch, gateway } = await neighbourhood({ after: (end) => void ends.push(end) })
await watch()

const failed: string[] = []
console.log('| attack | p95 without, ms | p95 with | slowest | |\n| --- | --- | --- | --- | --- |')
for (const name of names) if (!(await isBorne(name))) failed.push(name)
for (const end of ends.reverse()) await end()
if (failed.length > 0) console.error(`not borne: ${failed.join(', ')}\n${gateway.stderr.slice(-2000)}`)
process.exit(failed.length > 0 ? 1 : 0)

async function isBorne(name: string): Promise<boolean> {
  for (let i = 0; i < TRIES; i++) {
    const without = await watch()
    const beside = await watch(ATTACKS[name])
    const fault = faultOf(without, beside)
    console.log(`| ${name} | ${without.p95} | ${beside.p95} | ${beside.worst} | ${fault ?? 'ok'} |`)
    if (fault === undefined) return true
  }
  return false
}

function faultOf(without: Window, beside: Window): string | undefined {
  if (Object.keys(beside.failures).length > 0) return JSON.stringify(beside.failures)
  return beside.p95 > without.p95 + LATER_MS ? 'late' : undefined
}
