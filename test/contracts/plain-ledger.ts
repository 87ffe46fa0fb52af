import {
  accountWallet,
  keyWallet,
  type LeaseAnswer,
  type LeaseChange,
  type Settlement,
  type SettlementResult,
  type WalletId,
} from '../../lib/ledger/index.ts'

interface PlainWallet {
  limited: boolean
  funds: bigint
  spent: bigint
  overrun: bigint
}

interface PlainLease {
  wallet: WalletId
  held: bigint
  beats: number
  seq: number
  moved: bigint
  gone: 'no' | 'given' | 'swept'
}

/** The rules of a ledger, said plainly: what is leased is looked up, never kept. */
export class PlainLedger {
  readonly #wallets = new Map<WalletId, PlainWallet>()
  readonly #leases = new Map<string, PlainLease>()
  readonly #bills = new Map<string, bigint>()
  readonly #charges = new Map<string, Settlement>()
  readonly #voids = new Set<string>()

  beats(id: string): number | undefined {
    return this.#leases.get(id)?.beats
  }

  change({ lease: id, wallet, seq, change }: LeaseChange): LeaseAnswer {
    const found = this.#wallets.get(wallet)
    const lease = this.#leases.get(id)
    const answer = (moved: bigint, lost = false) => ({
      moved,
      lost,
      open: !lost && this.#leases.get(id)?.gone === 'no',
      state: this.#state(wallet),
    })
    if (!found) return answer(0n)
    if (lease?.gone === 'swept') return answer(0n, true)
    if (lease?.seq === seq) return answer(lease.moved)
    if (lease ? lease.gone === 'given' : seq > 1 || change.kind === 'give') return answer(0n, true)
    const held = lease?.held ?? 0n
    let moved = 0n
    if (change.kind === 'give') moved = change.amount > held ? held : change.amount
    else if (found.limited) moved = this.#takeable(wallet, change.need, change.want)
    if (!lease && moved === 0n) return answer(0n)
    this.#leases.set(id, {
      wallet,
      held: change.kind === 'give' ? held - moved : held + moved,
      beats: (lease?.beats ?? 0) + 1,
      seq,
      moved,
      gone: change.kind === 'give' && held === moved ? 'given' : 'no',
    })
    return answer(moved)
  }

  renew(ids: string[]): Set<string> {
    const kept = new Set(ids.filter((id) => this.#leases.get(id)?.gone === 'no'))
    for (const id of kept) (this.#leases.get(id) as PlainLease).beats += 1
    return kept
  }

  sweep(id: string, beats: number): boolean {
    const lease = this.#leases.get(id)
    if (!lease || lease.beats !== beats || lease.gone === 'given') return false
    Object.assign(lease, { held: 0n, gone: 'swept' })
    return true
  }

  settle(batch: readonly Settlement[]): SettlementResult[] {
    return batch.flatMap((settlement) => {
      const { kind, requestId } = settlement
      if (kind === 'revoked')
        return this.settle([
          { ...settlement, kind: 'charge' },
          { ...settlement, kind: 'void' },
        ]).slice(0, 1)
      const standing = this.#charges.get(requestId)
      if (kind === 'void') {
        if (this.#voids.has(requestId)) return 'known'
        this.#voids.add(requestId)
        if (standing) this.#spend(standing, -standing.amount)
        return 'written'
      }
      if (standing || this.#voids.has(requestId)) return 'known'
      this.#charges.set(requestId, settlement)
      this.#spend(settlement, settlement.amount)
      for (const { lease: id, wallet: name, amount } of settlement.draws) {
        const wallet = this.#wallets.get(name)
        if (!wallet) continue
        const lease = this.#leases.get(id)
        const there = lease && lease.held < amount ? lease.held : lease ? amount : 0n
        if (lease) lease.held -= there
        wallet.overrun += amount - there
      }
      return 'written'
    })
  }

  deposit(account: string, amount: bigint, bill: string): string {
    const name = `${account} ${bill}`
    const standing = this.#bills.get(name)
    if (standing !== undefined) return standing === amount ? 'known' : 'conflict'
    this.#bills.set(name, amount)
    this.#open(accountWallet(account), true).funds += amount
    return 'deposited'
  }

  limit(id: WalletId, limited: boolean, quota: bigint): void {
    Object.assign(this.#open(id, limited), { limited, funds: quota })
  }

  statements(ids: readonly WalletId[]) {
    return ids.flatMap((wallet) => {
      const found = this.#wallets.get(wallet)
      return found ? [{ wallet, ...found, leased: this.#leased(wallet) }] : []
    })
  }

  open(ids: readonly string[]) {
    const open = ids.flatMap((id) => {
      const lease = this.#leases.get(id)
      return lease?.gone === 'no' ? [[id, [lease.wallet, lease.held, lease.beats]] as const] : []
    })
    return new Map(open)
  }

  #takeable(id: WalletId, need: bigint, want: bigint): bigint {
    const { funds, spent } = this.#wallets.get(id) as PlainWallet
    const available = funds - spent - this.#leased(id)
    if (available <= 0n || need > available) return 0n
    if (want > need && want <= available / 10n) return want
    return need > available / 10n || want <= need ? need : available / 10n
  }

  #spend({ account, key }: Settlement, amount: bigint): void {
    this.#open(accountWallet(account), false).spent += amount
    if (key !== null) this.#open(keyWallet(key), false).spent += amount
  }

  #open(id: WalletId, limited: boolean): PlainWallet {
    const wallet = this.#wallets.get(id) ?? { limited, funds: 0n, spent: 0n, overrun: 0n }
    this.#wallets.set(id, wallet)
    return wallet
  }

  #leased(id: WalletId): bigint {
    return [...this.#leases.values()].reduce(
      (sum, { wallet, held }) => (wallet === id ? sum + held : sum),
      0n,
    )
  }

  #state(id: WalletId) {
    const { limited, funds, spent } = this.#wallets.get(id) ?? {}
    if (limited === undefined || funds === undefined || spent === undefined) return undefined
    return { limited, funds, spent, leased: this.#leased(id) }
  }
}
