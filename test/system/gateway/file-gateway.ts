import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { jsonOf } from '../../support/answer-bodies.ts'
import type { CleanUp } from '../../support/clean-up.ts'
import {
  type Environment,
  type GatewayProcess,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import {
  chatAnswer,
  chatEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'

const ADMIN_TOKEN = 'admin-token-of-the-tests'

/** A gateway on a config file that the test changes, with one upstream. */
export interface FileGateway {
  readonly gateway: GatewayProcess
  readonly upstream: ScriptedUpstream
  readonly env: Environment
  readonly folder: string
  /** Puts a new file into the place of the config, as editors do. */
  write(config: object | string): Promise<void>
  /** The config that it was started with, and how to word another. */
  readonly config: Config
  /** Asks the admin API. */
  admin<T = Record<string, unknown>>(path: string): Promise<T>
  /** Returns the result of the ledger's check. */
  ledger(): Promise<{ readonly violations: readonly string[]; readonly charges: number }>
}

export interface Config {
  readonly [member: string]: unknown
  readonly models: readonly object[]
  readonly lines: readonly object[]
}

/**
 * Answers at once, a stream with some pauses.
 *
 * @param members of the config, beside accounts, keys, models and lines.
 */
export async function startFileGateway(
  t: CleanUp,
  env: Environment = {},
  members: object = {},
): Promise<FileGateway> {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const upstream = await startUpstream((res, { json }) =>
    json.stream ? stream(res, chatEvents(['a', 'b', 'c']), { paceMs: 20 }) : chatAnswer(res),
  )
  t.after(() => upstream.close())
  const config: Config = {
    accounts: [{ id: 'demo', balance: '1000' }],
    keys: [{ id: 'key', account: 'demo', secret: 'sk-demo' }],
    models: [{ id: 'chat-small', kind: 'chat', maxOutputTokens: 100, price: { outputPerMillion: '1' } }],
    lines: [
      {
        id: 'one',
        provider: 'p',
        protocol: 'openai',
        baseUrl: `${upstream.url}/v1`,
        models: { 'chat-small': 'u' },
      },
    ],
    ...members,
  }
  const file = join(folder.path, 'gateway.json')
  const write = async (next: object | string): Promise<void> => {
    await writeFile(`${file}.new`, typeof next === 'string' ? next : JSON.stringify(next))
    await rename(`${file}.new`, file)
  }
  await write(config)
  const whole = {
    DATABASE_URL: `sqlite:${join(folder.path, 'data', 'gateway.db')}`,
    GATEWAY_CONFIG: file,
    ADMIN_TOKEN,
    LOG_LEVEL: 'info',
    ...env,
  }
  const gateway = await startGatewayProcess(whole)
  t.after(() => gateway.stop())
  const admin = async <T>(path: string): Promise<T> => {
    // A worker that is replaced waits for what a caller keeps open: up to 65 s.
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, connection: 'close' }
    return jsonOf<T>(await fetch(`${gateway.url}/admin${path}`, { headers }))
  }
  return {
    gateway,
    upstream,
    env: whole,
    folder: folder.path,
    write,
    config,
    admin,
    ledger: () => admin('/ledger/check'),
  }
}
