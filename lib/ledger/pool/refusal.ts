import type { Payer } from '../payers.ts'
import type { ReserveRefusal } from './reservation.ts'
import type { WalletLease } from './wallet-lease.ts'

/**
 * Returns the refusal of a call whose money cannot become available. What is spent does not come back; what others hold
 * may, unless it is where nobody answers.
 *
 * @param lacking the wallets that do not cover it.
 * @param reachOf returns the most that calls could get of a wallet; of the account if none is given.
 */
export function refusalOf(
  lacking: readonly Payer<WalletLease>[],
  required: bigint,
  reachOf: (wallet: WalletLease | undefined) => bigint | undefined,
): ReserveRefusal {
  for (const { wallet, ...refusal } of lacking) {
    const available = wallet.snapshot.balance - wallet.unhanded
    if (required > available) return { ...refusal, required, available }
  }
  // Nobody knows what is left.
  if (lacking.some(({ wallet }) => wallet.snapshot.away))
    return { refused: 'billing_unavailable', required, available: null }
  const [first] = lacking
  return {
    refused: 'quota_lease_exhausted',
    required,
    available: reachOf(first?.wallet) ?? null,
    ...(first?.budget && { budget: first.budget }),
  }
}
