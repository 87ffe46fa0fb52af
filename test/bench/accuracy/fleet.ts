import {
  type Environment,
  type GatewayProcess,
  type LogLine,
  startGatewayProcess,
} from '../../support/gateway-process.ts'

/** One gateway process of a run. */
export interface Member {
  readonly name: string
  readonly gateway: GatewayProcess
  /** When it was killed with -9; undefined: it was not. */
  killedAt: number | undefined
}

/** From when to when, in milliseconds since the epoch. */
export interface Span {
  readonly from: number
  readonly to: number
}

const MOST_FAILED_STARTS = 10

/** The gateway processes of a run, that share their stores. */
export class Fleet {
  readonly #env: Environment
  /** All there ever were. */
  readonly members: Member[] = []
  #running: Member[] = []
  #named = 0
  /** Starts that failed; another followed, as from a supervisor. */
  failedStarts = 0
  readonly #badExits: string[] = []

  constructor(env: Environment) {
    this.#env = env
  }

  get running(): readonly Member[] {
    return this.#running
  }

  async start(): Promise<Member> {
    const name = `gateway ${++this.#named}`
    const member: Member = { name, gateway: await this.#launch(), killedAt: undefined }
    this.members.push(member)
    this.#running.push(member)
    return member
  }

  /** Tries again while Postgres has just changed places, or is overloaded. */
  async #launch(): Promise<GatewayProcess> {
    for (;;) {
      try {
        return await startGatewayProcess(this.#env)
      } catch (error) {
        if (++this.failedStarts > MOST_FAILED_STARTS) throw error
      }
    }
  }

  /** A running one; callers who count on go round. */
  pick(turn: number): Member {
    return this.#running[turn % this.#running.length] as Member
  }

  /** SIGKILL; callers find out by themselves, as they do of any other machine. */
  async kill(member: Member): Promise<void> {
    member.killedAt = Date.now()
    await member.gateway.stop()
    this.#running = this.#running.filter((each) => each !== member)
  }

  /** Starts another, and ends this one in good order meanwhile. */
  async replace(member: Member): Promise<void> {
    await this.start()
    this.#running = this.#running.filter((each) => each !== member)
    member.gateway.kill('SIGTERM')
    this.#badExits.push(...(await badExit(member)))
  }

  /** SIGTERM to all; answers those that did not end in good order. */
  async shutDown(): Promise<string[]> {
    const running = this.#running
    this.#running = []
    for (const { gateway } of running) gateway.kill('SIGTERM')
    const exits = await Promise.all(running.map(badExit))
    return [...this.#badExits, ...exits.flat()]
  }

  /** Kills whatever still runs. */
  async stop(): Promise<void> {
    await Promise.all(this.members.map(({ gateway }) => gateway.stop()))
  }
}

async function badExit({ name, gateway }: Member): Promise<string[]> {
  const { code, signal } = await gateway.exited
  return code === 0 ? [] : [`${name} ended with ${code ?? signal}`]
}

/** When a process took Redis for away, and so counted limits by itself. */
export function localSpans({ gateway }: Member): Span[] {
  const told = gateway.logged.filter(({ store }) => store === 'redis')
  return spansBetween(told, 'store is away', 'store is back')
}

/** When a process took the ledger for away, and so refused what its leases did not cover. */
export function ledgerAwaySpans({ gateway }: Member): Span[] {
  const told = gateway.logged.filter(({ store }) => store === 'ledger' || store === 'database')
  return spansBetween(told, 'store is away', 'store is back')
}

function spansBetween(lines: readonly LogLine[], away: string, back: string): Span[] {
  const spans: Span[] = []
  let from: number | undefined
  for (const { msg, time } of lines) {
    if (msg === away) from ??= Number(time)
    else if (msg === back && from !== undefined) {
      spans.push({ from, to: Number(time) })
      from = undefined
    }
  }
  if (from !== undefined) spans.push({ from, to: Number.POSITIVE_INFINITY })
  return spans
}
