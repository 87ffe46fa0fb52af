import type { OpenLease } from '../../../lib/ledger/index.ts'
import { LeaseSweeper } from '../../../lib/ledger/pool/lease-sweeper.ts'
import { LedgerHealth } from '../../../lib/ledger/pool/ledger-health.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { VirtualClock } from './virtual-clock.ts'

export const DOWN = new Error('the ledger is down')

/** A sweeper on a ledger that only lists leases and notes which are swept. */
export function sweeper() {
  const clock = new VirtualClock()
  const logger = recordingLogger()
  const health = new LedgerHealth({ clock, logger, times: { stallMs: 500 }, onStoreChange: () => {} })
  const open = new Map<string, number>()
  const own = new Set<string>()
  const swept: [id: string, beats: number, at: number][] = []
  const world = {
    clock,
    logger,
    health,
    open,
    own,
    swept,
    polls: [] as number[],
    fails: false,
    /** Whether enough other processes look. */
    areEnough: false,
    /** The promise that listing waits for. */
    listing: undefined as Promise<void> | undefined,
    /** Takes part in each sweep. */
    onSweep: (_id: string): boolean | Promise<boolean> => true,
  }
  const watch = async (): Promise<OpenLease[] | undefined> => {
    world.polls.push(clock.now())
    await world.listing
    if (world.fails) throw DOWN
    if (world.areEnough) return undefined
    return Array.from(open, ([id, beats]) => {
      return { id, wallet: 'account:acme', owner: `owner of ${id}`, held: 5n, beats, renewedAt: 0 }
    })
  }
  const sweep = async (id: string, beats: number) => {
    swept.push([id, beats, clock.now()])
    const done = await world.onSweep(id)
    if (done) open.delete(id)
    return done
  }
  const kept = () => own
  return {
    ...world,
    world,
    sweeper: new LeaseSweeper({ ledger: { watch, sweep }, owner: 'this', clock, logger, health, kept }),
    ids: () => swept.map(([id]) => id),
  }
}
