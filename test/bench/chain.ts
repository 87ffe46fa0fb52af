import type { AddressInfo } from 'node:net'
import express, { type RequestHandler } from 'express'
import {
  authenticate,
  beginCall,
  CallLogWriter,
  callLog,
  errorEnvelope,
  loadConfig,
  MemoryCallStore,
  memoryKeyDirectory,
  readRequest,
  route,
  unknownPath,
} from '../../lib/index.ts'
import { BENCH_KEY, BENCH_MODEL, PATH } from './workload.ts'

/** Set, so that they are counted, and out of reach. */
const FAR = { rpm: 1_000_000_000, tpm: 1_000_000_000_000 }

/**
 * Serves the chain as a target: call, call log (memory), key, body, routing, envelope.
 *
 * @param guards what stands between `readRequest` and `route`.
 */
export function serveChain(guards: readonly RequestHandler[] = []): void {
  const config = loadConfig({
    accounts: [{ id: 'bench', limits: { ...FAR, concurrency: 1_000_000 } }],
    keys: [{ id: 'key_bench', account: 'bench', secret: BENCH_KEY, limits: FAR }],
    models: [{ id: BENCH_MODEL, kind: 'chat', contextWindow: 128_000, features: ['stream', 'tools'] }],
    lines: [
      {
        id: 'upstream',
        provider: 'bench',
        protocol: 'openai',
        baseUrl: `${process.env.UPSTREAM}/v1`,
        apiKey: BENCH_KEY,
        models: { [BENCH_MODEL]: BENCH_MODEL },
      },
    ],
  })
  const { catalog } = config
  const keys = memoryKeyDirectory(config)
  const app = express()
  app.disable('x-powered-by')
  app.use(beginCall(), callLog({ writer: new CallLogWriter({ store: new MemoryCallStore() }) }))
  app.post(PATH, authenticate({ keys }), readRequest({ catalog }), ...guards, route({ catalog }))
  app.use(unknownPath(), errorEnvelope())
  const server = app.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
    console.log(`listening ${(server.address() as AddressInfo).port}`)
  })
}
