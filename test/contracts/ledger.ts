import { before, describe } from 'node:test'
import { cleaningUp } from '../support/clean-up.ts'
import { adminContract } from './ledger-admin.ts'
import { leasesContract } from './ledger-leases.ts'
import { modelContract } from './ledger-model.ts'
import type { LedgerUnderTest } from './ledger-money.ts'
import { recordsContract } from './ledger-records.ts'
import { settlementsContract } from './ledger-settlements.ts'
import { sweepsContract } from './ledger-sweeps.ts'

/**
 * The contract of every ledger, whatever it keeps its money in. None of these tests waits for a time.
 *
 * @param runs how many sequences of operations are compared with the rules.
 */
export function ledgerContract(
  name: string,
  open: () => Promise<LedgerUnderTest>,
  skip: string | false = false,
  runs = 25,
): void {
  describe(`ledger: ${name}`, { skip }, () => {
    let tested: LedgerUnderTest
    const cleanUp = cleaningUp()
    before(async () => {
      tested = await open()
      cleanUp.after(() => tested.close())
    })

    leasesContract(() => tested)
    sweepsContract(() => tested)
    settlementsContract(() => tested)
    recordsContract(() => tested)
    adminContract(() => tested)
    modelContract(() => tested, runs)
  })
}
