// A start, reloads under load, memory and drift with many accounts and keys: node test/bench/large-config.ts --help
import { readFileSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { jsonOf } from '../support/answer-bodies.ts'
import {
  chat,
  type GatewayProcess,
  lookUp,
  post,
  startGatewayProcess,
  temporaryFolder,
} from '../support/gateway-process.ts'
import { startPostgres } from '../support/postgres-server.ts'
import { chatAnswer, startUpstream } from '../support/scripted-upstream.ts'
import { cpuSecondsOf, residentKiB } from './processes.ts'

const { values: flags } = parseArgs({
  options: {
    keys: { type: 'string', default: '200000' },
    accounts: { type: 'string', default: '50000' },
    engines: { type: 'string', default: 'sqlite,postgres' },
    formats: { type: 'string', default: 'json,yaml' },
    reloads: { type: 'string', default: '3' },
    help: { type: 'boolean', default: false },
  },
})
if (flags.help) {
  console.log(
    '--keys and --accounts of the config, --engines sqlite,postgres, --formats json,yaml, --reloads',
  )
  process.exit()
}
const [keys, accounts] = [Number(flags.keys), Number(flags.accounts)]
const CALLS_A_SECOND = 40
const ADMIN_TOKEN = 'admin-token-of-the-benchmark'
const secretOf = (key: number): string => `sk-${String(key).padStart(32, '0')}`

const upstream = await startUpstream((res) => chatAnswer(res))
const postgres = flags.engines.includes('postgres') ? await startPostgres() : undefined
const folder = await temporaryFolder()

/** The text of a config. */
function configText(format: string, perRequest: string, balance: string): string {
  const entries = {
    accounts: Array.from({ length: accounts }, (_, i) => ({
      id: `account-${i}`,
      balance: i > 0 ? '10' : balance,
    })),
    keys: Array.from({ length: keys }, (_, i) => ({
      ...{ id: `key-${i}`, account: `account-${i % accounts}`, secret: secretOf(i) },
    })),
  }
  const rest = {
    models: [{ id: 'chat-small', kind: 'chat', maxOutputTokens: 100, price: { perRequest } }],
    lines: [
      {
        ...{ id: 'one', provider: 'p', protocol: 'openai' },
        ...{ baseUrl: `${upstream.url}/v1`, models: { 'chat-small': 'u' } },
      },
    ],
  }
  if (format === 'json') return JSON.stringify({ ...entries, ...rest })
  const block = (entry: object): string =>
    `  - ${Object.entries(entry)
      .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
      .join('    ')}`
  return [
    `models: ${JSON.stringify(rest.models)}\nlines: ${JSON.stringify(rest.lines)}\naccounts:\n`,
    ...entries.accounts.map(block),
    'keys:\n',
    ...entries.keys.map(block),
  ].join('')
}

interface Sent {
  readonly at: number
  readonly ms: number
  readonly status: number
  readonly id: string | null
  readonly key: number
}

/** Calls at a steady rate, each with another key. */
class SteadyCalls {
  readonly seen: Sent[] = []
  readonly #url: string
  readonly #running: Promise<void>[] = []
  readonly #timer: NodeJS.Timeout

  constructor(url: string) {
    this.#url = url
    this.#timer = setInterval(() => this.#running.push(this.#call()), 1000 / CALLS_A_SECOND)
  }

  async #call(): Promise<void> {
    const at = performance.now()
    const key = Math.floor(Math.random() * keys)
    const answer = await post(this.#url, chat(), { authorization: `Bearer ${secretOf(key)}` })
    await answer.text()
    const { status, headers } = answer
    this.seen.push({ at, ms: performance.now() - at, status, id: headers.get('x-request-id'), key })
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#running)
  }
}

async function chargeOf({ url }: GatewayProcess, { id, key }: Sent): Promise<unknown> {
  return (await lookUp(url, id, secretOf(key))).billing?.charged
}

/** Returns the first call, in the order they were sent, that was charged a price. */
async function firstCharged(
  gateway: GatewayProcess,
  calls: readonly Sent[],
  price: string,
): Promise<Sent | undefined> {
  let [from, to] = [0, calls.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if ((await chargeOf(gateway, calls[middle] as Sent)) === price) to = middle
    else from = middle + 1
  }
  return calls[from]
}

/** The longest time of a page of all differences between config and database, and how many differences there are. */
async function drift({ url }: GatewayProcess): Promise<{ longestMs: number; differences: number }> {
  let [longestMs, differences, cursor] = [0, 0, '']
  for (;;) {
    const began = performance.now()
    const page = await jsonOf<{ data: unknown[]; next_cursor: string | null }>(
      await fetch(`${url}/admin/drift?limit=100${cursor}`, {
        headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
      }),
    )
    longestMs = Math.max(longestMs, performance.now() - began)
    differences += page.data.length
    if (page.next_cursor === null) return { longestMs, differences }
    cursor = `&cursor=${page.next_cursor}`
  }
}

function peakMiB(pid: number): number {
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

async function until(isDone: () => boolean): Promise<void> {
  while (!isDone()) await sleep(20)
}

async function measure(engine: string, format: string): Promise<string> {
  const file = join(folder.path, `config.${format}`)
  const write = async (...how: [string, string]): Promise<void> => {
    await writeFile(`${file}.new`, configText(format, ...how))
    await rename(`${file}.new`, file)
  }
  const url = `sqlite:${join(folder.path, `${format}.db`)}`
  const env = {
    DATABASE_URL: engine === 'sqlite' ? url : await postgres?.createDatabase(),
    ...{ GATEWAY_CONFIG: file, ADMIN_TOKEN, LOG_LEVEL: 'info' },
  }
  await write('0.001', '10')
  const starts: number[] = []
  let gateway: GatewayProcess | undefined
  for (const _ of ['first', 'second']) {
    await gateway?.stop()
    const began = performance.now()
    gateway = await startGatewayProcess(env)
    starts.push(performance.now() - began)
    console.error(
      `${engine} ${format}: started, ${seconds(starts.at(-1) as number)}, CPU ${cpuSecondsOf(gateway.pid)} s, peak ${peakMiB(gateway.pid)} MiB`,
    )
  }
  if (!gateway) throw new Error('not started')
  const running = gateway
  const load = new SteadyCalls(gateway.url)
  await sleep(5000)
  const applied = { alone: [] as number[], beside: [] as number[] }
  let reloads = 0
  const reload = async (which: keyof typeof applied, balance: string): Promise<void> => {
    const price = `0.0${++reloads + 1}`
    const text = configText(format, price, balance)
    await writeFile(`${file}.new`, text)
    const cpu = cpuSecondsOf(running.pid) ?? 0
    const began = performance.now()
    const before = load.seen.length
    await rename(`${file}.new`, file)
    await until(() => running.logged.filter(({ msg }) => msg === 'config reloaded').length >= reloads)
    const whole = performance.now() - began
    await sleep(2000)
    const first = await firstCharged(
      running,
      load.seen.slice(before).toSorted((a, b) => a.at - b.at),
      price,
    )
    const after = (first?.at ?? Number.NaN) - began
    applied[which].push(after)
    console.error(
      `${engine} ${format}: new price ${which} after ${seconds(after)}, all after ${seconds(whole)}, CPU ${((cpuSecondsOf(running.pid) ?? 0) - cpu).toFixed(1)} s, now ${Math.round((residentKiB(running.pid) ?? 0) / 1024)} MiB, peak ${peakMiB(running.pid)} MiB`,
    )
  }
  for (let i = 0; i < Number(flags.reloads); i++) {
    await reload('alone', `${i + 10}`)
    await reload('beside', `${i + 11}`)
  }
  await load.stop()
  const { longestMs, differences } = await drift(gateway)
  const refused = load.seen.filter(({ status }) => status !== 200).length
  const longestCall = Math.max(...load.seen.map(({ ms }) => ms))
  const peak = peakMiB(gateway.pid)
  await gateway.stop()
  return `| ${engine}, ${format} | ${starts.map(seconds).join(' | ')} | ${seconds(Math.max(...applied.alone))} | ${seconds(Math.max(...applied.beside))} | ${refused} of ${load.seen.length} | ${Math.round(longestCall)} ms | ${seconds(longestMs)} (${differences}) | ${peak} MiB |`
}

console.log(`| | first start | second | a new price applies after | … if an account changes, too | refused calls | longest call | longest page of drift | peak memory |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |`)
for (const engine of flags.engines.split(','))
  for (const format of flags.formats.split(',')) console.log(await measure(engine, format))
await upstream.close()
await postgres?.close()
await folder.remove()
