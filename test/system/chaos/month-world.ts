import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseAmount } from '../../../lib/core/catalog/index.ts'
import { jsonOf } from '../../support/answer-bodies.ts'
import { type Exchange, readExchange } from '../../support/exchange.ts'
import {
  chat,
  type GatewayProcess,
  post,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { answerJson, chatAnswer, chatEvents, startUpstream, stream } from '../../support/scripted-upstream.ts'

/* A month of ten accounts, on gateways whose clock the test sets. */

const PRELOAD = new URL('set-clock.ts', import.meta.url)
const TOKEN = 'admin-token-of-the-month'

/** The parameters of a call; its number decides them. */
export interface MonthCall {
  readonly number: number
  readonly account: string
  readonly key: string
  readonly model: string
  readonly user: string | null
  readonly team: string
  readonly stream: boolean
}

/** A call that was made: what its caller saw, and the time of the gateways before it. */
export interface Made {
  readonly call: MonthCall
  readonly at: number
  readonly answer: Exchange | undefined
}

/** The amount that the upstream would bill: for which line, and how much by its own prices. */
export interface Billed {
  readonly line: string
  readonly tokens: number
  readonly cost: bigint
}

interface Row {
  readonly [column: string]: string | number | null
}

const MODELS = {
  small: { perRequest: '0.000001', inputPerMillion: '0.05', outputPerMillion: '0.4' },
  large: { perRequest: '0', inputPerMillion: '2.5', outputPerMillion: '10.001' },
} as const
const COSTS = {
  west: { inputPerMillion: '0.011', outputPerMillion: '0.123' },
  east: { inputPerMillion: '0.013', outputPerMillion: '0.2' },
  spare: { inputPerMillion: '1', outputPerMillion: '3' },
} as const
const INPUT = 7

const ACCOUNTS = Array.from({ length: 10 }, (_, i) => `account-${i}`)
const USERS = ['ann', 'Bob', 'céline', null] as const
const TEAMS = ['search', 'ads', 'ops'] as const

export function callOf(number: number): MonthCall {
  const account = ACCOUNTS[number % ACCOUNTS.length] as string
  return {
    number,
    account,
    key: `${account}-key-${Math.floor(number / 10) % 2}`,
    model: number % 3 === 0 ? 'large' : 'small',
    user: USERS[Math.floor(number / 7) % USERS.length] as string | null,
    team: TEAMS[Math.floor(number / 11) % TEAMS.length] as string,
    stream: number % 2 === 0,
  }
}

const tokensOf = (number: number): number => 1 + (number % 13)

/** Nano-units, rounded half up; prices are by the million tokens. */
function priced(prices: Readonly<Record<string, string>>, tokens: number): bigint {
  const nano = (name: string) => parseAmount(prices[name] ?? '0')
  const sum = nano('inputPerMillion') * BigInt(INPUT) + nano('outputPerMillion') * BigInt(tokens)
  return nano('perRequest') + (sum + 500_000n) / 1_000_000n
}

export function priceOf({ model, number }: MonthCall): bigint {
  return priced(MODELS[model as keyof typeof MODELS], tokensOf(number))
}

export async function monthWorld(t: TestContext, databaseUrl: string) {
  const folder = await temporaryFolder()
  t.after(folder.remove)
  const [clock, configFile] = [join(folder.path, 'clock'), join(folder.path, 'config.json')]
  const billed = new Map<number, Billed[]>()
  const upstream = await startUpstream(async (res, { path, json }) => {
    const number = Number(String(json.messages[0]?.content).slice('call '.length))
    const line = path.split('/')[1] as keyof typeof COSTS
    // The next line answers these.
    if (line === 'west' && number % 17 === 0)
      return answerJson(res, 503, { error: { message: 'overloaded' } })
    const tokens = tokensOf(number)
    await sleep(5 + (number % 20))
    if (json.stream)
      await stream(res, chatEvents(Array.from({ length: tokens }, () => 'word ')), { paceMs: 2 })
    else {
      const usage = { prompt_tokens: INPUT, completion_tokens: tokens, total_tokens: INPUT + tokens }
      chatAnswer(res, 'Hello', { usage })
    }
    const bills = billed.get(number) ?? []
    billed.set(number, [...bills, { line, tokens, cost: priced(COSTS[line], tokens) }])
  })
  t.after(() => upstream.close())
  const lineOf = (id: keyof typeof COSTS, priority: number, models: object) => ({
    ...{
      id,
      provider: id,
      protocol: 'openai',
      baseUrl: `${upstream.url}/${id}/v1`,
      models,
      priority,
      cost: COSTS[id],
    },
    circuit: { errorPercent: 100, minimumCalls: 10_000 },
    timeouts: { connectMs: 20_000, firstByteMs: 30_000, idleMs: 60_000 },
  })
  await writeFile(
    configFile,
    JSON.stringify({
      accounts: ACCOUNTS.map((id, i) => ({ id, ...(i > 0 && { balance: '100' }) })),
      keys: ACCOUNTS.flatMap((account) =>
        [0, 1].map((i) => ({ id: `${account}-key-${i}`, account, secret: `sk-${account}-key-${i}` })),
      ),
      models: Object.entries(MODELS).map(([id, price]) => ({ id, kind: 'chat', maxOutputTokens: 20, price })),
      lines: [
        lineOf('west', 0, { small: 'u' }),
        lineOf('east', 1, { small: 'u', large: 'u' }),
        lineOf('spare', 2, { small: 'u', large: 'u' }),
      ],
    }),
  )
  let time = 0
  return {
    billed,
    /** The time of the gateways. */
    now: () => Date.now() + time,
    async setClock(at: string): Promise<void> {
      time = Date.parse(at) - Date.now()
      await writeFile(clock, String(time))
      // Every process reads it.
      await sleep(100)
    },
    async start(): Promise<GatewayProcess> {
      const gateway = await startGatewayProcess({
        ...{ DATABASE_URL: databaseUrl, GATEWAY_CONFIG: configFile, LOG_LEVEL: 'warn', ADMIN_TOKEN: TOKEN },
        ...{ NODE_OPTIONS: `--import=${PRELOAD}`, CLOCK_FILE: clock },
      })
      t.after(() => gateway.stop())
      return gateway
    },
    async make(gateway: GatewayProcess, call: MonthCall): Promise<Made> {
      const at = Date.now() + time
      const { number, key, model, user, team, stream: streams } = call
      const extra = { ...(user !== null && { user }), ...(streams && { stream: true }) }
      const headers = { authorization: `Bearer sk-${key}`, 'x-gateway-tags': `team=${team}` }
      const response = await post(gateway.url, chat(model, `call ${number}`, extra), headers).catch(
        () => undefined,
      )
      return { call, at, answer: response && (await readExchange(response)) }
    },
    async ask<Body = { data: Row[]; next_cursor: string | null }>(
      gateway: GatewayProcess,
      path: string,
      body?: object,
      bearer = TOKEN,
    ): Promise<Body> {
      const response = await fetch(gateway.url + path, {
        headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
      })
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
      return jsonOf<Body>(response)
    },
  }
}
