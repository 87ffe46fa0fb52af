/** The whole chain without limits and billing: call, call log (memory), key, body, routing, envelope. */

import type { AddressInfo } from 'node:net'
import express from 'express'
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
} from '../../../lib/index.ts'
import { BENCH_KEY, BENCH_MODEL, PATH } from '../workload.ts'

const config = loadConfig({
  accounts: [{ id: 'bench' }],
  keys: [{ id: 'key_bench', account: 'bench', secret: BENCH_KEY }],
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
const app = express()
app.disable('x-powered-by')
app.use(beginCall(), callLog({ writer: new CallLogWriter({ store: new MemoryCallStore() }) }))
app.post(
  PATH,
  authenticate({ keys: memoryKeyDirectory(config) }),
  readRequest({ catalog }),
  route({ catalog }),
)
app.use(unknownPath(), errorEnvelope())
const server = app.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  console.log(`listening ${(server.address() as AddressInfo).port}`)
})
