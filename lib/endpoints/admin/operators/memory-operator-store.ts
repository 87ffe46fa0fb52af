import { aChangeLog, type ChangeOrigin, MemoryChangeLog } from '../../../core/change-log/index.ts'
import { checkOptions } from '../../../core/options/index.ts'
import { pageById } from '../page-by-id.ts'
import {
  type NewOperator,
  type OperatorSettings,
  type OperatorStore,
  operatorChange,
  operatorSettingsChange,
  type StoredOperator,
} from './operator-store.ts'

interface OperatorRecord {
  readonly operator: StoredOperator
  readonly tokenHash: string
  readonly previousHash: string | null
}

/**
 * An operator store in this process's memory.
 *
 * @example
 * app.use('/admin', adminAccess({ token, operators: new MemoryOperatorStore() }), adminRoutes({ accounts, ledger }))
 */
export class MemoryOperatorStore implements OperatorStore {
  readonly #records = new Map<string, OperatorRecord>()
  readonly #changes: MemoryChangeLog

  /** @param options.changes where changes are recorded. Defaults to a log of its own. */
  constructor(options: { changes?: MemoryChangeLog } = {}) {
    checkOptions<{ changes?: MemoryChangeLog }>('MemoryOperatorStore', options, { changes: aChangeLog })
    this.#changes = options.changes ?? new MemoryChangeLog()
  }

  async list({ after, limit }: { after?: string | undefined; limit: number }) {
    const operators = Array.from(this.#records.values(), ({ operator }) => operator)
    return pageById(operators, limit, after)
  }

  async find(id: string): Promise<StoredOperator | undefined> {
    return this.#records.get(id)?.operator
  }

  async findByToken(hash: string, at: number): Promise<StoredOperator | undefined> {
    for (const { operator, tokenHash, previousHash } of this.#records.values()) {
      if (tokenHash === hash) return operator
      if (previousHash === hash && at < (operator.previousUntil ?? 0)) return operator
    }
    return undefined
  }

  async create({ tokenHash, ...settings }: NewOperator, origin: ChangeOrigin) {
    if (this.#isTaken(settings.name)) return undefined
    const operator = { ...settings, previousUntil: null, createdAt: origin.at }
    this.#records.set(operator.id, { operator, tokenHash, previousHash: null })
    this.#changes.add(operatorChange('operator.created', operator, origin))
    return operator
  }

  async change(id: string, members: Partial<OperatorSettings>, origin: ChangeOrigin) {
    const record = this.#records.get(id)
    if (!record) return undefined
    const operator = { ...record.operator, ...members }
    const change = operatorSettingsChange(operator, record.operator, origin)
    if (!change) return operator
    if (operator.name !== record.operator.name && this.#isTaken(operator.name)) return 'taken'
    this.#records.set(id, { ...record, operator })
    this.#changes.add(change)
    return operator
  }

  async rotate(id: string, tokenHash: string, previousUntil: number | null, origin: ChangeOrigin) {
    const record = this.#records.get(id)
    if (!record) return undefined
    const operator = { ...record.operator, previousUntil }
    const previousHash = previousUntil === null ? null : record.tokenHash
    this.#records.set(id, { operator, tokenHash, previousHash })
    this.#changes.add(operatorChange('operator.rotated', operator, origin))
    return operator
  }

  async delete(id: string, origin: ChangeOrigin): Promise<boolean> {
    const record = this.#records.get(id)
    if (!record) return false
    this.#records.delete(id)
    this.#changes.add(operatorChange('operator.deleted', record.operator, origin))
    return true
  }

  #isTaken(name: string): boolean {
    return [...this.#records.values()].some(({ operator }) => operator.name === name)
  }
}
