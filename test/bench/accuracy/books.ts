import type { CallLogEntry } from '../../../lib/middleware/call-log/index.ts'
import { readEntry } from '../../../lib/stores/sql/calls/written-entry.ts'
import type { PostgresPair } from '../../support/postgres-pair.ts'

/** The contents of the database when a run is over. Amounts are nano-units. */
export interface Books {
  /** By request id. */
  readonly charges: ReadonlyMap<string, bigint>
  readonly voids: ReadonlyMap<string, bigint>
  /** By request id; of charged calls the log has all. */
  readonly calls: ReadonlyMap<string, CallLogEntry>
  /** By the id that callers gave to a request. */
  readonly callsByClientId: ReadonlyMap<string, CallLogEntry>
  readonly leases: readonly LeaseRow[]
  /** Claims that are not completed, by their record's id. */
  readonly openClaims: ReadonlyMap<string, { readonly expiresAt: number }>
  /** The funds of an account, and the amount that it spent. */
  readonly wallets: ReadonlyMap<string, { readonly funds: bigint; readonly spent: bigint }>
}

interface LeaseRow {
  readonly owner: string
  readonly ended: 'closed' | 'swept' | null
  readonly held: bigint
}

/** Reads them past the gateway's own code. */
export async function readBooks(postgres: PostgresPair): Promise<Books> {
  const rows = (statement: string) => postgres.query(statement)
  const amounts = async (table: string) =>
    new Map(
      (await rows(`select request_id, amount from ${table}`)).map(({ request_id, amount }) => [
        `${request_id}`,
        BigInt(`${amount}`),
      ]),
    )
  const entries = (await rows('select entry from calls')).map(({ entry }) => readEntry(`${entry}`))
  const leases = await rows('select owner, ended, held from leases')
  const claims = await rows(`select id, expires_at from idempotency where state = 'running'`)
  const wallets = await rows('select id, funds, spent from wallets')
  return {
    charges: await amounts('charges'),
    voids: await amounts('voids'),
    calls: new Map(entries.map((entry) => [entry.id, entry])),
    callsByClientId: new Map(entries.map((entry) => [entry.client_request_id ?? entry.id, entry])),
    leases: leases.map(({ owner, ended, held }) => ({
      owner: `${owner}`,
      ended: ended as LeaseRow['ended'],
      held: BigInt(`${held}`),
    })),
    openClaims: new Map(claims.map(({ id, expires_at }) => [`${id}`, { expiresAt: Number(expires_at) }])),
    wallets: new Map(
      wallets.map(({ id, funds, spent }) => [
        `${id}`,
        { funds: BigInt(`${funds}`), spent: BigInt(`${spent}`) },
      ]),
    ),
  }
}
