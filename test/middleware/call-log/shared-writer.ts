import type { TestContext } from 'node:test'
import { type CallLogEntry, CoalescedEntries } from '../../../lib/middleware/call-log/index.ts'
import { entryAt } from '../../contracts/call-store.ts'

/** An entry of which a test names what matters. */
export const entry = (extra: Partial<CallLogEntry>): CallLogEntry =>
  entryAt(Date.UTC(2026, 0, 1), { key: 'k', client_ip: null, model: null, routing: null, ...extra })

/** Writes into a list, on a faked clock. */
export function shared(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let now = 1000
  // A mocked method notes each of its calls, which is slow for so many. The real one is of the prototype.
  performance.now = () => now
  t.after(() => Reflect.deleteProperty(performance, 'now'))
  const written: CallLogEntry[] = []
  const entries = new CoalescedEntries({ add: (each) => void written.push(each) })
  const tick = (ms: number) => {
    for (let done = 0; done < ms; done += 1000) {
      now += 1000
      t.mock.timers.tick(1000)
    }
  }
  const told = () => written.splice(0).reduce((sum, { repeats = 0 }) => sum + 1 + repeats, 0)
  return { entries, written, tick, told }
}

export const LOOKUP = { method: 'GET', path: '/v1/calls/req_1' } as const
