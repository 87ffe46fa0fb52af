import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type RequestHandler } from 'express'
import type { LoadedConfig } from '../../lib/core/config/index.ts'
import {
  authenticate,
  beginCall,
  CallLogWriter,
  callLog,
  errorEnvelope,
  type GatewayConfig,
  type KeyDirectory,
  MemoryCallStore,
  memoryKeyDirectory,
  readRequest,
  route,
  unknownPath,
} from '../../lib/index.ts'
import type { CallStore } from '../../lib/middleware/call-log/index.ts'
import { loadConfig } from '../support/any-config.ts'
import { BENCH_KEY, BENCH_MODEL, MESSAGES_PATH, PATH } from './workload.ts'

/** Set, so that they are counted, and out of reach. */
const FAR = { rpm: 1_000_000_000, tpm: 1_000_000_000_000 }

/** The differences between targets. */
export interface ChainParts {
  /** The middlewares between `readRequest` and `route`. */
  readonly guards: readonly RequestHandler[]
  /** The middlewares before all others, which see every call. Defaults to none. */
  readonly around?: readonly RequestHandler[]
  /** Defaults to this process's memory. */
  readonly keys?: KeyDirectory
  readonly calls?: CallStore
  /** The writer of the entries of calls that are charged. Defaults to `writer`. */
  readonly settledBy?: 'writer' | 'ledger'
}

/**
 * The config of all targets: limits and money are counted, and out of reach.
 *
 * @param protocol of the line. Defaults to `openai`, which is the caller's.
 */
export function benchConfig(protocol: 'openai' | 'anthropic' = 'openai'): LoadedConfig {
  return loadConfig(benchSource(`${process.env.UPSTREAM}`, protocol))
}

/** The same as a config file has it. */
export function benchSource(upstream: string, protocol: 'openai' | 'anthropic' = 'openai'): GatewayConfig {
  return {
    accounts: [{ id: 'bench', balance: '1000000000', limits: { ...FAR, concurrency: 1_000_000 } }],
    keys: [{ id: 'key_bench', account: 'bench', secret: BENCH_KEY, quota: '1000000000', limits: FAR }],
    models: [
      {
        id: BENCH_MODEL,
        kind: 'chat',
        contextWindow: 10_000_000,
        maxOutputTokens: 4096,
        features: ['stream', 'tools', 'vision'],
        price: { inputPerMillion: '0.15', outputPerMillion: '0.60' },
      },
    ],
    lines: [
      {
        id: 'upstream',
        provider: 'bench',
        protocol,
        baseUrl: `${upstream}/v1`,
        apiKey: BENCH_KEY,
        models: { [BENCH_MODEL]: BENCH_MODEL },
      },
    ],
  }
}

/** Serves a chain as a target: call, call log, key, body, what guards it, routing, envelope. */
export function serveChain(config: LoadedConfig, parts: ChainParts = { guards: [] }): void {
  const { catalog } = config
  const {
    guards,
    around = [],
    keys = memoryKeyDirectory(config),
    calls = new MemoryCallStore(),
    settledBy = 'writer',
  } = parts
  const app = express()
  app.disable('x-powered-by')
  app.use(beginCall(), ...around, callLog({ writer: new CallLogWriter({ store: calls }), settledBy }))
  const paths = [PATH, MESSAGES_PATH]
  app.post(paths, authenticate({ keys }), readRequest({ catalog }), ...guards, route({ catalog }))
  app.use(unknownPath(), errorEnvelope())
  const server = createServer(app)
  server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
    console.log(`listening ${(server.address() as AddressInfo).port}`)
  })
}
