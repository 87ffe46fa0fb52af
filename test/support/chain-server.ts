import type { Server } from 'node:http'
import type { Express } from 'express'
import type { Call } from '../../lib/core/call/index.ts'
import type { LoadedConfig } from '../../lib/core/config/index.ts'
import { authenticate, memoryKeyDirectory } from '../../lib/middleware/authenticate/index.ts'
import { beginCall } from '../../lib/middleware/begin-call/index.ts'
import {
  type CallLogEntry,
  CallLogWriter,
  callLog,
  MemoryCallStore,
} from '../../lib/middleware/call-log/index.ts'
import { LineRegistry } from '../../lib/middleware/route/index.ts'
import { type RecordingLogger, recordingLogger, serveApp } from './app-server.ts'

/** The parts that the middlewares of a chain under test share. */
export interface ChainParts {
  readonly logger: RecordingLogger
  readonly store: MemoryCallStore
  readonly lines: LineRegistry
}

/** A chain that listens on loopback. */
export interface ChainServer extends ChainParts {
  readonly url: string
  readonly server: Server
  /** Calls that have not ended. */
  readonly openCalls: ReadonlySet<Call>
  /** The log entry of a request id; waits for it. */
  entry(requestId: string | null): Promise<CallLogEntry>
  close(): Promise<void>
}

/** Serves a chain that begins calls, logs them and knows the config's keys; `mount` adds the rest. */
export async function serveChain(
  config: LoadedConfig,
  mount: (app: Express, parts: ChainParts) => void,
): Promise<ChainServer> {
  const parts: ChainParts = {
    logger: recordingLogger(),
    store: new MemoryCallStore(),
    lines: new LineRegistry(),
  }
  const { logger, store, lines } = parts
  const writer = new CallLogWriter({ store })
  const openCalls = new Set<Call>()
  const onBegin = (call: Call): void => {
    openCalls.add(call)
    call.onEnd('test', () => void openCalls.delete(call))
  }
  const server = await serveApp((app) => {
    app.disable('x-powered-by')
    app.set('trust proxy', config.trustProxy)
    app.use(
      beginCall({ logger, onBegin }),
      callLog({ writer }),
      authenticate({ keys: memoryKeyDirectory(config), region: config.region }),
    )
    mount(app, parts)
  })
  return {
    ...parts,
    url: server.url,
    server: server.server,
    openCalls,
    async entry(requestId) {
      for (let tries = 0; tries < 4000; tries++) {
        await writer.flush()
        const found = await store.find(requestId ?? '')
        if (found) return found
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      throw new Error(`no call-log entry for ${requestId}`)
    },
    async close() {
      await server.close()
      await lines.close()
      await writer.close()
    },
  }
}
