import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { CleanUp } from '../../support/clean-up.ts'
import {
  type Environment,
  type GatewayProcess,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import type { Window } from './steady-tenant.ts'

/** The target of an attack. Its account has money; that of `poor` has none, and `dead` is a disabled key. */
export interface Target {
  readonly url: string
  readonly port: number
  readonly key: string
  readonly poor: string
  readonly dead: string
  readonly pid: number
}

/** Does its harm until the signal aborts. */
export type Attack = (target: Target, signal: AbortSignal) => Promise<unknown>

/** A gateway with two tenants: one that is attacked through, and one that sends calls steadily. */
export interface Neighbourhood {
  readonly gateway: GatewayProcess
  /** Returns the steady tenant's results for a while, with an attack beside it or without. */
  watch(attack?: Attack): Promise<Window>
}

export const ADMIN_TOKEN = 'admin-token-0123456789'
const WINDOW_MS = 2500

/** Starts a gateway process, the upstream of both tenants and the steady one. */
export async function neighbourhood(cleanUp: CleanUp, env: Environment = {}): Promise<Neighbourhood> {
  const folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
  const upstream = await startWorker(cleanUp, new URL('./upstream.ts', import.meta.url))
  const [port] = await once(upstream, 'message')
  const configFile = join(folder.path, 'config.json')
  await writeFile(configFile, JSON.stringify(configOver(`http://127.0.0.1:${port}/v1`)))
  const gateway = await startGatewayProcess({
    GATEWAY_CONFIG: configFile,
    ADMIN_TOKEN,
    LOG_LEVEL: 'warn',
    DATABASE_URL: `sqlite:${join(folder.path, 'gateway.db')}`,
    ...env,
  })
  cleanUp.after(() => gateway.stop())
  const steady = await startWorker(cleanUp, new URL('./steady-tenant.ts', import.meta.url), {
    url: gateway.url,
    key: 'sk-steady',
  })
  const target: Target = {
    url: gateway.url,
    port: gateway.port,
    pid: gateway.pid,
    key: 'sk-attacker',
    poor: 'sk-poor',
    dead: 'sk-dead',
  }
  return {
    gateway,
    async watch(attack) {
      const stop = new AbortController()
      const attacking = attack?.(target, stop.signal)
      steady.postMessage(WINDOW_MS)
      const [window] = await once(steady, 'message')
      stop.abort()
      await attacking
      return window
    },
  }
}

async function startWorker(cleanUp: CleanUp, file: URL, workerData?: object): Promise<Worker> {
  const worker = new Worker(file, { workerData })
  cleanUp.after(() => worker.terminate())
  await once(worker, 'online')
  return worker
}

/** Two lines serve the model of both tenants; the attacker has another model at the first of them too. */
function configOver(baseUrl: string): object {
  const line = (id: string, priority: number, models: object) => ({
    ...{ id, provider: id, protocol: 'openai', baseUrl, priority, models },
    timeouts: { connectMs: 2000, firstByteMs: 3000, idleMs: 5000, totalMs: 20_000 },
  })
  const price = { inputPerMillion: '0.1', outputPerMillion: '0.1' }
  return {
    accounts: [
      { id: 'steady', balance: '1000' },
      { id: 'attacker', balance: '1000' },
      { id: 'poor', balance: '0' },
    ],
    keys: [
      { id: 'k-steady', account: 'steady', secret: 'sk-steady' },
      { id: 'k-attacker', account: 'attacker', secret: 'sk-attacker' },
      { id: 'k-poor', account: 'poor', secret: 'sk-poor' },
      { id: 'k-dead', account: 'attacker', secret: 'sk-dead', enabled: false },
    ],
    models: [
      { id: 'chat', kind: 'chat', price },
      { id: 'other', kind: 'chat', price },
      { id: 'film', kind: 'video', price: { perSecond: '0.1' } },
    ],
    lines: [
      line('first', 0, { chat: 'u-chat', other: 'u-other', film: 'u-film' }),
      line('second', 1, { chat: 'u-chat' }),
    ],
    passThrough: [{ path: '/v1/audio/*rest', lines: ['first'], price: { perRequest: '0.0001' } }],
  }
}
