import { setTimeout as sleep } from 'node:timers/promises'
import { Agent } from 'undici'
import { openDatabase, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { type Books, readBooks } from './books.ts'
import { crowd, type Load, limitedCaller, paidCaller, poorCaller } from './callers.ts'
import { ledgerAwaySpans, localSpans, type Span } from './fleet.ts'
import { shareOfLimit } from './limits.ts'
import { shareOfMoney } from './money.ts'
import { type Figure, figuresOf } from './promises.ts'
import { type Provoked, provoke, restartAll } from './provocations.ts'
import {
  claimsOf,
  clusterEpoch,
  leakedSlots,
  leasesOf,
  limitsByMaster,
  openSlots,
  sweepOfTheDead,
} from './remains.ts'
import { POOR } from './setting.ts'
import { ADMIN_TOKEN, PROCESSES, type Stage } from './stage.ts'

/** The result of a run. */
export interface Run {
  readonly requests: number
  readonly figures: readonly Figure[]
  /** Notes that a reader of the figures needs besides. */
  readonly notes: readonly string[]
}

/**
 * Puts a stage under load for a while, waits until nothing should be held any more, and looks.
 *
 * @param restarts whether each process is replaced meanwhile, if nothing else happens.
 */
export async function measure(
  stage: Stage,
  seconds: number,
  callers: number,
  restarts: boolean,
): Promise<Run> {
  const { faults, fleet, postgres, redis } = stage
  const over = new AbortController()
  const load: Load = {
    fleet,
    dispatcher: new Agent({ connections: null }),
    leave: faults,
    over: over.signal,
    wanted: [],
    crowd: false,
  }
  const epoch = await clusterEpoch(redis)
  const from = Date.now()
  const calling = callAll(load, stage, seconds, callers)
  const [provoked] = await Promise.all([
    faults ? provoke(seconds, { load, fleet, redis, postgres }) : undefined,
    restarts ? restartAll(fleet) : undefined,
    sleep(seconds * 1000),
  ])
  const byMaster = await limitsByMaster(redis)
  const takeovers = (await clusterEpoch(redis)) - epoch
  over.abort()
  await calling
  const loaded = { from, to: Date.now() }
  console.error(`the load is over after ${Math.round((loaded.to - from) / 1000)} s; what is left of it?`)

  const leaked = await leakedSlots(redis, provoked)
  if (provoked) await sweepOfTheDead(postgres, provoked)
  const violations = await violationsTold(fleet.pick(0).gateway.url)
  const badExits = await fleet.shutDown()
  const slots = Math.max(leaked, await openSlots(redis))
  violations.push(...(await violationsFound(postgres.url)))
  const books = await readBooks(postgres)
  return judge({ stage, load, loaded, books, provoked, slots, violations, badExits, byMaster, takeovers })
}

async function callAll(load: Load, { subjects }: Stage, seconds: number, callers: number): Promise<void> {
  const times = (count: number, call: (caller: number) => Promise<void>) =>
    Array.from({ length: count }, (_, i) => call(i))
  const limited = subjects.flatMap((subject) => [
    ...times(subject.callers, async (caller) => {
      await sleep(subject.beginsAt * seconds * 1000)
      await limitedCaller(load, subject, caller)
    }),
    ...(subject.inOutage ? [crowd(load, subject)] : []),
  ])
  await Promise.all([
    ...times(callers, (caller) => paidCaller(load, caller)),
    ...times(POOR.callers, (caller) => poorCaller(load, caller)),
    ...limited,
  ])
}

/** Returns the violations that the ledger's own check reports, as an operator asks for it. */
async function violationsTold(url: string): Promise<string[]> {
  const answer = await fetch(`${url}/admin/ledger/check`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  })
  if (answer.status !== 200) throw new Error(`GET /admin/ledger/check answered ${answer.status}`)
  return ((await answer.json()) as { violations: string[] }).violations
}

/** The same when no process runs any more. */
async function violationsFound(database: string): Promise<readonly string[]> {
  const db = await openDatabase(database, { readOnly: true })
  const { violations } = await new SqlLedger(db).check()
  await db.destroy()
  return violations
}

interface Evidence {
  readonly stage: Stage
  readonly load: Load
  readonly loaded: Span
  readonly books: Books
  readonly provoked: Provoked | undefined
  readonly slots: number
  readonly violations: readonly string[]
  readonly badExits: readonly string[]
  readonly byMaster: Awaited<ReturnType<typeof limitsByMaster>>
  /** Replicas of Redis that took over, and slots that moved. */
  readonly takeovers: number
}

function judge(evidence: Evidence): Run {
  const { stage, load, loaded, books, provoked, slots, violations, badExits, byMaster, takeovers } = evidence
  const { wanted } = load
  const { served } = stage.upstream
  const spans = new Map(stage.fleet.members.map((member) => [member, localSpans(member)]))
  const limits = stage.subjects.map((subject) =>
    shareOfLimit(subject, {
      wanted,
      served,
      localSpans: spans,
      load: loaded,
      outage: provoked && { from: provoked.redisKilledAt, to: provoked.redisBackAt },
    }),
  )
  const leases = leasesOf(books, provoked)
  const claims = claimsOf(books, wanted, provoked)
  const prepaid = [...books.wallets].filter(([id]) => id.startsWith('account:'))
  const unforeseen = unforeseenErrors(stage)
  const remains = {
    slots,
    leasesLeft: leases.left,
    leasesLost: leases.lost,
    claims: claims.leaked,
    violations: violations.length,
    overspent: prepaid.filter(([, { funds, spent }]) => spent > funds).length,
    unforeseen: unforeseen.length,
    badExits: badExits.length,
    // The faults of a run kill processes.
    unanswered: stage.faults ? null : unanswered(load),
  }
  const money = shareOfMoney(wanted, served, books)
  const poor = books.wallets.get(`account:${POOR.account}`) ?? { funds: 0n, spent: 0n }
  const notes = [
    ...stage.fleet.members.flatMap((member) => [
      ...awayNotes(`${member.name} took Redis for away`, localSpans(member), loaded),
      ...awayNotes(`${member.name} took the ledger for away`, ledgerAwaySpans(member), loaded),
    ]),
    ...limits.flatMap(({ exceeded }) => exceeded),
    `the account that runs dry spent ${(Number(poor.spent) / Number(poor.funds)).toFixed(4)} of what it had`,
    `leases of the dead returned: ${leases.swept}; claims of the dead that expire: ${claims.ofTheDead}`,
    `limits on the masters of Redis: ${byMaster.map(({ keys, scripts }) => `${keys} keys and ${scripts} scripts`).join(', ')}`,
    `replicas of Redis that took over, and slots that moved: ${takeovers}`,
    `starts that failed and were repeated: ${stage.fleet.failedStarts}`,
    `answers: ${statusesOf(load)}`,
    `told by the processes: ${logOf(stage) || 'nothing'}`,
    ...new Set(unforeseen),
    ...violations,
    ...badExits,
  ]
  return { requests: wanted.length, figures: figuresOf(limits, money, remains, PROCESSES), notes }
}

function awayNotes(what: string, spans: readonly Span[], { from: start }: Span): string[] {
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
  return spans.map(({ from, to }) => `${what} from ${seconds(from - start)} on, for ${seconds(to - from)}`)
}

/** Returns how many calls had no answer, because their connection was refused or reset. */
function unanswered({ wanted }: Load): number {
  const sends = wanted.flatMap((each) => each.sends)
  return sends.filter(({ status, leftAt }) => status === null && leftAt === undefined).length
}

function statusesOf({ wanted }: Load): string {
  const answers = wanted.flatMap(({ sends }) =>
    sends.map(({ status, code, sawEnd, leftAt }) => {
      const whole = sawEnd ? 'whole' : leftAt !== undefined ? 'left' : 'broken off'
      return status === 200 || status === null ? `${status ?? 'no answer'} ${whole}` : `${status} ${code}`
    }),
  )
  return countsOf(answers)
}

/** Warnings and errors of all processes, without what they were about. */
function logOf({ fleet }: Stage): string {
  return countsOf(fleet.members.flatMap(({ gateway }) => gateway.logged.map(({ msg }) => msg)))
}

/** Returns the unforeseen errors of all processes, with their stacks: there must be none. */
function unforeseenErrors({ fleet }: Stage): string[] {
  const lines = fleet.members.flatMap(({ gateway }) => gateway.logged)
  return lines.flatMap(({ msg, err }) => (msg === UNFORESEEN ? [`${msg}: ${JSON.stringify(err)}`] : []))
}

const UNFORESEEN = 'unforeseen error'

function countsOf(names: readonly string[]): string {
  const counts = [...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length] as const)
  const most = counts.sort(([, one], [, other]) => other - one)
  return most.map(([name, count]) => `${count} × ${name}`).join(', ')
}
