import { type Budget, type BudgetPeriod, type BudgetScope, budgetWallet } from './budget.ts'
import { type PeriodBounds, periodAt } from './budget-period.ts'

/** The parts of a call that budgets are found by. */
export interface BudgetedCall {
  readonly account: string
  readonly key: string | null
  readonly user: string | null
  readonly tags: Readonly<Record<string, string>> | null
}

const NO_BUDGETS: readonly BudgetPeriod[] = []
/** Separates the parts of a name; no part has it. */
const SEPARATOR = '\u0000'

interface Running {
  readonly budget: Budget
  bounds: PeriodBounds
  period: BudgetPeriod
}

/** The budgets of one account, by what a call must have. */
interface OfAccount {
  readonly byScope: Map<string, Map<string, Running>>
  readonly shapes: Map<string, Pick<BudgetScope, 'key' | 'user' | 'tag'>>
}

/** All budgets in use, found by the calls that they count. What a call costs here does not depend on their number. */
export class BudgetIndex {
  readonly #accounts = new Map<string, OfAccount>()
  readonly #byId = new Map<string, Budget>()

  get size(): number {
    return this.#byId.size
  }

  /**
   * Adds a budget, or replaces the one with its id.
   *
   * @throws RangeError if this process does not know its time zone.
   */
  set(budget: Budget): void {
    const now = running(budget, Date.now())
    this.delete(budget.id)
    this.#byId.set(budget.id, budget)
    const { scope } = budget
    const own = this.#accounts.get(scope.account) ?? { byScope: new Map(), shapes: new Map() }
    this.#accounts.set(scope.account, own)
    const name = nameOf(scope.key, scope.user, scope.tag)
    const alike = own.byScope.get(name) ?? new Map<string, Running>()
    own.byScope.set(name, alike)
    alike.set(budget.id, now)
    own.shapes.set(shapeOf(scope), scope)
  }

  delete(id: string): void {
    const budget = this.#byId.get(id)
    if (!budget) return
    const { scope } = budget
    this.#byId.delete(id)
    const own = this.#accounts.get(scope.account)
    const name = nameOf(scope.key, scope.user, scope.tag)
    const alike = own?.byScope.get(name)
    alike?.delete(id)
    if (alike?.size === 0) own?.byScope.delete(name)
    if (own?.byScope.size === 0) this.#accounts.delete(scope.account)
  }

  /** Returns the budgets that a call counts against, in the periods that are running at a time. */
  matching(call: BudgetedCall, at: number): readonly BudgetPeriod[] {
    const own = this.#accounts.get(call.account)
    return own ? periodsOf(own, call, at) : NO_BUDGETS
  }
}

function periodsOf({ byScope, shapes }: OfAccount, call: BudgetedCall, at: number): BudgetPeriod[] {
  const periods: BudgetPeriod[] = []
  const take = (tag: string | null, shape: Pick<BudgetScope, 'key' | 'user'>): void => {
    const key = shape.key === null ? null : call.key
    const user = shape.user === null ? null : call.user
    const isThere = (shape.key === null || key !== null) && (shape.user === null || user !== null)
    const alike = isThere ? byScope.get(nameOf(key, user, tag)) : undefined
    if (alike) for (const each of alike.values()) periods.push(periodOf(each, at))
  }
  for (const shape of shapes.values()) {
    if (shape.tag === null) take(null, shape)
    else for (const name in call.tags) take(`${name}=${call.tags[name]}`, shape)
  }
  return periods
}

function periodOf(each: Running, at: number): BudgetPeriod {
  if (at < each.bounds.start || at >= each.bounds.end) Object.assign(each, running(each.budget, at))
  return each.period
}

function running(budget: Budget, at: number): Running {
  const { id, scope, period, timezone } = budget
  const bounds = periodAt(period, timezone, at)
  const isWhole = scope.key === null && scope.user === null && scope.tag === null
  return {
    budget,
    bounds,
    period: {
      budget: id,
      wallet: budgetWallet(id, bounds.start),
      scope,
      refused: isWhole ? 'insufficient_balance' : 'key_quota_exhausted',
      endsAt: Number.isFinite(bounds.end) ? bounds.end : null,
    },
  }
}

function nameOf(key: string | null, user: string | null, tag: string | null): string {
  return [key, user, tag].map((part) => (part === null ? '' : `=${part}`)).join(SEPARATOR)
}

function shapeOf({ key, user, tag }: BudgetScope): string {
  return [key, user, tag].map((part) => (part === null ? '-' : '+')).join('')
}
