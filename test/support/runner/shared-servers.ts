import { startGatewayProcess } from '../gateway-process.ts'
import { SHARED_POSTGRES } from '../postgres-databases.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../postgres-server.ts'

/** What all test files of a run share. */
export interface SharedServers {
  /** Removes what a process of tests has left there. */
  clear(pid: number): Promise<void>
  close(): Promise<void>
}

/**
 * Starts what all test files of a run share, and tells them by the environment: one Postgres, with a database for each who
 * asks, and what Node has made of the TypeScript of the gateway. Tests start some hundred gateways and kill most of them; only
 * one that ends by itself leaves that in Node's compile cache.
 */
export async function shareServers(): Promise<SharedServers> {
  process.env.NODE_COMPILE_CACHE ??= `${process.cwd()}/node_modules/.cache/compile`
  const postgres = WITHOUT_POSTGRES ? undefined : startPostgres({ settings: { max_connections: 500 } })
  const gateway = await startGatewayProcess()
  gateway.kill('SIGTERM')
  await gateway.exited
  const server = await postgres
  await server?.prepareCopies()
  if (server) process.env[SHARED_POSTGRES] = `${server.port}`
  return { clear: async (pid) => server?.dropDatabasesOf(pid), close: async () => server?.close() }
}
