import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { rawClient } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  type Environment,
  type GatewayProcess,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { type ScriptedUpstream, startUpstream, type UpstreamScript } from '../../support/scripted-upstream.ts'

/** The keys of two accounts, and the operators'. */
export const KEY = 'sk-acme-0123456789'
export const OTHER_KEY = 'sk-globex-0123456789'
export const ADMIN_TOKEN = 'admin-token-0123456789'

/** The assembled gateway in a process of its own, over one upstream that is in this one. */
export interface GuardedGateway {
  readonly gateway: GatewayProcess
  readonly upstream: ScriptedUpstream
  /** Writes bytes to the gateway, and resolves with all that came back once that has closed the connection. */
  say(bytes: string): Promise<string>
}

/**
 * Awaited in the body of a `describe`; all is ended behind its last test.
 *
 * @param through a program, with its arguments, that turns into the gateway.
 */
export async function guardedGateway(
  env: Environment = {},
  script?: UpstreamScript,
  extra: (upstreamUrl: string) => object = () => ({}),
  through: readonly string[] = [],
): Promise<GuardedGateway> {
  const cleanUp = cleaningUp()
  const folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
  const upstream = await startUpstream(script)
  cleanUp.after(() => upstream.close())
  const config = {
    accounts: [{ id: 'acme' }, { id: 'globex' }],
    keys: [
      { id: 'key_acme', account: 'acme', secret: KEY },
      { id: 'key_globex', account: 'globex', secret: OTHER_KEY },
    ],
    models: [{ id: 'chat', kind: 'chat', price: { perRequest: '0.001' } }],
    lines: ['openai', 'anthropic'].map((protocol) => ({
      id: `line-${protocol}`,
      provider: 'p',
      protocol,
      baseUrl: `${upstream.url}/v1`,
      models: { chat: 'upstream-chat' },
    })),
    ...extra(upstream.url),
  }
  const configFile = join(folder.path, 'config.json')
  await writeFile(configFile, JSON.stringify(config))
  const gateway = await startGatewayProcess({ GATEWAY_CONFIG: configFile, ADMIN_TOKEN, ...env }, through)
  cleanUp.after(() => gateway.stop())
  return {
    gateway,
    upstream,
    say: (bytes) => rawClient(gateway.port, bytes).end(),
  }
}

/** The statuses of the answers in what came back on a connection. */
export const statusesIn = (received: string): number[] =>
  [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
